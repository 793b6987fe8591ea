"""Door of `nox -s bisect_mps`."""

from mps_build.cli import main

raise SystemExit(main("bisect_mps"))
