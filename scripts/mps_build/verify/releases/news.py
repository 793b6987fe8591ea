"""What is new in a release beside an older one: outcomes of cases, registrations, selectors, kernels; on one page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mps_build.common import page
from mps_build.common.plain_text import in_code, in_html, in_markdown, markdown_table, plain
from mps_build.common.records.device_record import Record
from mps_build.inspection.coverage.render import WORDS, transitions
from mps_build.inspection.coverage.rules import Change as Moved
from mps_build.kernels.report.difference import Difference
from mps_build.simulation.official.inventory import Lacking

from ..reports.side_by_side import Change, Comparison, compare_records, tables
from .table import fails_below, short

Part = tuple[str, Sequence[str], Sequence[Sequence[str]]]
_SHOWN = 40
_UNBROKEN = re.compile(r"\w{36}")


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """A newer release beside an older one.

    Attributes:
        cases: what changed its outcome; of a case that only one of them ran nothing follows.
        registrations: operators that MPS runs in another way than before.
        lacking: what the newer one sends and the software Metal has no rule for.
    """

    older: Record
    newer: Record
    cases: Comparison
    registrations: Sequence[Moved]
    kernels: Difference
    lacking: Lacking

    @property
    def statement(self) -> str:
        """What the page can and cannot say, in its first line."""
        return f"What is new since PyTorch {self.older.torch.version}. {self.newer.statement}"

    @property
    def newly_wrong(self) -> tuple[Change, ...]:
        """The cases that were right and are wrong, but for what is ours."""
        limits = {row.id for row in self.newer.known_issues if row.kind == "limit"}
        ours = {case.id for case in self.newer.cases if fails_below(case) or case.known_issue in limits}
        return tuple(change for change in self.cases.newly_failing if change.id not in ours)

    @property
    def summary(self) -> str:
        """All of it in one sentence."""
        missing = (*self.lacking.classes, *self.lacking.symbols, *self.lacking.selectors)
        return (
            f"{len(self.newly_wrong)} cases newly wrong, {len(self.cases.newly_passing)} newly right; "
            f"{len(self.registrations)} operators registered in another way; {len(self.kernels.new)} kernels new, "
            f"{len(self.kernels.changed)} changed, {len(self.kernels.gone)} gone; {len(missing)} names of Metal "
            "without a rule here"
        )

    def document(self) -> dict[str, Any]:
        """Return the JSON form."""
        lists = {name: list(getattr(self.kernels, name)) for name in ("new", "changed", "gone", "unreadable")}
        return {
            "older": _named(self.older),
            "newer": _named(self.newer),
            "cases": self.cases.document(),
            "newly_wrong": [change.id for change in self.newly_wrong],
            "registrations": [change.document() for change in self.registrations],
            "kernels": lists,
            "lacking": {name: list(getattr(self.lacking, name)) for name in ("classes", "symbols", "selectors")},
        }

    def parts(self) -> list[Part]:
        """Return title, columns and rows of each part that holds anything."""
        # Times of an emulator say nothing, nor does what rounding another compiler's code has.
        newly_wrong, newly_right = map(_published, (self.newly_wrong, self.cases.newly_passing))
        shown = replace(self.cases, newly_failing=newly_wrong, newly_passing=newly_right, error_growth=(), slower=())
        ours = [change for change in self.cases.newly_failing if change not in self.newly_wrong]
        moved = [(WORDS[before], WORDS[after], *rest) for before, after, *rest in transitions(self.registrations)]
        families = [
            (each.name, *(str(number or "") for number in (each.changed, each.new, each.gone)))
            for each in self.kernels.families
        ]
        missing = [
            (what, name)
            for what, names in (
                ("class", self.lacking.classes),
                ("symbol", self.lacking.symbols),
                ("selector", self.lacking.selectors),
            )
            for name in names
        ]
        parts: list[Part] = [
            *tables(shown),
            (
                "Newly failing by a fault of ours: nothing follows",
                ("case", "what"),
                [(change.id, change.reason or "") for change in _published(ours)],
            ),
            ("Operators that MPS runs in another way", ("from", "to", "overloads", "which"), moved),
            ("Each of them", ("operator", "why"), [(each.name, each.reason) for each in self.registrations]),
            ("Metal kernels by family", ("family", "changed", "new", "gone"), families),
            ("Without a rule in the software Metal", ("what", "name"), missing),
        ]
        return [part for part in parts if part[2]]


def news_of(
    older: Record, newer: Record, *, registrations: Sequence[Moved], kernels: Difference, lacking: Lacking
) -> News:
    """Return what is new; cases are compared by their ids."""
    return News(
        older=older,
        newer=newer,
        cases=compare_records(older, newer),
        registrations=registrations,
        kernels=kernels,
        lacking=lacking,
    )


def markdown(news: News, *, command: str) -> str:
    """Return the page as Markdown, each table cut to what a person reads; the JSON has all."""
    parts = [f"# {in_markdown(_title(news))}", "", f"{in_code(command)} made this.", ""]
    parts += [in_markdown(news.statement), "", f"**{in_markdown(news.summary)}.**", ""]
    for title, columns, rows in news.parts():
        parts += [f"## {in_markdown(title)}", "", *markdown_table(columns, _cut(rows, len(columns))), ""]
    return plain("\n".join(parts) + "\n")


def html(news: News, *, command: str) -> str:
    """Return the page as HTML that needs nothing else."""
    body = f'<p class="statement">{in_html(news.statement)}</p><h1>{in_html(_title(news))}</h1>'
    body += f"<p>{in_html(news.summary)}.</p>"
    for title, columns, rows in news.parts():
        lines = [f"<tr>{''.join(map(_td, row))}</tr>" for row in rows]
        body += page.section(title, page.table(columns, lines))
    return page.whole_page(_title(news), body, footer=f"Made by {command}")


def _td(cell: str) -> str:
    """Return a cell; a hash, and a name as long as one, may break where it must."""
    text = in_html(cell)
    return f"<td><code>{text}</code></td>" if _UNBROKEN.search(cell) else f"<td>{text}</td>"


def _published(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return changes whose words name no folder of this machine."""
    return tuple(replace(change, reason=short(change.reason)) for change in changes)


def _title(news: News) -> str:
    return f"PyTorch {news.newer.torch.version} beside {news.older.torch.version}"


def _cut(rows: Sequence[Sequence[str]], columns: int) -> list[Sequence[str]]:
    more = [(f"and {len(rows) - _SHOWN} more", *[""] * (columns - 1))] if len(rows) > _SHOWN else []
    return [*rows[:_SHOWN], *more]


def _named(record: Record) -> dict[str, Any]:
    wheel = record.torch.wheel
    return {
        "release": record.torch.version,
        "wheel": wheel.file if wheel else None,
        "sha256": wheel.sha256 if wheel else None,
        "cases": sum(case.outcome != "skipped" for case in record.cases),
    }
