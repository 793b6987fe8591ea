"""Door of `nox -s compare`."""

from mps_build.cli import main

raise SystemExit(main("compare"))
