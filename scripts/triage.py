"""Door of `nox -s triage`."""

from mps_build.cli import main

raise SystemExit(main("triage"))
