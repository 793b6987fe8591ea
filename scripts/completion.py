"""Door of `nox -s completion`."""

from mps_build.cli import main

raise SystemExit(main("completion"))
