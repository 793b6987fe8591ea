"""A closed process that lies: what it says is of a known form and length, or it is ended, and costs one kernel."""

from __future__ import annotations

import faulthandler
import json
import os
import pickle
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llvmlite")

from mps_build.inspection.limits import Malformed
from mps_build.kernels.code.compiled import ARENA_BASE, ARENA_STEP, Code, Refused
from mps_build.kernels.code.kernel import compile_kernel
from mps_build.kernels.execution import closed as module
from mps_build.kernels.execution import fork_server
from mps_build.kernels.execution.closed import Ended, Machine, OurFault, Reader
from mps_build.kernels.execution.sandbox import SandboxUnavailable
from mps_build.kernels.machine.left import BadReport
from mps_build.kernels.program.launch import Program, Step, WrongBinding, input_buffer, output_buffer
from small_kernels import bitcode, compiled, doubled

LENGTHS = struct.Struct("<IQ")


class Fake:
    """A server whose one child says what it is to say, whatever the request."""

    def __init__(self, folder: Path, answers: list[bytes], *, then: Callable[[], None] | None = None) -> None:
        self.path = folder / "fake"
        self._answers, self._then = answers, then
        self.pid = os.fork()
        if self.pid == 0:
            try:
                fork_server.serve(str(self.path), self._talk)
            finally:
                os._exit(0)

    def _talk(self, connection: socket.socket) -> None:
        faulthandler.disable()  # a child that crashes on purpose says nothing of it
        connection.sendall(frame({"pid": os.getpid(), "outer": os.getpid()}))
        for each in self._answers:
            head = connection.recv(LENGTHS.size, socket.MSG_WAITALL)
            if len(head) < LENGTHS.size:
                return
            connection.recv(sum(LENGTHS.unpack(head)), socket.MSG_WAITALL)
            connection.sendall(each)
        if self._then:
            self._then()

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def frame(record: object, data: bytes = b"") -> bytes:
    text = record if isinstance(record, bytes) else json.dumps(record).encode()
    return LENGTHS.pack(len(text), len(data)) + text + data


@pytest.fixture
def lying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    started: list[Fake] = []
    opened: list[socket.socket] = []
    connected = module.connected

    def noted(path: Path, seconds: float) -> socket.socket:
        opened.append(connected(path, seconds))
        return opened[-1]

    monkeypatch.setattr(module, "connected", noted)

    def start(*answers: bytes, then: Callable[[], None] | None = None) -> Path:
        started.append(Fake(tmp_path, list(answers), then=then))
        return started[-1].path

    yield start
    for one in opened:
        one.close()
    for each in started:
        each.close()


# What the process that reads bitcode says of a kernel whose addresses cannot wrap.
READ: dict[str, Any] = {"metadata": None, "body": "", "digest": "", "narrow": []}
LIES = {
    "nothing of JSON": frame(b"passed"),
    "JSON that is no record": frame([1, 2]),
    "a verdict": frame({"outcome": "passed"}),
    "a pid": frame({"pid": 1}),
    "deep": frame(b"[" * 100000 + b"]" * 100000),
    "a number without end": frame(b'{"metadata": null, "body": "", "digest": "", "narrow": ' + b"9" * 10000 + b"}"),
    "a part too many": frame({**READ, "outcome": "passed"}),
    "a part of another type": frame({**READ, "narrow": [1]}),
    "a list without end": frame({**READ, "narrow": ["x"] * 2000}),
    "a text without end": frame({**READ, "narrow": ["x" * 1000]}),
    "a length without end": LENGTHS.pack(1 << 31, 0),
    "bytes without end": LENGTHS.pack(2, 1 << 60),
    "not UTF-8": frame(b'{"metadata": null, "body": "", "digest": "", "narrow": ["\xff"]}'),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_is_no_answer_ends_the_process_and_is_a_crash(lying: Callable[..., Path], lie: str) -> None:
    reader = Reader(lying(LIES[lie]))

    with pytest.raises(Ended) as ended:
        reader.addressing(b"")

    assert ended.value.outcome == "crashed"
    assert len(ended.value.reason) < 400


@pytest.mark.parametrize(
    ("then", "said"),
    [
        (lambda: os._exit(7), "exit 7"),
        (lambda: os.kill(os.getpid(), signal.SIGSEGV), "signal 11"),
        (lambda: os.kill(os.getpid(), signal.SIGSYS), "a system call that it may not make"),
        (lambda: None, "exit 0"),
    ],
)
def test_the_status_of_a_process_comes_from_the_one_that_started_it(
    lying: Callable[..., Path], then: Callable[[], None], said: str
) -> None:
    with pytest.raises(Ended, match=f"its process ended by {said}"):
        Reader(lying(then=then)).addressing(b"")


def test_a_process_that_says_nothing_is_ended_in_time(
    lying: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "COMPILE_SECONDS", 0.3)
    path = lying(then=lambda: time.sleep(60))  # then it ends well, which would be another outcome

    with pytest.raises(Ended) as ended:
        Reader(path).addressing(b"")

    assert ended.value.outcome == "timeout"


def test_a_process_that_holds_too_much_memory_is_ended(
    lying: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_RESIDENT", 300 << 20)

    def grows() -> None:
        held.append(bytearray(os.urandom(1 << 20) * 400))
        time.sleep(60)

    held: list[bytearray] = []
    with pytest.raises(Ended, match="MB of memory, of 300 that it may"):
        Reader(lying(then=grows)).addressing(b"")


def test_a_byte_now_and_then_is_too_late(lying: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMPILE_SECONDS", 0.5)

    def drips() -> None:
        out = next(each for each in range(3, 64) if _is_connected(each))
        for each in frame(READ):
            os.write(out, bytes([each]))
            time.sleep(0.2)

    with pytest.raises(Ended) as ended:
        Reader(lying(then=drips)).addressing(b"")

    assert ended.value.outcome == "timeout"


def _is_connected(number: int) -> bool:
    try:
        with socket.socket(fileno=os.dup(number)) as one:
            return one.getpeername() is not None
    except OSError:
        return False


@pytest.mark.parametrize(
    ("failed", "error"),
    [("malformed", Malformed), ("binding", WrongBinding), ("memory", Ended), ("fault", OurFault)],
)
def test_what_it_says_went_wrong_is_kept_apart(lying: Callable[..., Path], failed: str, error: type[Exception]) -> None:
    with pytest.raises(error, match="so it is"):
        Reader(lying(frame({"failed": failed, "text": "so it is"}))).addressing(b"")


def test_a_process_that_could_not_be_closed_ends_the_run(lying: Callable[..., Path]) -> None:
    with pytest.raises(SandboxUnavailable, match="no filter"):
        Reader(lying(frame({"unavailable": "no filter"}))).addressing(b"")


GOOD = compiled(doubled())
METADATA = json.loads(json.dumps({"function": "f", "arguments": [], "max_threads": None, "arrays": [], "types": []}))
ARGUMENT = {
    "index": 0, "name": "a", "kind": "buffer", "type": "float", "slot": 0, "access": "read", "space": 1, "size": None,
    "element": 4, "align": 4, "fields": [],
}  # fmt: skip


@pytest.mark.parametrize(
    "parts",
    [
        {"metadata": {**METADATA, "arguments": [{**ARGUMENT, "size": 1 << 50}]}},
        {"metadata": {**METADATA, "arguments": [{**ARGUMENT, "index": 3}]}},
        {"metadata": {**METADATA, "arguments": [{**ARGUMENT, "element": -1}]}},
        {"metadata": {**METADATA, "arguments": [ARGUMENT] * 200}},
        {"metadata": {**METADATA, "arrays": [1 << 40]}},
        {"variables": [{"address": 0x1000, "size": 4, "is_zero": False}]},
        {"variables": [{"address": ARENA_BASE, "size": ARENA_STEP, "is_zero": False}]},
        {"variables": [{"address": ARENA_BASE - 8, "size": 4, "is_zero": False}]},
    ],
)
def test_a_compiled_kernel_with_impossible_sizes_is_refused(lying: Callable[..., Path], parts: dict[str, Any]) -> None:
    record = {"metadata": METADATA, "body": "x", "variables": [], "is_cooperative": False, **parts}

    found = Reader(lying(frame(record, b"code"))).compile(b"")

    assert isinstance(found, Refused)
    assert found.fault == "refused"


def ran(**parts: Any) -> dict[str, Any]:
    launch = {
        "step": 0, "status": 0, "signal": 0, "address": 0, "thread": [0, 0, 0], "divergent": 0, "threads": 4,
        "inactive": 0, "races": 0, "race_kind": 0, "race_address": 0, "race_threads": [0, 0], "unwritten": 0,
        "places": [], "spoilt": [],
    }  # fmt: skip
    return {"left": {"launches": [{**launch, **parts}], "changed": [], "names": ["x", "out"]}, "sizes": [8]}


REPORTS: dict[str, tuple[dict[str, Any], bytes]] = {
    "fewer bytes": (ran(), b"1234"),
    "more sizes": ({**ran(), "sizes": [4, 4]}, b"12345678"),
    "another step": (ran(step=1), b"12345678"),
    "a place that is not there": (ran(spoilt=[[3, 1]]), b"12345678"),
    "a place before the first": (ran(spoilt=[[-1, 1]]), b"12345678"),
    "more launches": ({**ran(), "left": {**ran()["left"], "launches": ran()["left"]["launches"] * 3}}, b"12345678"),
    "a change in no buffer": ({**ran(), "left": {**ran()["left"], "changed": [[9, 0]]}}, b"12345678"),
    "a change past a buffer": ({**ran(), "left": {**ran()["left"], "changed": [[0, 99]]}}, b"12345678"),
    "a number without end": (ran(address=1 << 80), b"12345678"),
    "as after a first run that there was not": ({**ran(), "sizes": [], "same": [True]}, b""),
    "names without end": ({**ran(), "left": {**ran()["left"], "names": ["x" * 5000]}}, b"12345678"),
}


def program() -> Program:
    arguments: dict[str | int, Any] = {"in": input_buffer(b"12345678"), "out": output_buffer(8)}
    step = Step(kernel="doubled", arguments=arguments, grid=(2, 1, 1), threadgroup=(2, 1, 1))
    return Program(label="", steps=[step], checks=[])


@pytest.mark.parametrize("report", REPORTS)
def test_a_report_of_what_there_is_not_is_an_error_and_no_verdict(lying: Callable[..., Path], report: str) -> None:
    record, data = REPORTS[report]
    assert isinstance(GOOD, Code)
    machine = Machine(lying(frame({}), frame(record, data)), None, {"doubled": GOOD})

    with pytest.raises((BadReport, Ended)):
        machine.run(program())


def test_more_bytes_than_its_buffers_have_end_a_process(lying: Callable[..., Path]) -> None:
    assert isinstance(GOOD, Code)
    machine = Machine(lying(frame({}), frame({**ran(), "sizes": [9]}, b"123456789")), None, {"doubled": GOOD})

    with pytest.raises(Ended, match="where at most"):
        machine.run(program())


@pytest.mark.parametrize(
    ("parts", "data", "out"),
    [
        ({"sizes": [], "same": [True]}, b"", b"abcdefgh"),
        ({"sizes": [8], "same": [False]}, b"ABCDEFGH", b"ABCDEFGH"),
        ({"sizes": [8]}, b"ABCDEFGH", b"ABCDEFGH"),
        ({"sizes": [8], "same": [True]}, b"ABCDEFGH", None),
        ({"sizes": [], "same": [False]}, b"", None),
        ({"sizes": [], "same": [True, True]}, b"", None),
    ],
)
def test_what_is_as_after_the_first_run_is_not_sent_again(
    lying: Callable[..., Path], parts: dict[str, Any], data: bytes, out: bytes | None
) -> None:
    assert isinstance(GOOD, Code)
    said = frame({}), frame(ran(), b"abcdefgh"), frame({**ran(), **parts}, data)
    machine, given = Machine(lying(*said), None, {"doubled": GOOD}), program()
    machine.run(given)

    if out is None:
        with pytest.raises(BadReport):
            machine.run(given)
    else:
        assert machine.run(given).contents[id(given.steps[0].arguments["out"])] == out


def test_a_right_report_is_taken(lying: Callable[..., Path]) -> None:
    assert isinstance(GOOD, Code)
    machine = Machine(lying(frame({}), frame(ran(), b"abcdefgh")), None, {"doubled": GOOD})

    found = machine.run(given := program())

    assert found.troubles == []
    assert found.contents[id(given.steps[0].arguments["out"])] == b"abcdefgh"


def test_a_server_that_cannot_begin_says_why(tmp_path: Path) -> None:
    for error, kind in ((SandboxUnavailable("no libseccomp"), SandboxUnavailable), (ValueError("odd"), OurFault)):

        def fails(error: Exception = error) -> None:
            raise error

        path = tmp_path / type(error).__name__
        with pytest.raises(type(error)):
            fork_server.run(str(path), fails)
        with pytest.raises(kind, match=str(error)):
            module.connected(path, 5)


def test_many_children_are_kept_apart_and_none_is_left(lying: Callable[..., Path]) -> None:
    path = lying(frame({**READ, "narrow": ["mine"]}))
    found: list[list[str]] = []

    def ask() -> None:
        with Reader(path) as reader:
            found.append(reader.addressing(b"").narrow)

    threads = [threading.Thread(target=ask) for _ in range(12)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert found == [["mine"]] * 12
    with Reader(path) as reader:
        pid = reader._pid
    assert fork_server.status_of(str(path), pid, end=True) in (0, signal.SIGKILL)
    with pytest.raises(OSError, match="knows no process"):
        fork_server.status_of(str(path), 999999, end=True)


# What is kept on disk


def test_a_request_holds_what_was_given_and_nothing_is_read_back_by_pickle() -> None:
    """pickle goes one way alone, to the closed process: what comes from there is read by pydantic."""
    source = Path(module.__file__).read_text(encoding="utf-8")

    assert "pickle.loads" not in source and "pickle.dumps" in source
    assert pickle.loads(pickle.dumps(program())).steps[0].kernel == "doubled"
    assert isinstance(compile_kernel(bitcode(doubled())), Code)
