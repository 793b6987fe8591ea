"""The table of bugs and releases as people read it: Markdown and HTML."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from mps_build.common import page
from mps_build.common.plain_text import Markdown, html_link, in_code, in_html, markdown_link, markdown_table, plain

from .table import Cell, Column, Row, Status, Table

MARKS = {"wrong": "x", "right": "o", "absent": "–", "unclear": "?", "not_run": ""}
_TONES = {"wrong": "bad", "right": "good", "absent": "idle", "unclear": "known", "not_run": "idle"}
LEGEND = (
    "x: wrong. o: right. –: the release does not have what is tested. ?: a fault of ours, or wrong in another way, so "
    "nothing follows. Empty: not run. !: known_issues.yaml claims something else."
)
# Twenty releases stand side by side at a desk.
_CSS = (
    "main { max-width: 1400px; } #seen td:first-child { min-width: 7.5em; }\n"
    "#seen summary { color: var(--ink); margin: 0; } #seen details pre { margin: 0; }\n"
)
_SEEN: tuple[Status, ...] = ("differs", "agrees", "new")


def statement(table: Table) -> str:
    """Return the first line: what the table can and cannot say."""
    return (
        f"The official macOS wheels on Linux, answering as on macOS {table.macos}. A rehearsal: it says nothing about "
        "a GPU's numbers, Apple's MPSGraph or time."
    )


def summary(table: Table) -> str:
    """Return how many bugs were seen, and how many were not, in one sentence."""
    said = {
        "agrees": "seen as known_issues.yaml says",
        "differs": "seen, in other releases than it says",
        "not_seen": "not seen in any release that it names",
        "not_here": "not to be seen here",
        "not_run": "of which no release that it names, or no case, was run",
        "new": "issues or cases that it does not name",
    }
    counts = {status: sum(row.status == status for row in table.rows) for status in said}
    return ", ".join(f"{counts[status]} {words}" for status, words in said.items() if counts[status])


def heads(table: Table) -> tuple[str, ...]:
    """Return the columns' names: a release by its minor one, where no other has the same."""
    short = [".".join(each.release.split(".")[:2]) for each in table.columns]
    return tuple(
        name if short.count(name) == 1 else each.release for name, each in zip(short, table.columns, strict=True)
    )


def mark(cell: Cell) -> str:
    """Return a cell in one or two characters."""
    return MARKS[cell.word] + ("!" if cell.differs else "")


def ends(row: Row) -> tuple[str, str]:
    """Return a row's first bad and first good release; what is older than all that were run is not known."""
    if row.first_bad is None:
        return "", ""
    return row.first_bad if row.last_good else f"{row.first_bad} or before", row.first_good or "not seen"


def wrong_in(row: Row) -> str:
    """Return the releases in which a bug was seen, those that stand beside each other as a range."""
    spans: list[list[str]] = []
    before = ""
    for release, cell in row.cells.items():
        if cell.word == "wrong":
            spans = [*spans[:-1], [*spans[-1], release]] if before == "wrong" else [*spans, [release]]
        before = cell.word
    return ", ".join(span[0] if len(span) == 1 else f"{span[0]}..{span[-1]}" for span in spans)


def rows_seen(table: Table) -> list[Row]:
    """Return the rows that were wrong somewhere: those that differ from what was claimed first."""
    return [row for status in _SEEN for row in table.with_status(status)]


def markdown(table: Table, *, command: str) -> str:
    """Return the page as Markdown; `command` made it."""
    parts = ["# Which bug is in which release", "", f"{in_code(command)} made this. {statement(table)}", ""]
    parts += [f"{summary(table)}. {LEGEND}", ""]
    columns = ("issue", "what", "claimed", "first bad", "first good", *heads(table))
    body = [
        (
            markdown_link(row.id, row.link or ""),
            row.title,
            row.claimed or "",
            *ends(row),
            *(Markdown(mark(row.cells[each.release])) for each in table.columns),
        )
        for row in rows_seen(table)
    ]
    parts += [*markdown_table(columns, body), ""]
    rest: tuple[tuple[str, Status], ...] = (
        ("Right in every release that known_issues.yaml names", "not_seen"),
        ("Not to be seen here", "not_here"),
        ("None of the releases that it names was run, or none of its cases", "not_run"),
    )
    for title, status in rest:
        if found := table.with_status(status):
            named = (f"{markdown_link(row.id, row.link or '')}{f' ({row.why})' if row.why else ''}" for row in found)
            parts += [f"{title}: {', '.join(named)}.", ""]
    parts += ["## The releases", "", *markdown_table(_RELEASE, [_release(each) for each in table.columns])]
    return plain("\n".join(parts) + "\n")


_RELEASE = ("release", "wheel's sha256", "cases", "seconds", "what became of it")


def _release(column: Column) -> tuple[str, ...]:
    state = {"run": "run", "partial": "interrupted", "not_run": "not run"}[column.state]
    said = f"{state}: {column.cause}" if column.cause else state
    if column.state == "not_run":
        return column.release, "", "", "", said
    return column.release, column.sha256 or "", str(column.cases), f"{column.seconds:.0f}", said


def html(table: Table, *, command: str) -> str:
    """Return the page as HTML that needs nothing else; a cell's title says which case, and why."""
    columns = ("issue", "what", "claimed", "first bad", "first good", *heads(table))
    seen = [_html_row(row, table) for row in rows_seen(table)]
    body = (
        f'<p class="statement">{in_html(statement(table))}</p><h1>Which bug is in which release</h1>'
        f"<p>{in_html(summary(table))}.</p><p>{in_html(LEGEND)}</p>"
        + page.section("Seen", page.table(columns, seen, name="seen", marks=heads(table)))
        + page.section("Not seen", page.table(("issue", "what", "claimed", "why"), _not_seen(table)))
        + page.section("Releases", page.table(_RELEASE, [_tr(map(in_html, _release(at))) for at in table.columns]))
    )
    return page.whole_page("Which bug is in which release", body, css=_CSS, footer=f"Made by {command}")


def how_to_see(row: Row, table: Table) -> tuple[str, str]:
    """Return what the newest release that has a bug answered, and the commands that show it and write its script."""
    release = [at for at, cell in row.cells.items() if cell.word == "wrong"][-1]
    cell = row.cells[release]
    case = shlex.quote(cell.case or "")
    lines = (
        f"nox -s verify_mps -- torch=={release} --simulated --macos {table.macos} --only {case} --record seen",
        f"nox -s repro -- seen/record.json {case}",
    )
    return f"{release}: {cell.reason or 'wrong'}", "\n".join(lines)


def _html_row(row: Row, table: Table) -> str:
    said, commands = how_to_see(row, table)
    what = f"<details><summary>{in_html(row.title)}</summary>{in_html(said)}<pre>{in_html(commands)}</pre></details>"
    cells = "".join(_html_cell(row.cells[each.release]) for each in table.columns)
    return _tr([_issue(row), what, *map(in_html, (row.claimed or "", *ends(row)))], more=cells)


def _html_cell(cell: Cell) -> str:
    said = ": ".join(filter(None, (cell.case, cell.reason)))
    shown = f'<span class="tag {_TONES[cell.word]}">{in_html(mark(cell))}</span>'
    return f'<td class=mark title="{in_html(said)}">{shown}</td>'


def _not_seen(table: Table) -> list[str]:
    words = {
        "not_seen": "right in every release that known_issues.yaml names",
        "not_here": "",
        "not_run": "not run, or none of its releases",
    }
    return [
        _tr([_issue(row), *map(in_html, (row.title, row.claimed or "", row.why or words[row.status]))])
        for row in table.with_status("not_seen", "not_here", "not_run")
    ]


def _issue(row: Row) -> str:
    return html_link(row.link or "", in_html(row.id))


def _tr(cells: Sequence[str] | map[str], *, more: str = "") -> str:
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}{more}</tr>"
