"""Door of `nox -s support`."""

from mps_build.cli import main

raise SystemExit(main("support"))
