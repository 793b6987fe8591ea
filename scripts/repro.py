"""Door of `nox -s repro`."""

from mps_build.cli import main

raise SystemExit(main("repro"))
