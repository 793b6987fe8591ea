"""Which version, or which commit, changed a behaviour: the search, its memory, and those who are asked."""
