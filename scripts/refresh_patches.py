"""Door of `nox -s refresh_patches`."""

from mps_build.cli import main

raise SystemExit(main("refresh_patches"))
