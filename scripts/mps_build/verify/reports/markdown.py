"""A record as Markdown, for a job summary."""

from __future__ import annotations

from collections.abc import Sequence

from mps_build.common.console import as_called
from mps_build.common.plain_text import (
    Markdown,
    fence_of,
    in_code,
    in_html,
    markdown_link,
    markdown_table,
    plain,
    with_code,
)
from mps_build.common.records.device_record import FAILED, Case, Record

from .words import by_layer, facts, found_in, headline, issue_link, sentence

_SHOWN, _SCRIPTS = 50, 10


def render(record: Record) -> str:
    """Return the record as Markdown; its first line is what the run can say at all."""
    parts = [with_code(record.statement), "", f"## {headline(record)}", "", with_code(sentence(record)), ""]
    if record.hint and record.exit_code:
        parts += [f"Next: {with_code(as_called(record.hint))}", ""]
    parts += _table(("", ""), [(Markdown(f"**{name}**"), _short(value)) for name, value in facts(record)])
    if record.cases:
        parts += ["### Layers", "", *_layers(record)]
    parts += _findings(record)
    known = {row.id: row for row in record.known_issues}
    rows = []
    for case in record.cases:
        if case.outcome in ("known", "unexpected_pass") and case.known_issue in known:
            row = known[case.known_issue or ""]
            rows.append(
                (
                    in_code(case.id),
                    case.outcome.replace("_", " "),
                    markdown_link(row.id, row.link or ""),
                    row.since or row.kind,
                    _short(f"{row.title}: {row.reason}"),
                )
            )
    if rows:
        parts += ["### Known issues", "", *_table(("case", "outcome", "issue", "since", "what"), rows[:_SHOWN])]
    parts += [f"> {with_code(note)}\n" for note in record.notes]
    return plain("\n".join(parts) + "\n")


def _layers(record: Record) -> list[str]:
    own = ("own_fault",) if any(case.outcome == "own_fault" for case in record.cases) else ()
    columns = ("passed", *FAILED, *own, "known", "unexpected_pass", "skipped")
    rows = []
    for layer, cases in by_layer(record.cases).items():
        counts = [str(sum(case.outcome == column for case in cases) or "") for column in columns]
        rows.append((layer, *counts))
    return _table(("layer", *(column.replace("_", " ") for column in columns)), rows)


def _findings(record: Record) -> list[str]:
    groups = found_in(record, (case for case in record.cases if case.is_new))
    if not groups:
        return []
    rows = [
        (in_code(one.id), in_code(one.words), _issues(one.first), one.first.outcome, _short(one.first.reason))
        for one in groups[:_SHOWN]
    ]
    parts = ["### New findings", "", *_table(("finding", "found by", "issue", "outcome", "what"), rows)]
    if len(groups) > _SHOWN:
        parts += [f"and {len(groups) - _SHOWN} more: see the record", ""]
    for one in groups[:_SCRIPTS]:
        if one.finding is not None and one.finding.script:
            fence = fence_of(one.finding.script)
            head = f"<details><summary>{in_html(one.id)}</summary>"
            parts += [head, "", f"{fence}python", one.finding.script.rstrip(), fence, "", "</details>", ""]
    return parts


def _issues(case: Case) -> Markdown:
    links = [(issue, issue_link(issue)) for issue in case.issue]
    return Markdown(", ".join(markdown_link(f"#{issue}" if link else issue, link or "") for issue, link in links))


def _short(text: str | None) -> str:
    return " ".join((text or "").split())[:300]


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    return [*markdown_table(columns, rows), ""]
