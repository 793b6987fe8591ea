"""Entry point: `python -m mps_build COMMAND …`, the same as the installed `mps-build COMMAND …`."""

from __future__ import annotations

import sys

from .cli import main

sys.exit(main())
