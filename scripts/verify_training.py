"""Door of `nox -s verify_training`."""

from mps_build.cli import main

raise SystemExit(main("verify_training"))
