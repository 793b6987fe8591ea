"""A record as one HTML page that needs nothing else: no network, no file beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mps_build.common.console import as_called
from mps_build.common.page import section, table, whole_page
from mps_build.common.plain_text import html_link, in_html
from mps_build.common.records.device_record import Case, Record

from .words import Found, by_layer, facts, found_in, headline, issue_link, plural, sentence, share_of_bound

_TONES = {
    "passed": "good",
    "failed": "bad",
    "crashed": "bad",
    "timeout": "bad",
    "known": "known",
    "unexpected_pass": "known",
    "skipped": "idle",
    "own_fault": "bad",
}
_VERDICT_TONES = {"verified": "good", "regressed": "bad", "known_issues_only": "known"}
_SLOWEST = 10
_CSS = "td.shares { width: 55%; }\n"


def render(record: Record) -> str:
    """Return the page; its first line of text is what the run can say at all."""
    body = "\n".join(
        (
            f'<p class="statement">{in_html(record.statement)}</p>',
            _verdict(record),
            _bad(record),
            _known(record),
            _layers(record),
            _facts(record),
            _slowest(record),
            _all_cases(record),
            f"<footer>Written by {in_html(record.tool)} from a record of schema {in_html(record.schema_)}.</footer>",
        )
    )
    title = f"{headline(record)}: torch {record.torch.version or ''} on {record.device}"
    return whole_page(title, body, css=_CSS)


def _verdict(record: Record) -> str:
    tone = "idle" if record.partial else _VERDICT_TONES.get(record.verdict, "idle")
    following = (
        f'<p class="next">Next: {_with_code(as_called(record.hint))}</p>' if record.hint and record.exit_code else ""
    )
    notes = "".join(f'<p class="next">{in_html(note)}</p>' for note in record.notes)
    return (
        f'<div class="verdict {tone}"><h1>{in_html(headline(record))}</h1>'
        f"<p>{in_html(sentence(record))}</p>{following}{notes}</div>"
    )


def _with_code(text: str) -> str:
    """Return text with what stands in back quotes as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", in_html(text))


def _bad(record: Record) -> str:
    groups = found_in(record, (case for case in record.cases if case.is_new))
    rows = [
        f"<tr><td><code>{in_html(one.id)}</code></td><td>{in_html(one.words)}</td><td>{_issues(one.first)}</td>"
        f'<td>{_tag(one.first)}</td><td class="what">{_reason(one.first)}{_script(one)}</td></tr>'
        for one in groups
    ]
    columns = ("finding", "found by", "issue", "outcome", "what")
    return _section("New findings", columns, rows, plural(len(groups), "finding"))


def _script(one: Found) -> str:
    if one.finding is None or not one.finding.script:
        return ""
    return f"<details><summary>script</summary><pre>{in_html(one.finding.script)}</pre></details>"


def _known(record: Record) -> str:
    known = {row.id: row for row in record.known_issues}
    rows = []
    for case in record.cases:
        row = known.get(case.known_issue or "")
        if row is None or case.outcome not in ("known", "unexpected_pass"):
            continue
        fixed = f"; fixed by {row.fixed_by}" if row.fixed_by else ""
        rows.append(
            f"<tr><td><code>{in_html(case.id)}</code></td><td>{_tag(case)}</td>"
            f"<td>{html_link(row.link or '', in_html(row.id))}</td><td>{in_html(row.since or row.kind)}</td>"
            f'<td class="what">{in_html(row.title)}: {in_html(row.reason)}{in_html(fixed)}</td></tr>'
        )
    columns = ("case", "outcome", "issue", "since", "what")
    return _section("Known issues", columns, rows, plural(len(rows), "case"))


def _layers(record: Record) -> str:
    rows = []
    for layer, cases in by_layer(record.cases).items():
        shares = [
            (tone, sum(_TONES[case.outcome] == tone for case in cases)) for tone in ("good", "known", "bad", "idle")
        ]
        bar = "".join(f'<span class="{tone}" style="flex:{number}"></span>' for tone, number in shares if number)
        seconds = sum(case.seconds or 0.0 for case in cases)
        rows.append(
            f'<tr><td>{in_html(layer)}</td><td class="shares"><div class="bar">{bar}</div></td>'
            f'<td class="number">{shares[0][1]} of {len(cases)}</td><td class="number">{seconds:.1f} s</td></tr>'
        )
    legend = (
        '<p class="legend"><i class="good"></i>passed<i class="known"></i>known issue<i class="bad"></i>new failure'
        '<i class="idle"></i>skipped</p>'
    )
    shown = table(("layer", "", "passed", "time"), rows, numbers=("passed", "time"))
    return section("Layers", shown + legend) if rows else ""


def _facts(record: Record) -> str:
    pairs = [f"<dt>{in_html(name)}</dt><dd>{in_html(value)}</dd>" for name, value in facts(record)]
    return section("What was run on what", f"<dl>{''.join(pairs)}</dl>") if pairs else ""


def _slowest(record: Record) -> str:
    cases = sorted((case for case in record.cases if case.seconds), key=lambda case: -(case.seconds or 0))[:_SLOWEST]
    rows = [
        f"<tr><td><code>{in_html(case.id)}</code></td><td>{in_html(case.layer)}</td>"
        f'<td class="number">{_seconds(case)}</td></tr>'
        for case in cases
    ]
    return _section("Slowest cases", ("case", "layer", "time"), rows)


def _all_cases(record: Record) -> str:
    rows = [
        f'<tr data-outcome="{case.outcome}"><td><code>{in_html(case.id)}</code>{_why_skipped(case)}</td>'
        f"<td>{in_html(case.layer)}</td>"
        f"<td>{_issues(case)}</td><td>{_tag(case)}</td>"
        f'<td class="number">{_meter(case)}</td><td class="number">{_seconds(case)}</td></tr>'
        for case in record.cases
    ]
    columns = ("case", "layer", "issue", "outcome", "error / allowed", "time")
    return _section("All cases", columns, rows, plural(len(rows), "case"), "cases")


def _reason(case: Case) -> str:
    """Return why a case failed, with its line ends; a text that was quoted on its way has them as two characters."""
    return in_html((case.reason or "").replace("\\n", "\n"))


def _why_skipped(case: Case) -> str:
    return f'<br><small class="why">{_reason(case)}</small>' if case.outcome == "skipped" and case.reason else ""


def _meter(case: Case) -> str:
    share = share_of_bound(case)
    if share is None:
        return ""
    tone = "bad" if share > 1 else "known" if share > 0.5 else "good"
    return f'{share:.3g}<span class="meter {tone}"><span style="width:{min(share, 1.0) * 100:.0f}%"></span></span>'


def _seconds(case: Case) -> str:
    return f"{case.seconds:.2f} s" if case.seconds is not None else ""


def _tag(case: Case) -> str:
    return f'<span class="tag {_TONES[case.outcome]}">{case.outcome.replace("_", " ")}</span>'


def _issues(case: Case) -> str:
    links = [(issue, issue_link(issue)) for issue in case.issue]
    return ", ".join(html_link(link, f"#{in_html(issue)}") if link else in_html(issue) for issue, link in links)


def _section(title: str, columns: Sequence[str], rows: Sequence[str], aside: str = "", name: str = "") -> str:
    """Return a section with its table, or nothing where there is nothing to show."""
    numbers = ("passed", "time", "error / allowed")
    return section(title, table(columns, rows, name=name, numbers=numbers), aside) if rows else ""
