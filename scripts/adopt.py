"""Door of `nox -s adopt`."""

from mps_build.cli import main

raise SystemExit(main("adopt"))
