"""Door of `nox -s publish_index`."""

from mps_build.cli import main

raise SystemExit(main("publish_index"))
