"""Readers of what build tools print: text to frozen facts, or None for "not understood". None of them guesses."""
