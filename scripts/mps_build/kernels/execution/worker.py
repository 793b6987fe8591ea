"""A worker: has kernels compiled and run in closed processes, and judges what they leave.

It never holds a wheel's code itself, and LLVM reads nothing of a wheel in it. What it says goes to the parent as
lines of JSON.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ...inspection.limits import Malformed
from ..code.compiled import Code, Fault, Injection, Refused
from ..code.compiler import translator_version
from ..families.shared.contracts import Case, Kernel, companions_of, load_binders, match_kernel, signature
from ..judge.client import Judge
from ..machine.left import BadReport
from ..machine.runtime import load_runtime
from ..program.values import Values
from ..read.host_code import HostCode
from ..read.library import Function, Library
from ..read.metadata import Metadata
from .closed import Ended, Machine, OurFault, Reader
from .examine import Outcome, Verdict, answer_of, examine
from .examine_large import LargeRuns
from .large_host import NOTHING
from .sandbox import SandboxUnavailable
from .store import Store, key_of

Place = tuple[int, int]
"""A library's number, and a function's in it."""
Pairs = Mapping[Place, Place | None]
"""Which kernel each is compared with; None: with none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all batches of a run share.

    Args:
        reader: the socket of the server of processes that read bitcode; `machine`: of those that run kernels;
            `judge`: of the judge's.
        selected: the first library's kernels that the run examines.
        known: verdicts of earlier runs (store.py).
        version: torch's, whose known issues count.
        is_large: tensors past 2**31 and 2**32 (examine_large.py), in place of the contracts' own cases.
        host: with `is_large`, what the wheel's host code asks before it launches.
        pairs: nothing is run; a kernel (library, function) is only read, beside the one that it is compared with.
    """

    libraries: tuple[Library, ...]
    references: Mapping[str, Mapping[str, Any]]
    runtime: Path
    store: Path
    reader: Path
    machine: Path
    judge: Path
    seed: int
    is_quick: bool
    fault: Injection | None = None
    compile_only: bool = False
    selected: tuple[int, ...] = ()
    known: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pairs: Pairs | None = None
    with_answers: bool = False
    is_large: bool = False
    host: HostCode = NOTHING
    version: str | None = None


# One closed process runs kernels in turn: a new one after some of them, and after any that did not pass.
# To start a process and to close it takes as long as to run one kernel.
MOST_KERNELS = 16


# One process reads so many neighbours: LLVM's first kernel takes it two times as long as the next.
READ_BY_ONE = 64
UNCHANGED = "the fault changes nothing in it"
_OF_FAULT: Mapping[Fault, Outcome] = {"refused": "refused", "not_compiled": "not_compiled", "beyond": "not_bound"}


def serve(setting: Setting, orders: int, answers: int) -> None:
    """Take batches from one pipe until it closes, and answer on the other."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    load_binders()
    gc.freeze()
    gc.disable()  # collected after each batch: on the way it would look at every input of a run again and again
    worker = _Worker(setting, answers)
    with os.fdopen(orders, "r") as lines:
        for line in lines:
            batch = json.loads(line)
            try:
                worker.work(batch["library"], batch["functions"])
            except SandboxUnavailable as error:
                say(answers, {"event": "unavailable", "text": str(error)})
                return
            gc.collect()
            say(answers, {"event": "ended"})


def say(answers: int, message: Mapping[str, Any]) -> None:
    """Write a message as one line of JSON to the descriptor that the parent reads."""
    data = (json.dumps(message) + "\n").encode()
    while data:
        data = data[os.write(answers, data) :]


class _Worker:
    def __init__(self, setting: Setting, answers: int) -> None:
        self._setting, self._answers = setting, answers
        version = translator_version()
        self._store = Store(setting.store / version, version)
        self._runtime = load_runtime(setting.runtime) if setting.pairs is None else None
        self._twins = {
            setting.libraries[0].functions[each].name: setting.libraries[0].functions[each] for each in setting.selected
        }
        self._library = setting.libraries[0]
        self._by_name: dict[str, Function] = {}
        self._codes: dict[str, Code | Refused] = {}
        self._judge: Judge | None = None
        self._reader: Reader | None = None
        self._read_so_far = 0
        self._turns = Turns(setting.machine, self._runtime)
        self._large = LargeRuns(host=setting.host, folder=setting.machine.parent / "alike")

    def work(self, number: int, functions: Sequence[int]) -> None:
        """Examine kernels of one library; each has an answer of its own, whatever becomes of it."""
        self._library, self._codes = self._setting.libraries[number], {}
        self._by_name = {each.name: each for each in self._library.functions}
        for function in functions:
            say(self._answers, {"event": "begin", "function": function})
            say(self._answers, {"event": "done", "function": function, **self._row(number, function)})
        self._end_reader()
        self._turns.end()
        if self._judge is not None:
            self._judge.close()
            self._judge = None

    def _end_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = None

    def _read(self) -> Reader:
        """Return a process that reads bitcode: a new one after every few kernels, and after one that ended."""
        self._read_so_far += 1
        if self._read_so_far > READ_BY_ONE:
            self._end_reader()
        if self._reader is None:
            self._reader, self._read_so_far = Reader(self._setting.reader), 1
        return self._reader

    def _row(self, number: int, place: int) -> dict[str, Any]:
        """Return what there is to say of a kernel. An error of ours is the kernel's row, and never its verdict."""
        function = self._library.functions[place]
        try:
            if self._setting.pairs is not None:
                return self._pair((number, place), self._setting.pairs)
            if number and self._setting.fault is None and (key := self._key_of_equal(function)):
                return {"verdict": {"outcome": "same"}, "key": key}
            return self._examined(function)
        except SandboxUnavailable:
            raise
        except Ended as ended:
            self._end_reader()
            return {"verdict": {"outcome": ended.outcome, "reason": ended.reason}}
        except (OurFault, BadReport) as error:
            return {"verdict": {"outcome": "misfit", "reason": f"examining it failed: {error}"[:2000]}}
        except Exception as error:
            reason = f"examining it failed, which is a bug of mps-build: {type(error).__name__}: {error}"
            return {"verdict": {"outcome": "misfit", "reason": reason[:2000]}}

    def _key_of_equal(self, function: Function) -> str:
        """Return a key if the first library has a kernel's instructions under its name: its verdict holds for both."""
        first = self._setting.libraries[0]
        twin = self._twins.get(function.name)
        if twin is None or function.fault or twin.fault:
            return ""
        bitcodes = first.bitcode(twin), self._library.bitcode(function)
        key = key_of((b"same", *bitcodes))
        if key in self._setting.known or bitcodes[0] == bitcodes[1]:
            return key
        try:
            return key if self._read().pair(*bitcodes).is_same else ""
        except Malformed:
            return ""
        except Ended:
            self._end_reader()
            return ""

    def _pair(self, place: Place, pairs: Pairs) -> dict[str, Any]:
        try:
            return read_pair(self._read(), self._setting.libraries, place, pairs)
        except Ended as ended:
            self._end_reader()
            return {"verdict": {"outcome": "unreadable", "reason": ended.reason}}

    def _examined(self, function: Function) -> dict[str, Any]:
        if function.fault:
            return _said(Verdict(outcome="not_compiled", reason=function.fault), Refused(reason=function.fault))
        began = time.monotonic()
        bitcode = self._library.bitcode(function)
        if self._setting.is_large:
            return self._examined_large(function, bitcode, began)
        kept = None if self._setting.fault else self._codes.get(function.name) or self._store.load(bitcode)
        if isinstance(kept, Refused):
            return _said(Verdict(outcome=_OF_FAULT[kept.fault], reason=kept.reason), kept)
        if kept is not None and (row := self._setting.known.get(self._key(function, kept))):
            return dict(row)
        injected = None
        if self._setting.fault is not None:
            original = self._read().text(bitcode)
            injected = self._setting.fault(original)
            if injected == original:
                return _said(Verdict(outcome="skipped", reason=UNCHANGED), None)
        code = kept or self._compiled(function, injected)
        if isinstance(code, Refused):
            return _said(Verdict(outcome=_OF_FAULT[code.fault], reason=code.reason), code)
        key = "" if injected else self._key(function, code)
        if row := self._setting.known.get(key):
            return dict(row)
        kernel = match_kernel(function.name, code.metadata)
        verdict = self._verdict(function, kernel, {**self._companions(kernel), function.name: code})
        return {**_said(verdict, code, kernel), "key": key, "seconds": round(time.monotonic() - began, 4)}

    def _examined_large(self, function: Function, bitcode: bytes, began: float) -> dict[str, Any]:
        """Read how a kernel makes its addresses, and run it only if that does not settle it."""
        key, injected = key_of((b"large", bitcode)), None
        if self._setting.fault is not None:
            original = self._read().text(bitcode)
            key, injected = "", self._setting.fault(original)
            if injected == original:
                return _said(Verdict(outcome="skipped", reason=UNCHANGED), None)
        elif row := self._setting.known.get(key):
            return dict(row)
        found = self._read().addressing(bitcode, injected)
        kernel = match_kernel(function.name, found.metadata) if found.metadata else None
        verdict = None
        if found.metadata is not None:
            bare = kernel or Kernel(name=function.name, metadata=found.metadata)
            verdict = self._large.settled(bare, found)
        code: Code | Refused | None = None
        if verdict is None:
            code = (None if injected else self._store.load(bitcode)) or self._compiled(function, injected)
            if isinstance(code, Refused) or kernel is None:
                reason = code.reason if isinstance(code, Refused) else "it holds what no Metal kernel has"
                fault = code.fault if isinstance(code, Refused) else "refused"
                return _said(Verdict(outcome=_OF_FAULT[fault], reason=reason), code)
            codes = {**self._companions(kernel), function.name: code}
            with Machine(self._setting.machine, self._runtime, codes) as machine:
                verdict = self._large.examined(kernel, self._case(function, codes), machine, found, self._by_name)
        row = {**_said(verdict, code, kernel), "body": found.body, "is_compiled": True, "key": key}
        return {**row, "seconds": round(time.monotonic() - began, 4)}

    def _key(self, function: Function, code: Code) -> str:
        """Return the key of a kernel's verdict; nothing if no contract binds it."""
        kernel = match_kernel(function.name, code.metadata)
        if kernel is None:
            return ""
        names = (function.name, *(name for name in companions_of(kernel) if name in self._by_name))
        return key_of(self._library.bitcode(self._by_name[name]) for name in names)

    def _compiled(self, function: Function, injected: str | None = None) -> Code | Refused:
        """Compile a kernel, and keep its code."""
        bitcode = self._library.bitcode(function)
        try:
            code = self._read().compile(bitcode, injected)
        except Ended as ended:
            self._end_reader()
            how = "took too long" if ended.outcome == "timeout" else ended.reason.removeprefix("its process ")
            return Refused(reason=f"the compiler {how}")
        if injected is None:
            self._store.save(bitcode, code)
            self._codes[function.name] = code
        return code

    def _companions(self, kernel: Kernel | None) -> dict[str, Code]:
        """Return the code of the kernels that a kernel's programs launch beside it."""
        names = [each for each in companions_of(kernel) if each in self._by_name] if kernel else []
        found = {each: self._companion(self._by_name[each]) for each in names}
        return {each: code for each, code in found.items() if isinstance(code, Code)}

    def _companion(self, function: Function) -> Code | Refused:
        if function.name not in self._codes:
            found = (
                Refused(reason=function.fault) if function.fault else self._store.load(self._library.bitcode(function))
            )
            self._codes[function.name] = found or self._compiled(function)
        return self._codes[function.name]

    def _verdict(self, function: Function, kernel: Kernel | None, codes: dict[str, Code]) -> Verdict:
        setting, metadata = self._setting, codes[function.name].metadata
        if kernel is None:
            return Verdict(outcome="not_bound", reason=f"no contract has its arguments: {signature(metadata)[0]}")
        if setting.compile_only:
            return Verdict(outcome="skipped", reason="only compiled")
        if self._judge is None:
            self._judge = Judge(setting.judge)
        judge = self._judge

        def tested(machine: Machine) -> Verdict:
            answer = partial(answer_of, device=machine) if setting.with_answers else None
            return examine(kernel, self._case(function, codes), machine, judge, answer=answer)

        return self._turns.examined(codes, tested)

    def _case(self, function: Function, codes: Mapping[str, Code]) -> Case:
        return Case(
            values=Values(self._setting.seed, function.name),
            kernels={
                name: match_kernel(name, code.metadata) or Kernel(name=name, metadata=code.metadata)
                for name, code in codes.items()
            },
            references=self._setting.references,
            is_quick=self._setting.is_quick,
            version=self._setting.version,
        )


def _said(verdict: Verdict, code: Code | Refused | None, kernel: Kernel | None = None) -> dict[str, Any]:
    return {
        "verdict": asdict(verdict),
        "body": code.body if code else "",
        "family": kernel.contract.family if kernel and kernel.contract else "",
        "operator": kernel.parts.get("op", "") if kernel else "",
        "is_compiled": not isinstance(code, Refused),
    }


class Turns:
    """Who runs the next kernel. What ran before in its process is never what a kernel is blamed for."""

    def __init__(self, server: Path, runtime: Any) -> None:
        self._server, self._runtime = server, runtime
        self._machine: Machine | None = None
        self._count = 0

    def examined(self, codes: dict[str, Code], examine: Callable[[Machine], Verdict]) -> Verdict:
        """Return the verdict on a kernel; one that is not well in a used process is tested again in a new one.

        Args:
            codes: the kernel's, and of those that its programs launch.

        Raises:
            Ended, OurFault, BadReport: a new process ended, or failed.
        """
        if self._machine is not None and self._count < MOST_KERNELS:
            try:
                self._machine.load(codes)
                self._count += 1
                verdict = examine(self._machine)
            except (Ended, OurFault, BadReport):
                verdict = None
            if verdict is not None and _is_well(verdict):
                return verdict
        self.end()
        self._machine, self._count = Machine(self._server, self._runtime, codes), 1
        is_well = False
        try:
            verdict = examine(self._machine)
            is_well = _is_well(verdict)
        finally:
            if not is_well:
                self.end()
        return verdict

    def end(self) -> None:
        """End the process."""
        if self._machine is not None:
            self._machine.close()
        self._machine = None


def _is_well(verdict: Verdict) -> bool:
    return verdict.outcome in ("passed", "not_bound")


# Reads kernels without running them: are two of one name the same, and how many instructions each has.


def read_pair(reader: Reader, libraries: Sequence[Library], place: Place, pairs: Pairs) -> dict[str, Any]:
    """Return of a kernel: same, changed, alone or unreadable; with the family and the numbers of instructions."""
    other = pairs[place]
    try:
        before = None if other is None else _bitcode(libraries, other)
        found = reader.pair(before, _bitcode(libraries, place))
    except Malformed as error:
        return {"verdict": {"outcome": "unreadable", "reason": str(error)}}
    if found.is_same:
        return {"verdict": {"outcome": "same"}}
    outcome = "alone" if other is None else "changed"
    name = libraries[place[0]].functions[place[1]].name
    return {
        "verdict": {"outcome": outcome, "instructions": found.instructions},
        "family": _family(name, found.metadata),
    }


def _bitcode(libraries: Sequence[Library], place: Place) -> bytes:
    function = libraries[place[0]].functions[place[1]]
    if function.fault:
        raise Malformed(function.fault)
    return libraries[place[0]].bitcode(function)


def _family(name: str, metadata: Metadata | None) -> str:
    kernel = match_kernel(name, metadata) if metadata else None
    return kernel.contract.family if kernel and kernel.contract else ""
