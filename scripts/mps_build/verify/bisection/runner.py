"""Tests one subject after another: prepared, tested until a majority stands, written down, and never tested again."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from ...common.errors import UsageError
from .search import Span, Standing, Word, majority, next_probe, standing, steps_at_most
from .state import Probe, State


class CannotTest(Exception):
    """This subject cannot be tested (no build, no device): the search goes round it; its text is the reason."""


Changed = Callable[[str, str], Sequence[str] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What one run said; `timeout` is the watchdog's word."""

    word: Literal["good", "bad", "skip", "timeout"]
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A subject ready to be tested: its interpreter and its tree, where it has them, and the commit it is of.

    `wheel`: the sha256 of a wheel that is tested as it is.
    """

    subject: str
    python: Path | None = None
    tree: Path | None = None
    commit: str | None = None
    wheel: str | None = None


class Runner(Protocol):
    """Makes subjects ready, and asks them."""

    def prepare(self, subject: str) -> Prepared:
        """Return the subject ready to be tested; raise CannotTest if it cannot be had."""

    def ask(self, prepared: Prepared) -> Answer:
        """Test it once."""

    def release(self, prepared: Prepared) -> None:
        """Give back what a subject whose verdict stands no longer needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bisection:
    """One question under way: the state grows with each answer, and is saved after each.

    Args:
        changed: which kernels two subjects do not share, or None where that is not known. A subject that shares all
            with an end of what is left takes over that end's verdict; both sides of the result are tested after all.
    """

    state: State
    runner: Runner
    save: Callable[[State], None]
    tell: Callable[[str], None] = field(default=lambda text: None)
    runs: int = 3
    changed: Changed | None = None

    def verify_ends(self, span: Span) -> None:
        """Test both ends; the search makes sense only if they differ, in the right order.

        Raises:
            UsageError: they do not, or one of them cannot be tested.
        """
        wanted = {span.old: "good" if span.seek == "bad" else "bad", span.new: span.seek}
        probes = {subject: self._probe(subject) for subject in wanted}
        for subject, probe in probes.items():
            if probe.verdict in ("skip", "flaky"):
                why = "gives no majority" if probe.verdict == "flaky" else "cannot be tested"
                raise UsageError(
                    f"the end {subject} {why}: {probe.reason or ', '.join(probe.words)}",
                    hint="choose another version near it; `--fresh` discards all answers",
                )
        if [probe.verdict for probe in probes.values()] == list(wanted.values()):
            return
        both = {probe.verdict for probe in probes.values()}
        if len(both) == 1:
            raise UsageError(
                f"the ends do not differ: {span.old} and {span.new} are both {both.pop()} (each tested, majority of "
                f"{self.runs}){_reasons(probes)}",
                hint="move one end further, or test on the device and macOS where the difference was seen",
            )
        raise UsageError(
            f"the ends are swapped: {span.old} is {probes[span.old].verdict} and {span.new} is "
            f"{probes[span.new].verdict}",
            hint="swap --good and --bad to search for the regression, or keep them to search for the fix",
        )

    def search(self, span: Span) -> Standing:
        """Return what is left when nothing more can be tested."""
        may_skip = self.changed is not None
        self._forget_skipped(span)
        while True:
            if (subject := next_probe(span, self.state.verdicts())) is not None:
                found = standing(span, self.state.verdicts())
                if may_skip and self._skip(subject, found):
                    continue
                done = sum(1 for each in span.candidates if each in self.state.verdicts())
                total = steps_at_most(len(span.candidates))
                self.tell(f"{subject} ({len(found.suspects)} suspects, probe {done + 1} of about {total})")
                self._probe(subject)
                continue
            found = standing(span, self.state.verdicts())
            sides = [each for each in (found.last_old, found.first_new) if each in self.state.probes]
            skipped = next((each for each in sides if self.state.probes[each].as_of), None)
            if skipped is None:
                return found
            may_skip = self._ask_skipped(skipped, span) and may_skip

    def _skip(self, subject: str, found: Standing) -> bool:
        """Let a subject take over the verdict of the end whose kernels it has; False if it must be tested."""
        assert self.changed is not None
        ends = [each for each in (found.last_old, found.first_new) if each in self.state.probes]
        same = [each for each in ends if self.changed(subject, each) == ()]
        if len(same) != 1:  # the kernels of both ends: something else decides
            return False
        verdict = self.state.probes[same[0]].verdict
        reason = f"not tested: the operator's kernels are those of {same[0]}"
        self.state.probes[subject] = Probe(verdict=verdict, reason=reason, as_of=same[0])
        self.save(self.state)
        self.tell(f"{subject}: {reason}, which is {verdict}")
        return True

    def _ask_skipped(self, subject: str, span: Span) -> bool:
        """Test a subject that was skipped; if it answers otherwise, all that were skipped are forgotten: False."""
        guessed = self.state.probes.pop(subject)
        verdict = self._probe(subject).verdict
        if {guessed.verdict, verdict} != {"good", "bad"}:
            return True
        self.tell(f"{subject} is {verdict} with the kernels of {guessed.as_of}: host code decides, none is skipped now")
        self._forget_skipped(span)
        return False

    def _forget_skipped(self, span: Span) -> None:
        for subject in span.candidates:
            if subject in self.state.probes and self.state.probes[subject].as_of:
                del self.state.probes[subject]

    def confirm(self, span: Span, found: Standing) -> str:
        """Return what speaks against a result at the edge of the span, whose ends were taken from elsewhere.

        What a wheel answers and what a tree built here answers may differ: by flags, compilers, or the macOS.
        """
        other = "good" if span.seek == "bad" else "bad"
        for subject, wanted in ((found.last_old, other), (found.first_new, span.seek)):
            verdict = self._probe(subject).verdict
            if verdict != wanted:
                said = "cannot be tested here" if verdict in ("skip", "flaky") else f"is {verdict} when built here"
                return f"not confirmed: {subject} {said}, and its wheel was {wanted}"
        return ""

    def _probe(self, subject: str) -> Probe:
        """Return the subject's probe, from the state if it is finished, else by going on from where it stopped."""
        probe = self.state.probes.setdefault(subject, Probe())
        if probe.verdict is not None:
            return probe
        began = time.monotonic()
        try:
            prepared = self.runner.prepare(subject)
        except CannotTest as reason:
            probe.words.append("skip")
            probe.reason, probe.verdict = str(reason), "skip"
        else:
            probe.commit, probe.wheel = prepared.commit, prepared.wheel
            while (verdict := majority(probe.words, self.runs)) is None:
                answer = self.runner.ask(prepared)
                probe.words.append(self._word(answer, probe))
                probe.reason = answer.reason or probe.reason
                self.save(self.state)
            probe.verdict = verdict
            self.runner.release(prepared)
        probe.seconds += round(time.monotonic() - began, 2)
        self.save(self.state)
        times = "" if len(set(probe.words)) == 1 else f" of {', '.join(probe.words)}"
        self.tell(f"{subject}: {probe.verdict}{times}{f' ({probe.reason})' if probe.reason else ''}"[:300])
        return probe

    def _word(self, answer: Answer, probe: Probe) -> Word:
        """Return how a run counts: a time-out is bad, unless an end that answers in time is not to be had."""
        if answer.word != "timeout":
            return answer.word
        probe.timeouts += 1
        good_end = self.state.probes.get(self.state.good)
        return "skip" if good_end is not None and good_end.timeouts else "bad"


def _reasons(probes: dict[str, Probe]) -> str:
    said = [f"\n  {subject}: {probe.reason}" for subject, probe in probes.items() if probe.reason]
    return "".join(said)[:600]
