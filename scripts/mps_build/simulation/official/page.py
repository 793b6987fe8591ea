"""The page of what the official wheels take from macOS: each import, how it is bound, and which releases take it."""

from __future__ import annotations

from collections import defaultdict

from mps_build.wheel_build.objc.stubs import imports_of, known_releases

from .inventory import is_of_system
from .table import find_row, read_table

_HEAD = """\
# What an official wheel takes from macOS

Generated from `scripts/mps_build/simulation/official/system/table.yaml` (`nox -s regenerate`), for the releases
whose imports are on record. [The page of the official wheel](official_wheel.md) says how it is run.

| bound as | what that means |
|---|---|
| same | the function of this name here: equal arguments, layouts, numbers and results |
| variadic | its other arguments are taken from the stack, where Apple's convention puts them |
| translated | a function of ours: layouts, flags, numbers or state differ |
| data | an object of ours |
| alone | without a software Metal, a function of ours; with one it is the one that gives it |
| nil, zeros | without a software Metal there are no objects: it answers nothing |
| refused | a call raises the reason; an image that takes it as an object is not opened |
"""


def imports_page() -> str:
    """Return the page as Markdown."""
    rows, releases = read_table(), known_releases()
    takers: dict[tuple[str, str], list[str]] = defaultdict(list)
    for release in releases:
        for library, facts in imports_of(release).items():
            for symbol in facts["symbols"]:
                if is_of_system(symbol, library):
                    takers[library.rsplit("/", 1)[1], symbol].append(release)
    lines = [_HEAD, "| import | library | bound as | releases |", "|---|---|---|---|"]
    for (library, symbol), found in sorted(takers.items()):
        row = find_row(rows, symbol.removeprefix("_"))
        kind = row.kind if row else "not provided"
        reason = f": {row.target}" if row and row.kind == "refused" else ""
        which = "all" if len(found) == len(releases) else ", ".join(found)
        lines.append(f"| `{symbol}` | {library} | {kind}{reason} | {which} |")
    return "\n".join((*lines, ""))
