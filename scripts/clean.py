"""Door of `nox -s clean`."""

from mps_build.cli import main

raise SystemExit(main("clean"))
