"""Door of `nox -s ci`."""

from mps_build.cli import main

raise SystemExit(main("ci"))
