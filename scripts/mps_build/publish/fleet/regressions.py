"""One issue per regression: opened when it appears, commented when it stays, closed when it is gone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mps_build.common.plain_text import code_block, in_code, in_markdown, plain
from mps_build.common.records.device_record import FAILED

LABEL = "mps-regression"
_MARKER = re.compile(r"<!-- mps-build regression (\S+) -->")
_MOST = 10  # issues a night: more failures have one cause, and get one issue


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is wrong; `key` is the same every night (recipe, where, what)."""

    key: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a night showed: what is wrong, and which keys were looked at and are well."""

    wrong: tuple[Finding, ...]
    well: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What is done to the issues; `number` is None for a new one."""

    kind: Literal["open", "comment", "close"]
    number: int | None
    title: str
    body: str


def look_at_record(record: Mapping[str, Any], *, recipe: str, place: str, run: str) -> Seen:
    """Return what one record of verify_mps shows.

    A run that ended without a verdict (a virtual GPU, an interruption) shows that, and calls nothing well.
    """
    torch = record.get("torch") or {}
    commit = str(torch.get("commit") or "an unknown commit")
    version = in_markdown(str(torch.get("version") or "unknown"))
    where = f"torch {version} at {in_markdown(commit)}, {in_markdown(place)}\n\nRun: {run}"
    verdict_key = _key(recipe, place, "verdict")
    if record.get("partial") or record.get("verdict") not in ("verified", "regressed", "known_issues_only"):
        cause = record.get("cause") or record.get("verdict")
        said = _fenced(record.get("message") or record.get("hint") or "")
        text = f"No verdict: {in_markdown(str(cause))}.\n\n{said}\n\n{where}"
        return Seen(
            wrong=(Finding(key=verdict_key, title=f"{recipe}: no verdict on {place}", text=text),), well=frozenset()
        )
    wrong, well = [], {verdict_key}
    for case in record.get("cases", []):
        key = _key(recipe, place, str(case["id"]))
        if case.get("explained"):  # as 0.2 wrote it, of a simulated device: nothing new, and not well
            continue
        if case["outcome"] in FAILED:
            said = _fenced(case.get("reason") or "")
            text = f"{in_code(str(case['id']))}: {in_markdown(str(case['outcome']))}\n\n{said}\n\n{where}"
            wrong.append(Finding(key=key, title=f"{recipe}: {_plain(case['id'])} fails on {place}", text=text))
        elif case["outcome"] in ("passed", "known", "unexpected_pass"):
            well.add(key)
    many = _key(recipe, place, "many")
    if len(wrong) > _MOST:
        names = "\n".join(f"- {in_markdown(finding.title)}" for finding in wrong[:50])
        title = f"{recipe}: {len(wrong)} cases fail on {place}"
        return Seen(wrong=(Finding(key=many, title=title, text=f"{names}\n\n{where}"),), well=frozenset(well))
    return Seen(wrong=tuple(wrong), well=frozenset(well | {many}))


def look_at_build(document: Mapping[str, Any], *, recipe: str, run: str) -> Seen:
    """Return what one `build_wheel --json` shows."""
    key = _key(recipe, "build", "build")
    if not document.get("exit_code"):
        return Seen(wrong=(), well=frozenset({key}))
    triage = document.get("triage") or {}
    cause = in_markdown(str(triage.get("cause") or "none"))
    text = f"{_fenced(document.get('error') or '')}\n\nKnown cause: {cause}\n\nRun: {run}"
    title = f"{recipe}: the build fails ({_plain(document.get('cause'))})"
    return Seen(wrong=(Finding(key=key, title=title, text=text),), well=frozenset())


def decide(seen: Iterable[Seen], open_issues: Sequence[Mapping[str, Any]]) -> list[Action]:
    """Return what to do; an issue whose key nobody looked at this time is left alone."""
    looks = list(seen)
    wrong = {finding.key: finding for each in looks for finding in each.wrong}
    well = frozenset(key for each in looks for key in each.well) - wrong.keys()
    numbers: dict[str, int] = {}
    for issue in sorted(open_issues, key=lambda issue: int(issue["number"])):
        # The last one is ours: what stands before it may quote anything.
        if keys := _MARKER.findall(str(issue.get("body") or "")):
            numbers.setdefault(keys[-1], int(issue["number"]))
    actions = []
    for key, finding in wrong.items():
        number = numbers.get(key)
        body = finding.text if number else f"{finding.text}\n\n<!-- mps-build regression {key} -->"
        kind: Literal["open", "comment"] = "comment" if number else "open"
        actions.append(Action(kind=kind, number=number, title=finding.title, body=body))
    for key, number in numbers.items():
        if key in well:
            actions.append(
                Action(kind="close", number=number, title=key, body="Fixed: the case passed in the latest run.")
            )
    return actions


def _key(recipe: str, place: str, what: str) -> str:
    return "/".join(re.sub(r"[^\w.=-]+|--+", "_", part) for part in (recipe, place, what))


def _fenced(text: str) -> str:
    """Return a text that was made elsewhere as a block that cannot end early, nor call anybody."""
    return code_block(str(text)[:4000], "text")


def _plain(text: object) -> str:
    return re.sub(r"[`@#<>\s]+", " ", plain(str(text)))[:120]
