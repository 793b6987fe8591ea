"""The page of verify_kernels: the verdict, what was found, and the accuracy atlas with a plot for each function."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...common.page import section, table, whole_page
from ...common.plain_text import in_html
from ..execution.verify_all import FOUND
from ..program.dtypes import DTYPES
from .document import importance, witness

# The accuracy atlas: the largest error of every function and type, in one release or several.

_TYPE = re.compile("|".join(sorted(DTYPES, key=len, reverse=True)))
_ALL_VALUES = {"half": "all 65,536 values", "bfloat": "all 65,536 values"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One function of one type.

    Args:
        errors: the largest error of each release, in units in the last place; None where it was not run.
        cpu: the CPU's own largest error, in the same type.
        profiles: for each release, the largest error in each part of the first input's values.
    """

    function: str
    kind: str
    kernel: str
    errors: tuple[float | None, ...]
    cpu: float | None
    bound: float | None
    is_unary: bool
    profiles: tuple[tuple[float, ...], ...]

    @property
    def inputs(self) -> str:
        """Which inputs were tested."""
        if not self.is_unary:
            return "pairs at the edges, equal and near ones, random ones"
        return _ALL_VALUES.get(self.kind, "edges, and every exponent with random mantissas")


def entries(documents: Sequence[Mapping[str, Any]]) -> list[Entry]:
    """Return the functions that were held against float64, by function and type; one document a release."""
    releases = [_measured(document) for document in documents]
    names = dict.fromkeys(key for release in releases for key in release)
    found = [_entry(key, [release.get(key) for release in releases]) for key in names]
    return sorted(found, key=lambda each: (each.function, each.kind, each.kernel))


def _measured(document: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """Return the dense kernels (those with a profile) by function and types; metal_basic's, where there are two."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in document["kernels"]:
        if row.get("profile") and row.get("library") != "metal_40":
            types = "_".join(_TYPE.findall(row["name"].partition("_dense_")[2])) or "?"
            found.setdefault((row.get("operator") or row["name"], types), row)
    return found


def _entry(key: tuple[str, str], rows: Sequence[Mapping[str, Any] | None]) -> Entry:
    there = next(row for row in rows if row is not None)
    return Entry(
        function=key[0],
        kind=_input_type(key[1]),
        kernel=there["name"],
        errors=tuple(None if row is None else row.get("max_ulp", 0.0) for row in rows),
        cpu=there.get("cpu_ulp", 0.0),
        bound=there.get("bound_ulp"),
        is_unary=str(there.get("family", "")).startswith("unary"),
        profiles=tuple(tuple(row["profile"]) if row is not None else () for row in rows),
    )


def _input_type(types: str) -> str:
    """Return the type of the input, the last but the scalar parameters'.

    >>> _input_type("float_half"), _input_type("half")
    ('half', 'half')
    """
    parts = types.split("_")
    return parts[1] if len(parts) > 1 else parts[0]


# By verdict: the tone, and the words.
_VERDICTS = {
    "verified": ("good", "No finding in what was run"),
    "findings": ("bad", "Findings"),
    "known_issues_only": ("known", "Known issues only"),
    "misfit": ("bad", "A part of mps-build failed: not verified"),
    "refused": ("bad", "Refused: no kernel was run"),
    "not_verified": ("idle", "Not verified"),
}
_COLOURS = ("#0b5cad", "#c22f2f", "#1a7f4b", "#9a6700", "#7a3fa0", "#4a5568")
_WIDTH, _HEIGHT, _MOST = 192, 44, 6.0  # the plot, and the decades of error above one unit that it shows
_COLUMNS = ("kernel", "library", "outcome", "input", "got", "expected", "what")
_STATEMENT = (
    "The kernels ran on a processor, not on a GPU. The elementary functions under them (exp, log, pow and so on) are "
    "the host's libm, computed in double and rounded once: Apple's own may be a few units in the last place worse. "
    "So small errors of functions that use them say nothing of a Mac; large ones are errors of the kernel's formula."
)
_CSS = """
svg.plot { display: block; background: var(--ground); border-radius: 4px; }
svg.plot polyline { fill: none; stroke-width: 1.5; } svg.plot line { stroke: var(--line); }
"""


def render(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return the page of the first document; the others are releases that its atlas also shows."""
    first = documents[0]
    body = "\n".join((_verdict(first), _libraries(first), _findings(first), _atlas(documents)))
    return whole_page(f"Metal kernels of {first['target']}", body, css=_CSS)


def _verdict(document: Mapping[str, Any]) -> str:
    counts = document["coverage"]
    tone, words = _VERDICTS.get(document["verdict"], ("idle", in_html(str(document["verdict"]))))
    return (
        f'<div class="verdict {tone}"><h1>{words}</h1>'
        f"<p>{in_html(document['target'])}: {counts['kernels']} Metal kernels, {counts['compiled']} compiled, "
        f"{counts['bound']} with a contract, {counts['run']} run.</p>"
        f'<p class="next">{in_html(_STATEMENT)}</p></div>'
    )


def _libraries(document: Mapping[str, Any]) -> str:
    keys = ("kernels", "compiled", "bound", "run")
    rows = [
        f"<tr><td>{in_html(name)}</td>" + "".join(f'<td class="number">{each[key]}</td>' for key in keys) + "</tr>"
        for name, each in document["libraries"].items()
    ]
    return section("Libraries", table(("library", *keys), rows, numbers=keys))


def _findings(document: Mapping[str, Any]) -> str:
    every: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in document["kernels"]:  # metal_40's copy of a kernel is the same finding
        if row["outcome"] in (*FOUND, "known", "misfit", "refused"):
            every.setdefault((row["name"], row["outcome"]), row)
    found = list(every.values())
    rows = [
        f'<tr data-outcome="{row["outcome"]}"><td><code>{in_html(row["name"])}</code></td>'
        f"<td>{in_html(row['library'])}</td>"
        f'<td>{_tag(row["outcome"])}</td><td class="what">{in_html(witness(row))}</td>'
        + "".join(f"<td><code>{in_html(str(row.get('where', {}).get(key, '')))}</code></td>" for key in ("got", "want"))
        + f'<td class="what">{in_html(row["reason"])}</td></tr>'
        for row in sorted(found, key=lambda row: (row["outcome"] == "known", importance(row["outcome"], row)))
    ]
    return section("Findings", table(_COLUMNS, rows) if rows else "<p>None.</p>", str(len(rows) or ""))


def _tag(outcome: str) -> str:
    tone = "known" if outcome == "known" else "bad"
    return f'<span class="tag {tone}">{in_html(outcome.replace("_", " "))}</span>'


def _atlas(documents: Sequence[Mapping[str, Any]]) -> str:
    found = entries(documents)
    if not found:
        return section("Accuracy", "<p>No function was held against float64.</p>")
    names = [str(each.get("torch") or each["target"]) for each in documents]
    columns = ["function", "input", *names, "CPU", "bound", "error over the input's values", "tested"]
    rows = [
        _row(
            [
                f"<code>{in_html(each.function)}</code>",
                in_html(each.kind),
                *(_ulp(error) for error in each.errors),
                _ulp(each.cpu),
                _ulp(each.bound),
                _plot(each),
                in_html(each.inputs),
            ]
        )
        for each in found
    ]
    legend = "".join(
        f'<i style="background:{_COLOURS[number % len(_COLOURS)]}"></i>{in_html(name)}'
        for number, name in enumerate(names)
    )
    note = (
        "Largest error against float64, in units in the last place of the result's type. A plot's left edge is -inf, "
        "its middle 0, its right edge inf; its height is the error's logarithm, from half a unit to a million."
    )
    content = f'<p>{in_html(note)}</p><p class="legend">{legend}</p>{table(columns, rows)}'
    return section("Accuracy atlas", content, f"{len(rows)} functions and types")


def _ulp(value: float | None) -> str:
    if value is None:
        return "not finite"
    return "not finite" if value >= 1e299 else f"{value:.3g}"


def _plot(entry: Entry) -> str:
    """Return a line for each release: the largest error in each part of the input's values."""
    lines = []
    for number, profile in enumerate(entry.profiles):
        if not profile:
            continue
        step = _WIDTH / len(profile)
        points = " ".join(f"{(at + 0.5) * step:.0f},{_height(error):.1f}" for at, error in enumerate(profile))
        lines.append(f'<polyline points="{points}" stroke="{_COLOURS[number % len(_COLOURS)]}"/>')
    worst = max((max(profile) for profile in entry.profiles if profile), default=0.0)
    label = f"{entry.function} of {entry.kind}: at most {_ulp(worst)} units in the last place"
    middle = f'<line x1="{_WIDTH / 2}" y1="0" x2="{_WIDTH / 2}" y2="{_HEIGHT}"/>'
    return (
        f'<svg class="plot" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img">'
        f"<title>{in_html(label)}</title>{middle}{''.join(lines)}</svg>"
    )


def _height(error: float) -> float:
    decades = min(max(math.log10(max(error, 0.5) / 0.5), 0.0), _MOST)
    return _HEIGHT - 2 - decades / _MOST * (_HEIGHT - 4)


def _row(cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"
