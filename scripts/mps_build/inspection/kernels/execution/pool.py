"""The parent: hands batches to workers, takes their verdicts, and goes on when a kernel takes its process down."""

from __future__ import annotations

import json
import os
import random
import selectors
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from ..library import Library
from .worker import Setting, serve

# Kernels that one process examines: a fork, and what LLVM and torch do once in each process, cost 80 ms.
BATCH = 64
# The last ones are few, so that a run of slow kernels does not keep one worker busy when all others have ended.
LAST_BATCH, LAST_FOR_EACH_WORKER = 16, 6
# Of the wall clock, for what the runtime's own clock (seconds of the processor, each launch) cannot end.
KERNEL_SECONDS = 180.0
COMPILE_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A kernel to examine, by its place in a library."""

    library: int
    function: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a worker said of a kernel."""

    task: Task
    verdict: Mapping[str, Any]
    body: str = ""
    family: str = ""
    operator: str = ""
    seconds: float = 0.0
    is_compiled: bool = True
    key: str = ""

    def row(self) -> dict[str, Any]:
        """Return what verdicts.py keeps."""
        names = ("verdict", "body", "family", "operator", "is_compiled")
        return {name: getattr(self, name) for name in names}


@dataclass(slots=True)
class _Worker:
    pid: int
    orders: int
    answers: int
    pending: bytes = b""
    library: int = 0
    waiting: deque[int] = field(default_factory=deque)
    current: int | None = None
    phase: str = ""
    executor: int | None = None
    deadline: float = 0.0
    was_late: bool = False
    is_busy: bool = False
    failure: str = ""


def examine_all(
    setting_of: Callable[[int], Setting], tasks: Sequence[Task], *, workers: int, batch: int = BATCH
) -> Iterator[Done]:
    """Yield a verdict for every task, in the order in which they come.

    Args:
        setting_of: the setting of the worker with that number (each has a judge of its own).
    """
    queue = _batches(tasks, min(batch, max(1, -(-len(tasks) // max(workers, 1)))), workers)
    with _started(setting_of, min(workers, max(len(queue), 1))) as crew:
        yield from _drive(crew, queue)


def _batches(tasks: Sequence[Task], size: int, workers: int) -> deque[tuple[int, list[int]]]:
    """Return neighbours together (they share companions), and the batches mixed: no run of slow families anywhere.

    So the time left is about right from the beginning; the last batches are small: no worker is alone at the end.
    """
    batches: list[tuple[int, list[int]]] = []
    for task in tasks:
        if not batches or batches[-1][0] != task.library or len(batches[-1][1]) >= size:
            batches.append((task.library, []))
        batches[-1][1].append(task.function)
    random.Random(0).shuffle(batches)
    first, last = batches[: -LAST_FOR_EACH_WORKER * workers], batches[-LAST_FOR_EACH_WORKER * workers :]
    small = [
        (library, places[at : at + LAST_BATCH]) for library, places in last for at in range(0, len(places), LAST_BATCH)
    ]
    return deque([*first, *small])


@contextmanager
def _started(setting_of: Callable[[int], Setting], count: int) -> Iterator[list[_Worker]]:
    crew: list[_Worker] = []
    try:
        for number in range(count):
            crew.append(_start(setting_of(number), [each.orders for each in crew] + [each.answers for each in crew]))
        yield crew
    finally:
        for worker in crew:
            for pid in (worker.executor, worker.pid):
                if pid:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            os.close(worker.orders)
            os.close(worker.answers)
            with suppress(ChildProcessError):
                os.waitpid(worker.pid, 0)


def _start(setting: Setting, inherited: Sequence[int]) -> _Worker:
    orders_out, orders_in = os.pipe()
    answers_out, answers_in = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            for descriptor in (*inherited, orders_in, answers_out):
                os.close(descriptor)
            serve(setting, orders_out, answers_in)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(orders_out)
    os.close(answers_in)
    return _Worker(pid=pid, orders=orders_in, answers=answers_out)


def _drive(crew: list[_Worker], queue: deque[tuple[int, list[int]]]) -> Iterator[Done]:
    with selectors.DefaultSelector() as selector:
        for worker in crew:
            selector.register(worker.answers, selectors.EVENT_READ, worker)
            _give(worker, queue)
        while any(worker.is_busy for worker in crew):
            for key, _ in selector.select(timeout=0.5):
                worker = key.data
                data = os.read(worker.answers, 1 << 16)
                if not data:
                    raise RuntimeError(f"a worker of verify_kernels has ended: {worker.failure or 'no reason known'}")
                *lines, worker.pending = (worker.pending + data).split(b"\n")
                for line in lines:
                    yield from _take(worker, json.loads(line), queue)
            _end_late_ones(crew)


def _give(worker: _Worker, queue: deque[tuple[int, list[int]]]) -> None:
    """Give a worker what is left of its batch, or the next one."""
    if not worker.waiting and queue:
        worker.library, functions = queue.popleft()
        worker.waiting = deque(functions)
    worker.is_busy = bool(worker.waiting)
    worker.current, worker.phase, worker.was_late, worker.failure = None, "", False, ""
    worker.deadline = time.monotonic() + COMPILE_SECONDS
    if worker.is_busy:
        order = json.dumps({"library": worker.library, "functions": list(worker.waiting)}) + "\n"
        data = order.encode()
        while data:
            data = data[os.write(worker.orders, data) :]


def _take(worker: _Worker, message: Mapping[str, Any], queue: deque[tuple[int, list[int]]]) -> Iterator[Done]:
    event = message["event"]
    if event == "pid":
        worker.executor = message["pid"]
    elif event in ("compile", "run"):
        worker.current, worker.phase = message["function"], event
        worker.deadline = time.monotonic() + (COMPILE_SECONDS if event == "compile" else KERNEL_SECONDS)
    elif event == "compiled":
        worker.current, worker.phase = None, "connect"
        worker.deadline = time.monotonic() + 240
    elif event == "done":
        worker.waiting.remove(message["function"])
        worker.current = None
        yield Done(
            task=Task(library=worker.library, function=message["function"]),
            verdict=message["verdict"],
            body=message.get("body", ""),
            family=message.get("family", ""),
            operator=message.get("operator", ""),
            seconds=message.get("seconds", 0.0),
            is_compiled=message.get("is_compiled", True),
            key=message.get("key", ""),
        )
    elif event == "failed":
        worker.failure = message["text"]
    elif event == "ended":
        worker.executor = None
        yield from _settle(worker, message["status"])
        _give(worker, queue)


def _settle(worker: _Worker, status: int) -> Iterator[Done]:
    """Judge the kernel at which a process ended before its batch did."""
    if not worker.waiting:
        return
    culprit = worker.current
    if culprit is None:
        raise RuntimeError(f"a batch of verify_kernels ended without a kernel at fault: {worker.failure or status}")
    how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.waitstatus_to_exitcode(status)}"
    outcome, reason = "crashed", f"its process ended by {how}"
    if worker.was_late:
        outcome, reason = "timeout", "it did not end in time"
    if worker.phase == "compile":
        outcome, reason = "not_compiled", f"the compiler {'took too long' if worker.was_late else 'ended by ' + how}"
    if worker.failure:
        said = worker.failure.strip().splitlines()[-1]
        outcome, reason = "not_bound", f"examining it failed, which is a bug of mps-build: {said}"
    worker.waiting.remove(culprit)
    yield Done(
        task=Task(library=worker.library, function=culprit),
        verdict={"outcome": outcome, "reason": reason},
        is_compiled=outcome != "not_compiled",
    )


def _end_late_ones(crew: Sequence[_Worker]) -> None:
    now = time.monotonic()
    for worker in crew:
        if worker.is_busy and worker.executor and now > worker.deadline and not worker.was_late:
            worker.was_late = True
            with suppress(ProcessLookupError):
                os.kill(worker.executor, signal.SIGKILL)


def tasks_of(libraries: Sequence[Library], keep: Callable[[Library, str], bool]) -> list[Task]:
    """Return the kernels to examine, in the libraries' order (forms of one operator lie side by side)."""
    return [
        Task(library=number, function=index)
        for number, library in enumerate(libraries)
        for index, function in enumerate(library.functions)
        if keep(library, function.name)
    ]
