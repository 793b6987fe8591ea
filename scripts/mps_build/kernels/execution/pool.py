"""The parent: hands batches to workers, takes their rows, and goes on when one of them ends."""

from __future__ import annotations

import json
import os
import random
import selectors
import signal
import traceback
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from ...common.errors import RefusedForSafety
from .worker import Setting, serve

# Kernels that one worker takes at a time: neighbours share companions.
BATCH = 64
# The last ones are few, so that a run of slow kernels does not keep one worker busy when all others have ended.
LAST_BATCH, LAST_FOR_EACH_WORKER = 16, 6
_MOST_LINE = 8 << 20
_STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)


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
        """Return what store.py keeps."""
        names = ("verdict", "body", "family", "operator", "is_compiled")
        return {name: getattr(self, name) for name in names}


class _Begin(BaseModel):
    model_config = _STRICT
    event: Literal["begin"]
    function: int


class _Row(BaseModel):
    model_config = _STRICT
    event: Literal["done"]
    function: int
    verdict: dict[str, Any]
    body: str = ""
    family: str = ""
    operator: str = ""
    seconds: float = 0.0
    is_compiled: bool = True
    key: str = ""


class _BatchEnded(BaseModel):
    model_config = _STRICT
    event: Literal["ended"]


class _Unavailable(BaseModel):
    model_config = _STRICT
    event: Literal["unavailable"]
    text: str


class _Said(RootModel[Annotated[_Begin | _Row | _BatchEnded | _Unavailable, Field(discriminator="event")]]):
    """A line of a worker."""


@dataclass(slots=True)
class _Worker:
    number: int
    pid: int
    orders: int
    answers: int
    pending: bytes = b""
    library: int = 0
    waiting: deque[int] = field(default_factory=deque)
    current: int | None = None
    is_busy: bool = False


def examine_all(setting: Setting, tasks: Sequence[Task], *, workers: int, batch: int = BATCH) -> Iterator[Done]:
    """Yield a row for every task, in the order in which they come.

    Raises:
        RefusedForSafety: no process can be closed here.
    """
    queue = _batches(tasks, min(batch, max(1, -(-len(tasks) // max(workers, 1)))), workers)
    with _started(setting, min(workers, max(len(queue), 1))) as crew:
        yield from _drive(setting, crew, queue)


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
def _started(setting: Setting, count: int) -> Iterator[list[_Worker]]:
    crew: list[_Worker] = []
    try:
        for number in range(count):
            crew.append(_start(setting, number, crew))
        yield crew
    finally:
        for worker in crew:
            with suppress(ProcessLookupError):
                os.kill(worker.pid, signal.SIGKILL)
            _forget(worker)


def _forget(worker: _Worker) -> int:
    """Close what is shared with a worker that has ended, and return how it did."""
    os.close(worker.orders)
    os.close(worker.answers)
    with suppress(ChildProcessError):
        return os.waitpid(worker.pid, 0)[1]
    return 0


def _start(setting: Setting, number: int, crew: Sequence[_Worker]) -> _Worker:
    orders_out, orders_in = os.pipe()
    answers_out, answers_in = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            for descriptor in (orders_in, answers_out, *(end for each in crew for end in (each.orders, each.answers))):
                with suppress(OSError):
                    os.close(descriptor)
            serve(setting, orders_out, answers_in)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(orders_out)
    os.close(answers_in)
    return _Worker(number=number, pid=pid, orders=orders_in, answers=answers_out)


def _drive(setting: Setting, crew: list[_Worker], queue: deque[tuple[int, list[int]]]) -> Iterator[Done]:
    with selectors.DefaultSelector() as selector:
        for worker in crew:
            selector.register(worker.answers, selectors.EVENT_READ, worker)
            _give(worker, queue)
        while any(worker.is_busy for worker in crew):
            for key, _ in selector.select(timeout=0.5):
                worker = key.data
                data = os.read(worker.answers, 1 << 16)
                *lines, worker.pending = (worker.pending + data).split(b"\n")
                try:
                    for line in lines:
                        yield from _take(worker, _Said.model_validate_json(line).root, queue)
                    if data and len(worker.pending) <= _MOST_LINE:
                        continue
                    what = ""
                except (ValidationError, ValueError) as error:
                    what = f"it said what no worker says ({str(error).splitlines()[0]})"
                selector.unregister(worker.answers)
                yield from _lost(worker, what)
                crew[worker.number] = _start(setting, worker.number, [each for each in crew if each is not worker])
                crew[worker.number].library, crew[worker.number].waiting = worker.library, worker.waiting
                selector.register(crew[worker.number].answers, selectors.EVENT_READ, crew[worker.number])
                _give(crew[worker.number], queue)


def _give(worker: _Worker, queue: deque[tuple[int, list[int]]]) -> None:
    """Give a worker what is left of its batch, or the next one."""
    if not worker.waiting and queue:
        worker.library, functions = queue.popleft()
        worker.waiting = deque(functions)
    worker.is_busy = bool(worker.waiting)
    worker.current = None
    if worker.is_busy:
        order = json.dumps({"library": worker.library, "functions": list(worker.waiting)}) + "\n"
        data = order.encode()
        while data:
            data = data[os.write(worker.orders, data) :]


def _take(
    worker: _Worker, said: _Begin | _Row | _BatchEnded | _Unavailable, queue: deque[tuple[int, list[int]]]
) -> Iterator[Done]:
    """Take a worker's word; ValueError if it is not the next one."""
    if isinstance(said, _Unavailable):
        raise RefusedForSafety(
            f"a wheel's kernels are not run: {said.text}", hint="docs/security.md says what running them needs"
        )
    if isinstance(said, _Begin):
        if worker.current is not None or said.function not in worker.waiting:
            raise ValueError(f"it begins kernel {said.function}, which is not its own")
        worker.current = said.function
    elif isinstance(said, _Row):
        if said.function != worker.current:
            raise ValueError(f"it tells of kernel {said.function}, which it has not begun")
        worker.waiting.remove(said.function)
        worker.current = None
        values = said.model_dump(exclude={"event", "function"})
        yield Done(task=Task(library=worker.library, function=said.function), **values)
    else:
        if worker.waiting:
            raise ValueError("it ends a batch before its kernels")
        _give(worker, queue)


def _lost(worker: _Worker, what: str) -> Iterator[Done]:
    """Give up a worker, and the kernel that it was at: an error of ours, and no verdict on the kernel."""
    with suppress(ProcessLookupError):
        os.kill(worker.pid, signal.SIGKILL)
    status = _forget(worker)
    how = what or (f"it ended by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "it ended")
    if not worker.waiting:
        raise RuntimeError(f"a worker of verify_kernels has no kernel, and {how}")
    culprit = worker.current if worker.current is not None else worker.waiting[0]
    worker.waiting.remove(culprit)
    reason = f"examining it failed, which is a bug of mps-build: its worker is lost, {how}"
    yield Done(
        task=Task(library=worker.library, function=culprit), verdict={"outcome": "misfit", "reason": reason[:2000]}
    )
