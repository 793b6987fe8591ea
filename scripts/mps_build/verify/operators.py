"""Whether the suite has a case for an operator, or of a name: asked before anything is installed."""

from __future__ import annotations

from collections.abc import Sequence
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


def check_names(names: Sequence[str], suite: Path) -> None:
    """Refuse a name that no case has: each of them, so that a slip among right names does not pass.

    The recorded touch map has the cases of all layers but upstream's own (`opinfo-...`) and the drawn ones
    (`add:layout:3`), which the suite itself knows. A case that is newer than the
    map is known where its name stands in a file of the suite. Shell patterns are left to the suite.

    Raises:
        UsageError: naming the cases that look alike.
    """
    recorded = suite / "touch_map.json"
    plain = [name for name in names if not set("*?[") & set(name) and not _is_left_to_the_suite(name)]
    if not plain or not recorded.is_file():
        return
    known = read_json(recorded)["cases"]
    missing = [name for name in plain if name not in known]
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in suite.rglob("*.py")] if missing else []
    for name in missing:
        if any(name in text for text in texts):
            continue
        near = get_close_matches(name, known, n=3, cutoff=0.8)
        also = (
            f"did you mean {', '.join(near)}?"
            if near
            else "ids are in any record, under `cases`; `layout-*` is a pattern"
        )
        raise UsageError(f"--only {name}: no case has this id", hint=also)


def _is_left_to_the_suite(name: str) -> bool:
    """Say whether an id is of upstream's cases or of the drawn ones.

    >>> _is_left_to_the_suite("conv2d:gradient:17"), _is_left_to_the_suite("issue-131750")
    (True, False)
    """
    operator, transformation, seed = (*name.split(":", 2), "", "")[:3]
    return name.startswith("opinfo-") or bool(operator and transformation and seed.isdigit())
