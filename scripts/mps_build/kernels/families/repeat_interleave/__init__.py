"""`repeat_interleave`."""
