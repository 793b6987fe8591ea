"""The commands that only this repository's maintainers need: `nox -s dev -- NAME`."""
