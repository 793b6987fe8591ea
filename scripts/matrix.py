"""Door of `nox -s matrix`."""

from mps_build.cli import main

raise SystemExit(main("matrix"))
