"""Door of `nox -s shell`."""

from mps_build.cli import main

raise SystemExit(main("shell"))
