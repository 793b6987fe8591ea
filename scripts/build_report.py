"""Door of `nox -s build_report`."""

from mps_build.cli import main

raise SystemExit(main("build_report"))
