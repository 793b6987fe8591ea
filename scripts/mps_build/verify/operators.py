"""Whether the suite has a case for an operator: asked before anything is installed."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path

from mps_build.common.errors import UsageError
from mps_build.common.json_text import read_json


def check_operator(name: str | None, suite: Path) -> None:
    """Refuse an operator that no case dispatches, by the suite's recorded touch map; a suite without one knows none.

    Raises:
        UsageError: naming the operators that look alike.
    """
    recorded = suite / "touch_map.json"
    if name is None or not recorded.is_file():
        return
    operators = read_json(recorded)["operators"]
    known = {*operators, *(each.rpartition(".")[0] for each in operators)}
    if name in known:
        return
    near = get_close_matches(name, known, n=3, cutoff=0.6)
    near = near or get_close_matches(f"aten.{name}", known, n=3, cutoff=0.8)
    raise UsageError(
        f"--op {name}: no case dispatches it",
        hint=f"did you mean {', '.join(near)}?"
        if near
        else "names are those of the dispatcher: aten.add.Tensor, aten.add",
    )
