"""Door of `nox -s verify_provenance`."""

from mps_build.cli import main

raise SystemExit(main("verify_provenance"))
