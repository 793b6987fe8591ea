"""Door of `nox -s plan_fleet`."""

from mps_build.cli import main

raise SystemExit(main("plan_fleet"))
