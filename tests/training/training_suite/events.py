"""Events: one JSON line each, appended to the file that the driver watches (tests/training/README.md)."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Any


class Events:
    """Appends events to a file, each with how much the process had written by then."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def tell(self, event: str, **facts: Any) -> None:
        """Append one event at once."""
        sys.stdout.flush()
        sys.stderr.flush()
        line = json.dumps(_plain(dict(facts, event=event, output_bytes=os.fstat(2).st_size)))
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def _plain(value: Any) -> Any:
    """Return a value as strict JSON can hold it: NaN and infinity become words."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(item) for item in value]
    return value
