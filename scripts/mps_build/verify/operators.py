"""Whether the suite has cases of an operator, or a case of a name: asked before anything is installed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from mps_build.common.errors import UsageError

# What an id at least begins with: `f"{layer}-{name}"` would be the id of any case.
_LEAST_LETTERS = 4


def check_operator(name: str | None, suite: Path) -> None:
    """Refuse an operator that the suite does not describe; a suite without descriptions knows none.

    Raises:
        UsageError: naming the operators that look alike.
    """
    texts = [path.read_text(encoding="utf-8") for path in sorted((suite / "operators").glob("*.py"))]
    known = {word for text in texts for word in re.findall(r"\w+", text)}
    if name is None or not known:
        return
    operator = name.replace("::", ".").removeprefix("aten.").partition(".")[0]
    if operator in known:
        return
    near = get_close_matches(operator, known, n=3, cutoff=0.8)
    raise UsageError(
        f"--op {name}: the suite does not describe it",
        hint=f"did you mean {', '.join(near)}?" if near else "names are those of the dispatcher: aten.add.Tensor, add",
    )


def check_names(names: Sequence[str], suite: Path) -> None:
    """Refuse a name that no case can have: each of them, so that a slip among right names does not pass.

    An id stands in a file of the suite, whole or with gaps that are filled at import. Shell patterns and the drawn
    cases (`add:layout:3`) are left to the suite.

    Raises:
        UsageError: naming the cases that look alike.
    """
    plain = [name for name in names if not set("*?[") & set(name) and not _is_drawn(name)]
    if not plain:
        return
    ids = {found for path in sorted(suite.rglob("test_*.py")) for found in _ids(path.read_text(encoding="utf-8"))}
    for name in plain if ids else ():
        if any(fnmatchcase(name, pattern) for pattern in ids):
            continue
        near = get_close_matches(name, ids, n=3, cutoff=0.7)
        also = (
            f"did you mean {', '.join(near)}?"
            if near
            else "ids are in any record, under `cases`; `issue-*` is a pattern"
        )
        raise UsageError(f"--only {name}: no case has this id", hint=also)


def _ids(text: str) -> Iterator[str]:
    """Give the texts of a file that can be ids; what is filled in at import is `*`.

    >>> sorted(_ids('case("issue-1", f"issue-2-{x}", f"{x}-y", "it is")'))
    ['issue-1', 'issue-2-', 'issue-2-*']
    """
    for node in ast.walk(ast.parse(text)):
        found = _text_of(node)
        if re.match(rf"[\w.=]{{{_LEAST_LETTERS},}}[-\w.=*]*-|\d+-", found) and " " not in found:
            yield found


def _text_of(node: ast.AST) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else "*"
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text_of, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text_of(node.left) + _text_of(node.right)
    return "*"


def _is_drawn(name: str) -> bool:
    """Say whether an id is of a drawn case.

    >>> _is_drawn("conv2d:gradient:17"), _is_drawn("issue-131750")
    (True, False)
    """
    operator, transformation, seed = (*name.split(":", 2), "", "")[:3]
    return bool(operator and transformation and seed.isdigit())
