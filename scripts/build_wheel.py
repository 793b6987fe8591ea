"""Door of `nox -s build_wheel`."""

from mps_build.cli import main

raise SystemExit(main("build_wheel"))
