"""Door of `nox -s rehearse`."""

from mps_build.cli import main

raise SystemExit(main("rehearse"))
