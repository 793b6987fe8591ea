"""A worker: imports everything once, then forks a process for each batch, which compiles and runs its kernels.

The worker itself never touches a wheel's bytes. What it says goes to the parent as lines of JSON.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ..answer_digest import answer_of
from ..binding.contracts import Case, Kernel, companions_of, load_binders, match_kernel
from ..code.compiler import host_target, translator_version
from ..examine import Outcome, Verdict, examine
from ..examine_large import examine_large
from ..judge.client import Judge
from ..library import Function, Library
from ..machine.code import Code, Plant, Refused, Store, compile_kernel, narrow_parts, publish_runtime
from ..machine.device import Device
from ..machine.runtime import load_runtime
from ..values import Values
from .reading import Pairs, is_same_code, read_batch
from .sandbox import LARGE_BYTES, MEMORY_BYTES, close_the_door, limit_process
from .verdicts import key_of

UNCHANGED = "the plant changes nothing in it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What all batches of a run share.

    Args:
        selected: the first library's kernels that the run examines.
        known: verdicts of earlier runs (verdicts.py).
        version: torch's, whose known issues count.
        is_large: tensors past 2**31 and 2**32 (examine_large.py), in place of the contracts' own cases.
        pairs: nothing is run; a kernel (library, function) is only read, beside the one that it is compared with.
    """

    libraries: tuple[Library, ...]
    references: Mapping[str, Mapping[str, Any]]
    runtime: Path
    store: Path
    socket: Path
    seed: int
    is_quick: bool
    plant: Plant | None = None
    compile_only: bool = False
    selected: tuple[int, ...] = ()
    known: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pairs: Pairs | None = None
    with_answers: bool = False
    is_large: bool = False
    version: str | None = None


def serve(setting: Setting, orders: int, answers: int) -> None:
    """Take batches from one pipe until it closes, and answer on the other. Never returns to the caller's stack."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    runtime = None
    host_target()
    if setting.pairs is None:
        runtime = load_runtime(setting.runtime)
        publish_runtime(runtime)
    version = translator_version()
    load_binders()
    gc.freeze()
    with os.fdopen(orders, "r") as lines:
        for line in lines:
            batch = json.loads(line)
            pid = os.fork()
            if pid == 0:
                _run_batch(setting, runtime, version, batch, answers)
            _, status = os.waitpid(pid, 0)
            say(answers, {"event": "ended", "status": status})


def say(answers: int, message: Mapping[str, Any]) -> None:
    """Write a message as one line of JSON to the descriptor that the parent reads."""
    data = (json.dumps(message) + "\n").encode()
    while data:
        data = data[os.write(answers, data) :]


def _run_batch(setting: Setting, runtime: Any, version: str, batch: Mapping[str, Any], answers: int) -> None:
    """Compile, close the door, run; ends the process."""
    status = 1
    try:
        limit_process(LARGE_BYTES if setting.is_large else MEMORY_BYTES)
        say(answers, {"event": "pid", "pid": os.getpid()})
        if setting.pairs is not None:
            read_batch(setting.libraries, setting.pairs, batch, lambda message: say(answers, message))
        else:
            _Batch(setting, runtime, version, answers).run(batch["library"], batch["functions"])
        status = 0
    except BaseException:
        say(answers, {"event": "failed", "text": traceback.format_exc()[-2000:]})
    finally:
        sys.stdout.flush()
        os._exit(status)


class _Batch:
    def __init__(self, setting: Setting, runtime: Any, version: str, answers: int) -> None:
        self._setting, self._runtime, self._answers = setting, runtime, answers
        self._store = Store(setting.store / version, version)
        self._by_name: dict[str, Function] = {}
        self._codes: dict[str, Code | Refused] = {}
        self._twins: dict[str, Function] = {}
        self._narrow: dict[str, list[str]] = {}

    def run(self, library_number: int, numbers: Sequence[int]) -> None:
        library = self._setting.libraries[library_number]
        self._by_name = {each.name: each for each in library.functions}
        if library_number:
            self._twins = {
                self._setting.libraries[0].functions[each].name: self._setting.libraries[0].functions[each]
                for each in self._setting.selected
            }
        kernels: list[tuple[int, Kernel | None, str]] = []
        for number in numbers:
            function = library.functions[number]
            say(self._answers, {"event": "compile", "function": number})
            if self._is_equal(library_number, number):
                continue
            code = self._code(library, function, is_selected=True)
            kernel = match_kernel(function.name, code.metadata) if isinstance(code, Code) else None
            companions = (
                [self._by_name[name] for name in companions_of(kernel) if name in self._by_name] if kernel else []
            )
            key = key_of(library.bitcode(each) for each in (function, *companions)) if kernel else ""
            if key in self._setting.known:
                say(self._answers, {"event": "done", "function": number, **self._setting.known[key]})
                continue
            for each in companions:
                self._code(library, each, is_selected=False)
            if self._setting.is_large and isinstance(code, Code):
                self._narrow[function.name] = narrow_parts(library.bitcode(function), self._setting.plant)
            kernels.append((number, kernel, key))
        say(self._answers, {"event": "compiled"})
        judge = None
        if not self._setting.compile_only and any(kernel for _, kernel, _ in kernels):
            judge = _connect(self._setting.socket)
        close_the_door()
        codes = {name: code for name, code in self._codes.items() if isinstance(code, Code)}
        device = Device(self._runtime, codes)
        views = {
            name: match_kernel(name, code.metadata) or Kernel(name=name, metadata=code.metadata)
            for name, code in codes.items()
        }
        for number, kernel, key in kernels:
            self._examine(library, number, kernel, device, views, judge, key)

    def _is_equal(self, library_number: int, number: int) -> bool:
        """Say so if the first library has a kernel's instructions under the same name: its verdict holds for both."""
        first, library = self._setting.libraries[0], self._setting.libraries[library_number]
        function = library.functions[number]
        twin = self._twins.get(function.name) if library_number and not self._setting.plant else None
        if twin is None or function.fault or twin.fault:
            return False
        bitcodes = first.bitcode(twin), library.bitcode(function)
        key = key_of((b"same", *bitcodes))
        row = self._setting.known.get(key)
        if row is None and not is_same_code(*bitcodes):
            return False
        say(self._answers, {"event": "done", "function": number, "verdict": {"outcome": "same"}, "key": key})
        return True

    def _code(self, library: Library, function: Function, *, is_selected: bool) -> Code | Refused:
        if function.name in self._codes:
            return self._codes[function.name]
        plant = self._setting.plant if is_selected else None
        code: Code | Refused | None
        if function.fault:
            code = Refused(reason=function.fault)
        else:
            bitcode = library.bitcode(function)
            code = self._store.load(bitcode) if plant is None else None
            if code is None:
                code = compile_kernel(bitcode, plant=plant)
                if isinstance(code, Code) and plant is not None and not code.was_planted:
                    code = Refused(reason=UNCHANGED, metadata=code.metadata, body=code.body)
                if plant is None:
                    self._store.save(bitcode, code)
        self._codes[function.name] = code
        return code

    def _examine(
        self,
        library: Library,
        number: int,
        kernel: Kernel | None,
        device: Device,
        views: Mapping[str, Kernel],
        judge: Judge | None,
        key: str,
    ) -> None:
        function = library.functions[number]
        say(self._answers, {"event": "run", "function": number})
        code = self._codes[function.name]
        began = time.process_time()
        if isinstance(code, Refused):
            outcome: Outcome = (
                "skipped" if code.reason == UNCHANGED else "not_bound" if code.is_beyond else "not_compiled"
            )
            verdict = Verdict(outcome=outcome, reason=code.reason)
        elif kernel is None and self._setting.is_large:
            verdict = self._examine_large(function, Kernel(name=function.name, metadata=code.metadata), None, device)
        elif kernel is None or judge is None:
            reason = "no contract has its signature" if kernel is None else "only compiled"
            verdict = Verdict(outcome="not_bound" if kernel is None else "skipped", reason=reason)
        else:
            case = Case(
                values=Values(self._setting.seed, function.name),
                kernels=views,
                references=self._setting.references,
                is_quick=self._setting.is_quick,
                version=self._setting.version,
            )
            answer = partial(answer_of, device=device) if self._setting.with_answers else None
            if self._setting.is_large:
                verdict = self._examine_large(function, kernel, case, device)
            else:
                verdict = examine(kernel, case, device, judge, answer=answer)
        family = kernel.contract.family if kernel and kernel.contract else ""
        message = {
            "event": "done",
            "function": number,
            "verdict": asdict(verdict),
            "body": code.body,
            "family": family,
            "operator": kernel.parts.get("op", "") if kernel else "",
            "is_compiled": isinstance(code, Code) or code.reason == UNCHANGED,
            "key": "" if self._setting.plant else key,
            "seconds": round(time.process_time() - began, 4),
        }
        say(self._answers, message)

    def _examine_large(self, function: Function, kernel: Kernel, case: Case | None, device: Device) -> Verdict:
        return examine_large(kernel, case, device, self._narrow[function.name], set(self._by_name))


def _connect(path: Path) -> Judge:
    """Connect to the judge, which may still be importing torch."""
    deadline = time.monotonic() + 180
    while True:
        try:
            return Judge(path)
        except (FileNotFoundError, ConnectionRefusedError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
