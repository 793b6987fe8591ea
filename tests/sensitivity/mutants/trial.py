"""One mutant: compiled, linked into a folder of its own, tried with its cases until one shows it."""

from __future__ import annotations

import json
import resource
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Mapping, Sequence

from .child import Answers, Question, ask_all
from .draw import Mutant
from .judge import CAUGHT, FAILED, OUTSIDE, Usual, changed, differing, verdict, weightiest
from .plan import Plan
from .toolchain import BuildFailed, Toolchain, host_name

_COMPARED = 50


class OutOfTime(Exception):
    """The time was over before a mutant was judged; what ran is kept, and the next run goes on there."""


def tried(
    mutant: Mutant,
    plans: Sequence[Plan],
    known: Mapping[str, Mapping[str, Usual]],
    toolchain: Toolchain,
    home: Path,
    until: float,
    objects: Path,
) -> dict[str, Any]:
    """Return the row of one mutant: how it ended, by which case, what ran, and CPU seconds.

    Args:
        home: where the trial keeps what it has begun. objects: the folder of the mutants that are compiled already.

    Raises:
        OutOfTime: the monotonic clock passed `until`.
    """
    before, folder = _cpu_seconds(), home / "work" / mutant.id.replace(":", "-")
    begun = Begun.of(home / "begun" / f"{folder.name}.json")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        found = _outcome(mutant, plans, known, toolchain, folder, begun, until, objects / f"{folder.name}.o")
    except OutOfTime:
        begun.cpu_seconds += _cpu_seconds() - before
        begun.keep()
        raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {**mutant.as_json(), **found, "cpu_seconds": round(begun.cpu_seconds + _cpu_seconds() - before, 1)}


@dataclass
class Begun:
    """What an earlier run tried on a mutant before its time was over."""

    path: Path
    rows: dict[str, list[dict[str, Any]]]
    unreliable: dict[str, list[str]]
    cpu_seconds: float

    @classmethod
    def of(cls, path: Path) -> Begun:
        """Return what is kept in a file; nothing where it is not there."""
        kept = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return cls(path, kept.get("rows", {}), kept.get("unreliable", {}), kept.get("cpu_seconds", 0.0))

    def keep(self) -> None:
        """Write it."""
        self.path.parent.mkdir(exist_ok=True)
        kept = {"rows": self.rows, "unreliable": self.unreliable, "cpu_seconds": self.cpu_seconds}
        self.path.write_text(json.dumps(kept), encoding="utf-8")


def _outcome(
    mutant: Mutant,
    plans: Sequence[Plan],
    known: Mapping[str, Mapping[str, Usual]],
    toolchain: Toolchain,
    folder: Path,
    begun: Begun,
    until: float,
    compiled: Path,
) -> dict[str, Any]:
    name, source = next((name, file) for name, file in toolchain.sources.items() if host_name(file) == mutant.file)
    edited, built = folder / source.name, folder / "edited.o"
    edited.write_text(mutant.source(source.read_text(encoding="utf-8")), encoding="utf-8")
    before = _cpu_seconds()
    try:
        if not compiled.is_file() or compiled.stat().st_mtime < (toolchain.folder / name).stat().st_mtime:
            # Messages of asserts name the file; the same names give the same object where nothing else changed.
            toolchain.compile(edited, built, (f"-ffile-prefix-map={folder}={source.parent}",))
            compiled.parent.mkdir(parents=True, exist_ok=True)
            built.replace(compiled)
        compile_seconds = round(_cpu_seconds() - before, 1)
        if compiled.read_bytes() == (toolchain.folder / name).read_bytes():
            return {"outcome": "same_code", "compile_seconds": compile_seconds}
        if not plans:
            return {"outcome": "not_reached", "compile_seconds": compile_seconds}
        toolchain.link(folder, {name: compiled})
    except BuildFailed as refused:
        return {"outcome": "not_compiled", "why": str(refused)[-300:]}
    verdicts: list[dict[str, Any]] = []
    for plan in plans:
        verdicts.append(_tried(plan, known[plan.macos], toolchain.folder, folder, begun, until))
        if verdicts[-1]["outcome"] in CAUGHT:
            break
    return {**weightiest(verdicts), "compile_seconds": compile_seconds}


def _tried(
    plan: Plan, known: Mapping[str, Usual], plain: Path, folder: Path, begun: Begun, until: float
) -> dict[str, Any]:
    """Ask the cases of a plan, and return the verdict with what ran.

    Raises:
        OutOfTime: not all ran.
    """
    rows = begun.rows.setdefault(plan.macos, [])
    if tuple(row["id"] for row in rows) != plan.cases[: len(rows)]:  # of another plan
        rows.clear()
    unreliable = begun.unreliable.setdefault(plan.macos, [])
    caught, error = None, ""
    while len(rows) < len(plan.cases) and caught is None and not error:
        left = [known[name] for name in plan.cases[len(rows) :]]
        answers = ask_all(_questions(left), folder, library=folder, macos=plan.macos, until=until)
        rows += answers.rows
        error = answers.error
        if answers.is_cut:
            raise OutOfTime
        if not answers.rows and not error:
            break
        if error and not rows:  # a library that does not load is noticed by whatever runs first
            caught = plan.cases[0] if _dies(folder, plain, plan, known) else None
        elif answers.failure is not None:
            case = known[answers.failure["id"]]
            behind = [known[row["id"]] for row in answers.rows]
            # The map says that it cannot be the mutant's: then it has to fail alone, and more than once.
            outside = len(rows) > plan.by_map and not plan.starts
            ways, times = ([[case]], OUTSIDE) if outside else ([[case], behind], 1)
            holds = _holds(case, ways, folder, plain, plan.macos, until, times)
            if holds is None:
                rows.pop()  # the next run tries it again
                raise OutOfTime
            if holds:
                caught = case.id
            else:
                unreliable.append(case.id)
    different = [] if caught or error else _different(rows, known, folder, plain, plan.macos, until)
    found = verdict(rows, caught, different, known) if caught or not error else {"outcome": "own_fault"}
    last = rows[-1] if rows else {}
    by_map = plan.cases.index(caught) < plan.by_map if caught else True
    return {
        **found,
        "macos": plan.macos,
        "ran": len(rows),
        "planned": len(plan.cases),
        "by_map": plan.by_map,
        "starts": plan.starts,
        **({"how": last.get("outcome", "loading"), "says": (last.get("why") or error)[-300:]} if caught else {}),
        **({"outside_map": True, "again": OUTSIDE} if not by_map and not plan.starts else {}),
        **({"unreliable": unreliable} if unreliable else {}),
        **({"error": error[-300:]} if error and not caught else {}),
    }


def _questions(cases: Sequence[Usual], *, all_may: bool = False) -> list[Question]:
    return [Question(case.file, case.id, may_fail=all_may or not case.tells) for case in cases]


def _holds(
    case: Usual, ways: Sequence[Sequence[Usual]], folder: Path, plain: Path, macos: str, until: float, times: int
) -> bool | None:
    """Say whether a failure is the mutant's: it fails again, and the unchanged library passes with the same.

    The ways are lists of cases that end with this one: alone, or behind what went before it. One is enough, if each of
    the `times` tells the same. None where the time was over.
    """
    for cases in ways:
        outcomes: dict[Path, set[str]] = {folder: set(), plain: set()}
        for library in (folder, plain) * times:
            answers = ask_all(_questions(cases, all_may=True), folder, library=library, macos=macos, until=until)
            if answers.is_cut:
                return None
            last = answers.rows[-1] if answers.rows else {"id": "", "outcome": "crashed"}
            outcomes[library].add(last["outcome"] if last["id"] == case.id else "not run")
        if outcomes[folder] <= set(FAILED) and outcomes[plain] == {"passed"}:
            return True
    return False


def _different(
    rows: Sequence[Mapping[str, Any]],
    known: Mapping[str, Usual],
    folder: Path,
    plain: Path,
    macos: str,
    until: float,
) -> list[str]:
    """Return the cases that answer other bits because of the mutant, not of what ran before them.

    Those that answered other bits than usual run again, by themselves, with both libraries. Where none differs,
    the whole list runs with the unchanged library, in the same order.

    Raises:
        OutOfTime: it could not be decided.
    """
    candidates = changed(rows, known)
    if not candidates:
        return []
    few = _questions([known[name] for name in candidates[:_COMPARED]], all_may=True)
    # The unchanged library a second time: what differs there is no news of the mutant.
    pair = [ask_all(few, folder, library=library, macos=macos, until=until) for library in (folder, plain, plain)]
    noise = set(differing(pair[1].rows, pair[2].rows))
    found = [name for name in differing(pair[0].rows, pair[1].rows) if name not in noise]
    if not found and set(candidates) - noise and not any(answers.is_cut for answers in pair):
        last = max(number for number, row in enumerate(rows) if row["id"] in candidates)
        cases = _questions([known[row["id"]] for row in rows[: last + 1]], all_may=True)
        pair.append(ask_all(cases, folder, library=plain, macos=macos, until=until))
        found = [name for name in differing(rows, pair[-1].rows) if name in candidates and name not in noise]
    if any(answers.is_cut for answers in pair):
        raise OutOfTime
    return found


def _dies(folder: Path, plain: Path, plan: Plan, known: Mapping[str, Usual]) -> bool:
    """Say whether a process with the mutant does not even begin to ask, and one without it does."""
    first = _questions([known[plan.cases[0]]], all_may=True)
    mutated: Answers = ask_all(first, folder, library=folder, macos=plan.macos)
    healthy: Answers = ask_all(first, folder, library=plain, macos=plan.macos)
    return bool(mutated.error) and not healthy.error


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
