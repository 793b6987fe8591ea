"""A bisection as people read it: the answer, the suspects with their links, every probe; Markdown and JSON."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...common.plain_text import in_code, in_markdown, markdown_link, markdown_table, plain, with_code
from ..reports.words import plural
from .search import Standing, steps_at_most
from .state import Stage, State
from .versions import parse_version

_PYTORCH = "https://github.com/pytorch/pytorch"
_GITHUB = re.compile(r"github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """One subject that may be the cause; `link` is empty where there is nothing to open."""

    subject: str
    title: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What one stage found."""

    stage: Stage
    standing: Standing
    suspects: tuple[Suspect, ...]
    comparison: str = ""

    @property
    def statement(self) -> str:
        """The answer in one sentence."""
        seek, what = self.stage.seek, "version" if self.stage.kind == "versions" else "commit"
        if self.standing.exact:
            return f"the first {seek} {what} is {self.standing.first_new} ({self.standing.last_old} is the one before)"
        return (
            f"the first {seek} {what} is one of {len(self.suspects)}, because those between cannot be tested: after "
            f"{self.standing.last_old}, up to {self.standing.first_new}"
        )


def address_of(remote: str) -> str:
    """Return the web address of a repository on GitHub; empty for any other.

    >>> address_of("git@github.com:pytorch/pytorch.git")
    'https://github.com/pytorch/pytorch'
    """
    match = _GITHUB.search(remote)
    return f"https://github.com/{match[1]}" if match else ""


def finding(stage: Stage, standing: Standing, *, address: str, title: Callable[[str], str], state: State) -> Finding:
    """Return what a stage found, with links: a commit's own (and its pull request's), a release's, a comparison."""
    suspects = tuple(_suspect(stage, subject, address, title) for subject in standing.suspects)
    ends = (_commit(stage, standing.last_old, state), _commit(stage, standing.first_new, state))
    base = address if stage.kind == "commits" else _PYTORCH
    comparison = f"{base}/compare/{ends[0]}...{ends[1]}" if base and all(ends) else ""
    return Finding(stage=stage, standing=standing, suspects=suspects, comparison=comparison)


def document(state: State, findings: tuple[Finding, ...]) -> dict[str, Any]:
    """Return the whole as JSON values."""
    return {
        "question": state.question,
        "good": state.good,
        "bad": state.bad,
        "stages": [
            {
                "kind": each.stage.kind,
                "statement": each.statement,
                "exact": each.standing.exact,
                "last_old": each.standing.last_old,
                "first_new": each.standing.first_new,
                "suspects": [
                    {"subject": one.subject, "title": one.title, "link": one.link or None} for one in each.suspects
                ],
                "comparison": each.comparison or None,
                "candidates": len(each.stage.candidates),
                "probes": probes_of(state, each.stage),
                "skipped": skipped_of(state, each.stage),
                "steps_at_most": steps_at_most(len(each.stage.candidates)),
                "note": each.stage.note or None,
            }
            for each in findings
        ],
        "probes": {subject: probe.model_dump() for subject, probe in state.probes.items()},
    }


def probes_of(state: State, stage: Stage) -> int:
    """Return how many of a stage's candidates were tested; the two ends are not among them."""
    return sum(1 for subject in stage.candidates if subject in state.probes and not state.probes[subject].as_of)


def skipped_of(state: State, stage: Stage) -> int:
    """Return how many of a stage's candidates were not tested, since another has the same kernels."""
    return sum(1 for subject in stage.candidates if subject in state.probes and state.probes[subject].as_of)


def cost(state: State, stage: Stage) -> str:
    """Return how many of a stage's candidates were tested, and how many were not."""
    skipped = skipped_of(state, stage)
    text = (
        f"{plural(probes_of(state, stage), 'probe')} for {plural(len(stage.candidates), 'candidate')}, besides the ends"
    )
    return f"{text}; {skipped} not tested, as another has the same kernels" if skipped else text


def rehearsal(state: State) -> str:
    """Return what answers of a simulated device do not say; empty where the device is real."""
    if not (system := state.question.get("simulated")):
        return ""
    return (
        f"The official macOS wheels on Linux, answering as on {system}. A rehearsal: it says nothing about a GPU's "
        "numbers, Apple's MPSGraph or time."
    )


def rows(state: State) -> list[tuple[str, str, str, str]]:
    """Return a row for each probe in the order of the tests: subject, verdict, runs, why."""
    return [
        (subject, probe.verdict or "not finished", " ".join(probe.words), probe.reason[:120])
        for subject, probe in state.probes.items()
    ]


def markdown(state: State, findings: tuple[Finding, ...]) -> str:
    """Return the report as Markdown."""
    lines = [f"# {in_markdown(str(state.question.get('ask', 'bisection')))}", ""]
    if rehearsed := rehearsal(state):
        lines += [rehearsed, ""]
    for each in findings:
        lines += [f"**{with_code(each.statement)}**", ""]
        lines += [f"- {_linked(one)}" for one in each.suspects]
        if each.comparison:
            lines.append(f"- {markdown_link('all changes between the two', each.comparison)}")
        if each.stage.note:
            lines.append(f"- {with_code(each.stage.note)}")
        lines += ["", f"{cost(state, each.stage)}.", ""]
    lines += markdown_table(("tested", "verdict", "runs", "why"), rows(state))
    return plain("\n".join(lines) + "\n")


def _linked(suspect: Suspect) -> str:
    name = markdown_link(suspect.subject, suspect.link) if suspect.link else in_code(suspect.subject)
    return f"{name} {in_markdown(suspect.title)}".strip()


def _suspect(stage: Stage, subject: str, address: str, title: Callable[[str], str]) -> Suspect:
    if stage.kind == "commits":
        link = f"{address}/commit/{subject}" if address else ""
        return Suspect(subject=subject, title=title(subject), link=link)
    version = parse_version(subject)
    is_release = version is not None and not version.is_prerelease
    return Suspect(subject=subject, link=f"{_PYTORCH}/releases/tag/v{version.public}" if version and is_release else "")


def _commit(stage: Stage, subject: str, state: State) -> str | None:
    if stage.kind == "commits":
        return subject
    probe = state.probes.get(subject)
    version = parse_version(subject)
    if probe is not None and probe.commit:
        return probe.commit
    return f"v{version.public}" if version and not version.is_prerelease else None
