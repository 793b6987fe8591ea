"""Door of `nox -s doctor`."""

from mps_build.cli import main

raise SystemExit(main("doctor"))
