"""A release's whole build, rehearsed on Linux."""
