"""Graph keys: what a back end compiles anew, since operator, dtypes, shapes, layout or options are others.

What the calls of a run dispatch is counted by tests/sensitivity/drawn_curve.py (`Compiled`).
"""

from __future__ import annotations

from typing import Any


def key_of(case: Any, call: Any) -> Any:
    """Return what tells the graphs of one call from those of another: all of its levels but the values."""
    levels = call.levels
    shape = call.row.shape(call.operator)
    named = tuple((name, str(one)) for name, one in levels.items() if name not in ("@values", "@size", "@shape"))
    return case.operator, case.transformation, shape, named
