"""Door of `nox -s schemas`."""

from mps_build.cli import main

raise SystemExit(main("schemas"))
