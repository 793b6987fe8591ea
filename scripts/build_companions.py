"""Door of `nox -s build_companions`."""

from mps_build.cli import main

raise SystemExit(main("build_companions"))
