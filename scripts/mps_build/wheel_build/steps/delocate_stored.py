"""delocate, but what it writes is not compressed: finish_wheel writes it anew, and once is enough (30 s for torch).

Run as text by the Python that has delocate; it imports nothing of ours.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import zipfile
from typing import Any


def main() -> object:
    """Run delocate-wheel on the command line's arguments."""
    delocating: Any = importlib.import_module("delocate.delocating")
    pack = delocating.dir2zip
    if "compression" in inspect.signature(pack).parameters:
        delocating.dir2zip = functools.partial(pack, compression=zipfile.ZIP_STORED)
    return importlib.import_module("delocate.cmd.delocate_wheel").main()


if __name__ == "__main__":
    sys.exit(main())  # type: ignore[arg-type]  # what delocate's own entry point returns
