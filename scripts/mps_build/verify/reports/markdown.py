"""A record as Markdown, for a job summary."""

from __future__ import annotations

from collections.abc import Sequence

from mps_build.common.console import as_called
from mps_build.common.plain_text import Markdown, in_code, markdown_link, markdown_table, plain, with_code
from mps_build.common.records.device_record import FAILED, Case, Record

from .words import by_layer, facts, headline, issue_link, sentence

_SHOWN = 50


def render(record: Record) -> str:
    """Return the record as Markdown; its first line is what the run can say at all."""
    parts = [with_code(record.statement), "", f"## {headline(record)}", "", with_code(sentence(record)), ""]
    if record.hint and record.exit_code:
        parts += [f"Next: {with_code(as_called(record.hint))}", ""]
    parts += _table(("", ""), [(Markdown(f"**{name}**"), _short(value)) for name, value in facts(record)])
    if record.cases:
        parts += ["### Layers", "", *_layers(record)]
    parts += _cases("New failures", [case for case in record.cases if case.is_new])
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


def _cases(title: str, cases: list[Case]) -> list[str]:
    if not cases:
        return []
    rows = [(in_code(case.id), _issues(case), case.outcome, _short(case.reason)) for case in cases[:_SHOWN]]
    more = [f"and {len(cases) - _SHOWN} more: see the record", ""] if len(cases) > _SHOWN else []
    return [f"### {title}", "", *_table(("case", "issue", "outcome", "what"), rows), *more]


def _issues(case: Case) -> Markdown:
    links = [(issue, issue_link(issue)) for issue in case.issue]
    return Markdown(", ".join(markdown_link(f"#{issue}" if link else issue, link or "") for issue, link in links))


def _short(text: str | None) -> str:
    return " ".join((text or "").split())[:300]


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    return [*markdown_table(columns, rows), ""]
