"""Which version, or which commit, changed a behaviour: the search, its memory, and how a subject is tested."""
