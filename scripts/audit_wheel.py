"""Door of `nox -s audit_wheel`."""

from mps_build.cli import main

raise SystemExit(main("audit_wheel"))
