"""Door of `nox -s op_coverage`."""

from mps_build.cli import main

raise SystemExit(main("op_coverage"))
