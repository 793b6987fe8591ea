"""Door of `nox -s verify_mps`."""

from mps_build.cli import main

raise SystemExit(main("verify_mps"))
