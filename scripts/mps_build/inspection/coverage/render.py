"""Coverage as tables for a terminal and as the body of a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ...common.page import section, table
from ...common.plain_text import in_html
from .model import Facts
from .rules import (
    ALWAYS,
    ELSEWHERE,
    EXPLICIT,
    IMPLICIT,
    KERNEL,
    ON_DEMAND,
    REFUSED,
    STATUSES,
    Change,
    Counts,
    Measured,
    Row,
    count,
    gaps,
)

WORDS = {
    KERNEL: "MPS kernel",
    EXPLICIT: "composite, explicit",
    IMPLICIT: "composite, implicit",
    ALWAYS: "falls back always",
    ON_DEMAND: "falls back on demand",
    REFUSED: "refused",
    ELSEWHERE: "not for dense tensors",
    "": "absent",
}
TONES = {
    KERNEL: "good",
    EXPLICIT: "soft",
    IMPLICIT: "soft",
    ALWAYS: "known",
    ON_DEMAND: "bad",
    REFUSED: "bad",
    ELSEWHERE: "idle",
    "": "idle",
}
_MEASURED_TONES = {"wrong": "bad", "suspect": "known", "refused": "bad", "fell back": "known", "right": "good"}
CSS = """
p.above { margin: 10px 0 4px; } .bar.tall { height: 26px; border-radius: 8px; } .bar.tall span { min-width: 2px; }
.names { columns: 4 220px; margin: 0; padding: 0; list-style: none; } .names li { break-inside: avoid; }
td .keys { color: var(--soft); font-size: 13px; overflow-wrap: anywhere; } td.word { white-space: nowrap; }
#cases td:first-child { width: 32%; }
"""


def table_rows(sides: Sequence[Counts]) -> list[tuple[str, ...]]:
    """Return status, then overloads and operators of each side, then what the status means."""
    rows = []
    for status, meaning in STATUSES.items():
        numbers = [
            str(each) for side in sides for each in (side.overloads.get(status, 0), side.families.get(status, 0))
        ]
        if any(number != "0" for number in numbers):
            rows.append((WORDS[status], *numbers, meaning))
    return rows


def summary(facts: Facts, counts: Counts) -> str:
    """Return the one sentence that matters.

    Of what has a CPU kernel, since that is what a Mac's user could run before.
    """
    return (
        f"{facts.label}: MPS runs {counts.cpu_on_mps} of the {counts.cpu} overloads that have a CPU kernel "
        f"({counts.share:.1%}); {counts.overloads.get(KERNEL, 0)} have a kernel of its own"
    )


def transitions(changes: Sequence[Change]) -> list[tuple[str, str, str, str]]:
    """Return (status before, after, how many, examples), the most frequent first."""
    found = Counter((change.before, change.after) for change in changes)
    rows = []
    for (before, after), number in found.most_common():
        names = [change.name for change in changes if (change.before, change.after) == (before, after)]
        more = f" and {number - 3} more" if number > 3 else ""
        rows.append((before, after, str(number), ", ".join(names[:3]) + more))
    return rows


def page_body(
    facts: Facts,
    rows: Sequence[Row],
    measured: Mapping[str, Measured],
    against: tuple[Facts, Sequence[Row], Sequence[Change]] | None,
    statement: str,
) -> str:
    """Return what stands inside the page's main part."""
    counts = count(tuple(rows))
    there = count(tuple(against[1])) if against else None
    parts = [f'<p class="statement">{in_html(statement)}</p>', _headline(facts, counts, against and against[0], there)]
    sides = [(facts, counts)] + ([(against[0], there)] if against and there else [])
    parts.append(section("How operators reach the GPU", "".join(_bar(*side) for side in sides) + _legend()))
    parts.append(section("Counts", _counts([side for _, side in sides], _names([side for side, _ in sides]))))
    if against:
        parts.append(_changes(facts, against))
    parts += [_by_hand(facts), _gaps(rows), _kernels(facts), _doubts(facts)]
    parts.append(_all(rows, measured))
    return "\n".join(part for part in parts if part)


def _headline(facts: Facts, counts: Counts, other: Facts | None, there: Counts | None) -> str:
    share = f"{counts.share:.1%}" + (f" → {there.share:.1%}" if there else "")
    on_demand = counts.overloads.get(ON_DEMAND, 0)
    reported = (
        f"<p>{in_html(summary(facts, counts))}; {on_demand} are refused unless PYTORCH_ENABLE_MPS_FALLBACK=1 "
        "sends them to the CPU.</p>"
    )
    if other and there:
        reported += f"<p>{in_html(summary(other, there))}; {there.overloads.get(ON_DEMAND, 0)} are refused.</p>"
    return f'<div class="verdict soft"><h1>{share} of overloads with a CPU kernel run on MPS</h1>{reported}</div>'


def _bar(facts: Facts, counts: Counts) -> str:
    spans = "".join(
        f'<span class="{TONES[status]}" style="flex:{number}" title="{in_html(WORDS[status])}: {number}"></span>'
        for status in STATUSES
        if (number := counts.overloads.get(status, 0))
    )
    return f'<p class="above">{in_html(facts.label)}</p><div class="bar tall">{spans}</div>'


def _legend() -> str:
    words = {"MPS kernel": "good", "composite": "soft", "falls back always": "known"}
    words |= {"falls back on demand, or refused": "bad", "not for dense tensors": "idle"}
    return '<p class="legend">' + "".join(f'<i class="{tone}"></i>{word}' for word, tone in words.items()) + "</p>"


def _names(sides: Sequence[Facts]) -> list[str]:
    """Return the versions, which are short; the labels where versions do not tell the sides apart."""
    versions = [side.version for side in sides]
    return versions if all(versions) and len(set(versions)) == len(sides) else [side.label for side in sides]


def _counts(sides: Sequence[Counts], labels: Sequence[str]) -> str:
    columns = [f"{label}: {what}" for label in labels for what in ("overloads", "operators")]
    body = [
        f'<tr><td class="word">{in_html(name)}</td>'
        + "".join(f'<td class="number">{number}</td>' for number in numbers)
        + f'<td class="what">{in_html(meaning)}</td></tr>'
        for name, *numbers, meaning in table_rows(sides)
    ]
    return table(("status", *columns, "meaning"), body, numbers=columns)


def _changes(facts: Facts, against: tuple[Facts, Sequence[Row], Sequence[Change]]) -> str:
    other, _, changes = against
    title = f"From {facts.label} to {other.label}"
    if not changes:
        return section(title, "<p>Every operator has the same status.</p>", "0 differences")
    body = [
        f'<tr><td>{_tag(before)}</td><td>{_tag(after)}</td><td class="number">{number}</td>'
        f'<td class="what">{in_html(names)}</td></tr>'
        for before, after, number, names in transitions(changes)
    ]
    each = [
        f"<tr><td><code>{in_html(change.name)}</code></td><td>{_tag(change.before)}</td><td>{_tag(change.after)}</td>"
        f'<td class="what">{in_html(change.reason)}</td></tr>'
        for change in changes
    ]
    details = table(("operator", "before", "after", "why"), each)
    content = table(("before", "after", "overloads", "for example"), body, numbers=("overloads",))
    content += f"<details><summary>all {len(changes)}, with the reason of each</summary>{details}</details>"
    return section(title, content, f"{len(changes)} differences")


def _by_hand(facts: Facts) -> str:
    body = [
        f"<tr><td><code>{in_html(each.operator)}</code></td><td>{each.key}</td>"
        f"<td>{'falls back to the CPU' if each.falls_back else 'refuses' if each.refuses else 'a kernel'}</td>"
        f'<td class="what">{in_html(each.where)}</td></tr>'
        for each in facts.by_hand
    ]
    head = ("operator", "key", "what", "where")
    return section("Registered by hand", table(head, body), str(len(facts.by_hand))) if body else ""


def _gaps(rows: Sequence[Row]) -> str:
    names = [row.name for row in gaps(tuple(rows))]
    items = "".join(f"<li><code>{in_html(name)}</code></li>" for name in names)
    content = f'<ul class="names">{items}</ul>'
    if len(names) > 60:
        content = f"<details><summary>show the names</summary>{content}</details>"
    title = "CPU and CUDA have a kernel, MPS does not run it"
    return section(title, content, f"{len(names)} overloads") if names else ""


def _kernels(facts: Facts) -> str:
    body = [
        f'<tr><td><code>{in_html(name)}</code></td><td class="number">{len(kernels)}</td>'
        f'<td class="what">{in_html(", ".join(kernels[:6]))}</td></tr>'
        for name, kernels in sorted(facts.kernels.items())
    ]
    head = ("section", "kernels", "for example")
    return section("Metal kernels in the wheel", table(head, body, numbers=("kernels",))) if body else ""


def _doubts(facts: Facts) -> str:
    items = "".join(f"<li>{in_html(text)}</li>" for text in (*facts.checks, *facts.notes))
    return section("What the witnesses do not agree on, or could not read", f"<ul>{items}</ul>") if items else ""


def _all(rows: Sequence[Row], measured: Mapping[str, Measured]) -> str:
    head = ("operator", "status", "how", "kernels for", *(("measured",) if measured else ()))
    body = [
        f'<tr data-outcome="{row.status}"><td><code>{in_html(row.name)}</code></td><td>{_tag(row.status)}</td>'
        f'<td class="what">{in_html(_how(row))}</td>'
        f'<td><span class="keys">{in_html(", ".join(row.keys))}</span></td>'
        + (f"<td>{_measured(measured.get(row.name))}</td>" if measured else "")
        + "</tr>"
        for row in rows
    ]
    return section("All operators", table(head, body, name="cases"), f"{len(rows)} overloads")


def _how(row: Row) -> str:
    """Return the road in a few words; which composite it is stands among the keys."""
    return f"calls {row.through}" if row.through else "" if row.how.startswith("Composite") else row.how


def _measured(found: Measured | None) -> str:
    if found is None:
        return ""
    tone = _MEASURED_TONES[found.word]
    return f'<span class="tag {tone}" title="{found.passed} passed, {found.failed} failed">{found.word}</span>'


def _tag(status: str) -> str:
    return f'<span class="tag {TONES[status]}">{WORDS[status]}</span>'
