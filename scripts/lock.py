"""Door of `nox -s lock`."""

from mps_build.cli import main

raise SystemExit(main("lock"))
