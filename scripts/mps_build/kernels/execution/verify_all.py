"""All kernels that a run is to test: selected, examined, held against the known issues, counted."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...common.cores import usable_cores
from ...common.errors import BuildEnvironmentError, UsageError
from ...common.process import Command, capture
from ...common.reporting import Reporter
from ..code.compiled import Injection
from ..code.compiler import require_llvm, translator_version
from ..judge.known import load_known
from ..judge.references import load_references, warning_of_another
from ..program.values import fill_pools
from ..read.host_code import HostCode
from ..read.library import BASIC, Library
from .large_host import NOTHING
from .pool import Done, Task, examine_all
from .selection import Choice, choose
from .servers import servers
from .store import Verdicts, state_of
from .worker import Setting

# A candidate of --large is no finding: nothing was shown of it.
FOUND = ("wrong", "out_of_bounds", "race", "timeout", "crashed")
RAN = ("passed", "known", *FOUND)
# From so many kernels on, all inputs are drawn once, before the workers start.
_MANY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What to verify, and with what.

    Args:
        libraries: of the wheel; `metal_basic` first.
        version: torch's, for the known issues; None if it is not known.
        python: an interpreter that has torch on the CPU.
        cache: a folder for compiled code and verdicts.
        is_large: tensors past 2**31 and 2**32, in place of the contracts' own cases.
        host: with `is_large`, what the wheel's host code asks before it launches.
        with_answers: rows also hold digests of what each case left (nothing is taken from earlier runs).
    """

    libraries: tuple[Library, ...]
    version: str | None
    python: Path
    environ: Mapping[str, str]
    cache: Path
    choice: Choice
    seed: int = 0
    fault: Injection | None = None
    jobs: int | None = None
    with_answers: bool = False
    is_large: bool = False
    host: HostCode = NOTHING


@dataclass(slots=True, kw_only=True)
class KernelRow:
    """One row of the result; a twin has the same instructions as metal_basic's kernel, and its verdict.

    Args:
        issue: the known issue that explains it, by id; "" if none does.
        link: where that issue is written up.
    """

    name: str
    library: str
    body: str
    outcome: str
    family: str
    operator: str
    reason: str
    verdict: Mapping[str, Any] = field(default_factory=dict)
    is_compiled: bool = True
    is_twin: bool = False
    seconds: float = 0.0
    issue: str = ""
    link: str = ""


def verify(request: Request, reporter: Reporter) -> list[KernelRow]:
    """Return a row for every kernel that the request selects.

    Raises:
        UsageError: nothing is selected.
        BuildEnvironmentError: llvmlite or a C compiler is missing, or torch cannot be imported.
        RefusedForSafety: a wheel's code cannot be kept from this machine here.
    """
    require_llvm()
    tasks = [
        Task(library=number, function=place)
        for number, library in enumerate(request.libraries)
        for place in choose(library, request.choice)
    ]
    if not tasks:
        raise UsageError(_nothing_selected(request.choice), hint="`--kernel 'exp_*'` takes a shell pattern on names")
    torch = _version_of_torch(request)
    if another := warning_of_another(torch):
        reporter.line(another)
    calls = sorted((name, sorted(guards.items())) for name, guards in request.host.calls.items())
    callers = sorted((name, sorted(guards)) for name, guards in request.host.callers.items())
    host = calls, callers, sorted(request.host.texts)
    state = state_of(
        translator_version(), torch, request.version, request.seed, request.choice.is_quick, request.is_large, host
    )
    verdicts = Verdicts(request.cache / "verdicts", state)
    rows: dict[Task, KernelRow] = {}
    if len(tasks) > _MANY:
        fill_pools(request.seed)
    selected = tuple(each.function for each in tasks if each.library == 0)
    known = {} if request.fault or request.with_answers else verdicts.known
    with servers(request.cache, request.python, request.environ, is_large=request.is_large) as started:
        setting = Setting(
            libraries=request.libraries,
            references=load_references(),
            runtime=started.runtime,
            store=request.cache / "code",
            reader=started.reader,
            machine=started.machine,
            judge=started.judge,
            seed=request.seed,
            is_quick=request.choice.is_quick,
            fault=request.fault,
            selected=selected,
            known=known,
            with_answers=request.with_answers,
            is_large=request.is_large,
            host=request.host,
            version=request.version,
        )
        reporter.started("Run kernels", total=len(tasks), unit="kernels")
        try:
            for done in examine_all(setting, tasks, workers=workers_of(request)):
                rows[done.task] = _row(request, done)
                if not request.with_answers:
                    verdicts.add(done.key, done.row())
                reporter.advanced(len(rows), total=len(tasks))
        finally:
            verdicts.save()  # also of a run that is interrupted
        reporter.done()
    return _resolved([rows[task] for task in tasks], request.version, has_fault=request.fault is not None)


def workers_of(request: Request) -> int:
    """Return how many kernels are examined at a time: a worker waits while a process that it asks computes."""
    return request.jobs or usable_cores()


def _nothing_selected(choice: Choice) -> str:
    given = [f"--kernel {choice.pattern}"] if choice.pattern else []
    given += [f"--op {choice.operator}"] if choice.operator else []
    return f"no kernel of the wheel matches {' and '.join(given) or 'these options'}"


def _version_of_torch(request: Request) -> str:
    """Return the version of the torch that answers, before any work begins."""
    if not request.python.exists():
        raise BuildEnvironmentError(f"{request.python}: there is no interpreter to compute references with torch")
    code = "import importlib.metadata as m; print(m.version('torch'))"
    answer = capture(Command(argv=(str(request.python), "-c", code), environ=request.environ), timeout_seconds=60)
    if not answer.ok:
        raise BuildEnvironmentError(
            f"{request.python} has no torch to compute references with",
            hint="MPS_BUILD_TORCH_PYTHON names an interpreter with torch for the CPU; without it one is made",
        )
    return answer.stdout.strip()


def _row(request: Request, done: Done) -> KernelRow:
    library = request.libraries[done.task.library]
    return KernelRow(
        name=library.functions[done.task.function].name,
        library=library.name,
        body=done.body,
        outcome=str(done.verdict["outcome"]),
        family=done.family,
        operator=done.operator,
        reason=str(done.verdict.get("reason", "")),
        verdict=done.verdict,
        is_compiled=done.is_compiled,
        seconds=done.seconds,
    )


def _resolved(rows: list[KernelRow], version: str | None, *, has_fault: bool) -> list[KernelRow]:
    """Fill in the kernels that are equal to another library's, and mark the known issues.

    With a fault injected only what a known issue explains value by value is known: the rest has been made to fail.
    """
    by_name = {row.name: row for row in rows if row.library == BASIC}
    for row in rows:
        twin = by_name.get(row.name)
        if row.outcome == "same" and twin is not None:
            row.outcome, row.verdict, row.family, row.operator = twin.outcome, twin.verdict, twin.family, twin.operator
            row.is_twin = True
            row.is_compiled, row.body = twin.is_compiled, twin.body
            row.reason = f"has the same instructions as in {BASIC}" + (f": {twin.reason}" if twin.reason else "")
    for row in rows:
        explained = row.verdict.get("explained", ())
        covering = [each for each in load_known() if each.covers(row.name, row.outcome, version, explained)]
        if has_fault or explained:
            covering = covering if explained and {each.id for each in covering} >= set(explained) else []
        if covering:
            known = covering[0]
            row.outcome, row.reason = "known", f"{known.id} ({known.link}): {row.reason}"
            row.issue, row.link = known.id, known.link
    return rows


def load_fault(text: str) -> Injection:
    """Return the function of FILE.py:NAME: from the LLVM IR of a kernel to another text.

    Raises:
        UsageError: no such file or function, or the file cannot be imported.
    """
    file, colon, name = text.rpartition(":")
    path = Path(file).expanduser()
    if not colon or not name.isidentifier():
        raise UsageError(f"--inject {text!r} is not of the form FILE.py:NAME")
    if not path.is_file():
        raise UsageError(f"--inject: {path} is not a file")
    spec = importlib.util.spec_from_file_location("injected", path)
    if spec is None or spec.loader is None:
        raise UsageError(f"--inject: {path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UsageError(f"--inject: {path} cannot be imported: {error!r}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise UsageError(f"--inject: {path} has no function {name}")
    injected: Injection = function
    return injected


def counts(rows: Sequence[KernelRow]) -> dict[str, int]:
    """Return how many kernels there are, were compiled, have a contract, and were run."""
    return {
        "kernels": len(rows),
        "compiled": sum(row.is_compiled for row in rows),
        "bound": sum(row.outcome in RAN for row in rows),
        "run": sum(row.outcome in RAN for row in rows),
    }


# Do changed kernels answer as before? Both wheels' are run on equal inputs, and what they leave is compared.


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Kernels that were run in both wheels: those that answer as before, and those that do not."""

    same: tuple[str, ...]
    changed: tuple[str, ...]


def compare_answers(left: Request, right: Request, reporter: Reporter) -> Answers:
    """Run the kernels that both requests select, and compare what cases of equal inputs leave."""
    sides = [_by_name(verify(request, reporter)) for request in (left, right)]
    same: list[str] = []
    changed: list[str] = []
    for name in sorted(set(sides[0]) & set(sides[1])):
        one, other = (side[name].verdict.get("answers", {}) for side in sides)
        if common := set(one) & set(other):
            (same if all(one[key] == other[key] for key in common) else changed).append(name)
    return Answers(same=tuple(same), changed=tuple(changed))


def _by_name(rows: Sequence[KernelRow]) -> dict[str, KernelRow]:
    """Return one row for each name: that of metal_basic, if it is there."""
    found = {row.name: row for row in rows}
    return {**found, **{row.name: row for row in rows if row.library == BASIC}}
