"""Door of `nox -s benchmark_mps`."""

from mps_build.cli import main

raise SystemExit(main("benchmark_mps"))
