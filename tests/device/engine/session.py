"""What the options ask for, made ready once per process; asks a case, judges it and writes its line."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from .budget import budget_of, words
from .cases import Case, Cases
from .compare import Mismatch
from .dispatch import dispatching, is_among, like, names_in, names_of, of_case, of_descriptions
from .estimate import estimate
from .faults import InjectedFault
from .findings import Found
from .known import Answer, explaining, load_known
from .layer import Drawn, WrongCase, named_cases
from .outcomes import OutcomeLog, judge
from .runs import Bench
from .sampler import Case as DrawnCase
from .selection import Selection, Shard, load_done, prepare_device, why_not_here
from .states import Refused, run_case

_SUITE = Path(__file__).parents[1]
# The references are small: more threads wait for each other. MKL's LU of a batch is wrong or hangs with more than one:
# https://github.com/pytorch/pytorch/issues/142815
_REFERENCE_THREADS = 1 if torch.backends.mkl.is_available() else 4


_TIME_OVER = "the time of --time is over"
# Of so few cases the time is not worth a line.
_FEW = 20


def _stated(wrong: BaseException | None) -> str:
    """Return what is wrong, without a script, which an event has beside it."""
    if isinstance(wrong, (Found, WrongCase)):
        return f"Mismatch: {wrong.brief if isinstance(wrong, Found) else wrong}"
    return "" if wrong is None else f"{type(wrong).__name__}: {wrong}"


def _place_of(error: BaseException | None) -> tuple[str, int] | None:
    """Return the line of the suite at which an error was raised, or that called what raised it."""
    at = None if error is None else error.__traceback__
    found = None
    while at is not None:
        name = at.tb_frame.f_code.co_filename
        if _SUITE in Path(name).parents:
            found = name, at.tb_lineno
        at = at.tb_next
    return found


class Session:
    """One process's run of the suite.

    Args:
        option: gives the value of a command line option.

    Raises:
        FaultError, KnownIssuesError, ValueError, OSError: an option cannot be used; the message says why.
    """

    def __init__(self, option: Any) -> None:
        begun = time.monotonic()
        self.device = prepare_device(option("--device"))
        if share := os.environ.get("DEVICE_SUITE_THREADS"):  # the share of a process that has others beside it
            torch.set_num_threads(int(share))
        if self.device.type != "cpu":
            torch.set_num_threads(min(torch.get_num_threads(), _REFERENCE_THREADS))
        self.log = OutcomeLog(Path(option("--outcomes")) if option("--outcomes") else None)
        count = Path(option("--outcomes")).with_suffix(".hits") if option("--outcomes") else None
        self.fault = InjectedFault(option("--inject"), count) if option("--inject") else None
        self.selection = Selection(
            only=",".join(words(option("--only"))),
            after=option("--after"),
            without=",".join(words(option("--skip-ids"))),
            layers=words(option("--layer")),
            quick=bool(option("--quick")),
            shard=Shard.of(option("--shard")),
            done=load_done(option("--done")),
        )
        self.full = bool(option("--full"))
        self.budget = budget_of(option)
        named_cases(self.budget.only)
        self._end = begun + self.budget.seconds if self.budget.seconds else None
        self._tells_estimate = not option("--no-estimate")
        self._operator = option("--op")
        self._by_description = of_descriptions() if self._operator else {}
        self._words = names_of(self._operator, self._by_description)
        self._known = load_known(Path(option("--known"))) if option("--known") else ()
        self.bench = Bench(self.device, around=self.fault.maker if self.fault else None, seed=option("--seed"))
        self._ids: list[str] = []
        self._drawn_keys: dict[str, float] = {}
        self._dispatched: set[str] = set()
        self._is_met = False
        self._seconds: dict[str, float] = {}
        self._last: Case | None = None

    def begin(self) -> None:
        """Write what is tested, and where."""
        self.log.write(
            "session",
            torch=torch.__version__,
            git=getattr(torch.version, "git_version", None),
            device=str(self.device),
            threads=torch.get_num_threads(),
            seed=self.bench.seed,
            fault=self.fault.name if self.fault else None,
            **self._fault_hits(),
        )

    def listed(self, cases: Cases) -> list[Case]:
        """Return the cases of a file that are run here; what is drawn is drawn now.

        Raises:
            ValueError: an id names what is not there.
        """
        if isinstance(cases, Drawn):
            cases.draw(self.budget, self._operators())
            self._drawn_keys = cases.keys
            self._is_met = self._is_met or bool(cases.keys)
        every = cases.listed(full=self.full)
        self._ids += [case.id for case in every]
        return [case for case in self.selection.choose(every) if self._dispatches(case)]

    def _operators(self) -> frozenset[str] | None:
        """Return the descriptions that dispatch the operator of --op; None where any will do."""
        if not self._operator:
            return None
        for names in self._by_description.values():
            self._dispatched |= names
        return dispatching(self._operator, self._by_description)

    def _dispatches(self, case: Case) -> bool:
        if not self._operator or case.layer == "drawn":
            return True
        # Those cases alone are run to know whose code has one of the names of what dispatches it.
        if why_not_here(case, device=self.device, full=self.full) or not self._words & names_in(case.act):
            return False
        names = of_case(case, self.bench.seed)
        self._dispatched |= names or frozenset()
        meets = names is not None and is_among(self._operator, names)
        self._is_met = self._is_met or meets
        return names is None or meets

    def check_names(self) -> None:
        """Refuse an id or an operator that no case has.

        Raises:
            ValueError: naming what looks alike.
        """
        if self.selection.after or self.selection.done:
            return
        if wrong := self.selection.unknown(self._ids):
            raise ValueError(wrong)
        # Cases that nothing is known of are run beside others: by themselves they are no answer.
        if self._operator and not self._is_met and self.selection.shard is None:
            near = like(self._operator, self._dispatched)
            also = f"did you mean {', '.join(near)}?" if near else "names are aten.add.Tensor, or aten.add"
            raise ValueError(f"--op {self._operator}: no case dispatches it; {also}")

    def tell_estimate(self, cases: list[Case]) -> None:
        """Say what the chosen cases will take."""
        if not self._tells_estimate or len(cases) < _FEW:
            return
        drawn = [DrawnCase.of(case.id) for case in cases if case.layer == "drawn"]
        keys = sum(self._drawn_keys.get(str(case), 0.0) for case in drawn)
        found = estimate([case for case in cases if case.layer != "drawn"], drawn, keys, self.device)
        print(found, flush=True)
        self.log.write("estimate", **vars(found))

    def ask(self, case: Case, item: Any) -> None:
        """Ask one case; raise what is wrong with its answer, or pytest's skip and xfail."""
        reason = why_not_here(case, device=self.device, full=self.full)
        if self._end is not None and time.monotonic() > self._end:
            if self.log.read_by_a_driver:
                self.log.write("time_over")
                item.session.shouldstop = _TIME_OVER
                return
            reason = _TIME_OVER
        if case.alone and reason is None and self._last is not None and self.log.read_by_a_driver:
            self._leave(item.session, self._last)
            return
        self._last = case
        self.log.started(case)
        begun, error, wrong = time.perf_counter(), {}, None
        before = self.fault.hits if self.fault is not None else None
        if reason is None:
            error, reason, wrong = self._answer(case)
        seconds = time.perf_counter() - begun
        self._seconds[item.path.name] = self._seconds.get(item.path.name, 0.0) + seconds
        if reason is not None:
            self.log.finished(case, "skipped", reason, {}, seconds, **self._fault_hits())
            pytest.skip(reason)
        outcome, facts, wrong = self._judged(case, wrong)
        if isinstance(wrong, Mismatch) and wrong.error is not None:
            error = wrong.error.as_json()
        self.log.finished(case, outcome, _stated(wrong), error, seconds, **facts, **self._fault_hits())
        if self._must_leave(case, wrong is not None) or (outcome == "failed" and self._is_suspect(before)):
            self._leave(item.session, case)
        if outcome == "known":
            pytest.xfail(f"{facts['known_issue']}: {_stated(wrong)}")
        if wrong is not None:
            raise wrong

    def _judged(self, case: Case, wrong: BaseException | None) -> tuple[str, dict[str, Any], BaseException | None]:
        """Return the outcome of a case that ran, what else its line says, and what is wrong; what is new is shrunk."""
        answers = wrong.answers if isinstance(wrong, WrongCase) else [Answer(_stated(wrong))]
        if wrong is None:
            issue = next((row for row in self._known if row.expects(case.id)), None)
        else:
            issue = explaining(self._known, case.id, answers)
        outcome = judge(wrong is not None, issue, is_ours=lambda: self._is_ours(case, wrong))
        facts: dict[str, Any] = {"levels": answers[0].levels} if answers[0].levels else {}
        if outcome in ("known", "unexpected_pass") and issue is not None:
            facts["known_issue"] = issue.id
        if outcome == "failed" and isinstance(wrong, WrongCase):
            wrong = found = wrong.found()
            facts["finding"] = found.finding
        return outcome, facts, wrong

    def _answer(self, case: Case) -> tuple[dict[str, float], str | None, BaseException | None]:
        """Return the error of a case that is right, why it cannot be run, and what is wrong with its answer."""
        error: dict[str, float] = {}
        reason: str | None = None
        wrong: BaseException | None = None
        try:
            error = run_case(case, self.bench).as_json()
        except (Refused, pytest.skip.Exception) as refused:
            reason = str(refused)
        except Exception as raised:
            wrong = raised
        late = self.bench.settle()
        return (error, reason, wrong) if late is None or wrong is not None else ({}, None, late)

    def _is_ours(self, case: Case, wrong: BaseException | None) -> bool:
        """Say whether the suite itself failed: the same error at the same line, on the CPU and without a fault."""
        place = _place_of(wrong)
        if (
            place is None
            or isinstance(wrong, (Mismatch, AssertionError))
            or (case.devices and "cpu" not in case.devices)
        ):
            return False
        try:
            run_case(case, Bench(torch.device("cpu"), around=None, seed=self.bench.seed))
        except (Refused, pytest.skip.Exception):
            return False
        except Exception as again:
            return type(again) is type(wrong) and _place_of(again) == place
        return False

    def end(self) -> None:
        """Write what is known only at the end."""
        if self.fault is not None:
            self.log.write("fault", name=self.fault.name, hits=self.fault.hits)
        self.log.write("files", seconds={file: round(seconds, 2) for file, seconds in self._seconds.items()})
        self.log.write("end")

    def _fault_hits(self) -> dict[str, int | None]:
        """Return what a line says of the fault: a case that fails before its first hit failed by itself."""
        return {"fault_hits": self.fault.hits} if self.fault is not None else {}

    def _is_suspect(self, before: int | None) -> bool:
        """Say whether the fault can have failed a case: it had a hit in it, or nobody counts.

        Whether the case passes without the fault is for another process: this one may keep what the fault did.
        """
        return self.fault is not None and (self.fault.hits is None or self.fault.hits != before)

    def _leave(self, session: Any, after: Case) -> None:
        """End this process after a case: the driver starts another one for the rest."""
        self.log.write("leave", after=after.id)
        session.shouldstop = f"the rest is for another process, after {after.id}"

    def _must_leave(self, case: Case, failed: bool) -> bool:
        """Say whether what comes after a case needs another process."""
        if not self.log.read_by_a_driver:
            return False
        # A refusal that is right may be an assertion of a kernel, after which the device serves nobody here.
        doubtful = failed or ":refusal:" in case.id
        return case.alone or (doubtful and self.device.type != "cpu" and not self.bench.still_serves())
