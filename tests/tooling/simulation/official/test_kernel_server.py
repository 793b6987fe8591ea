"""The server that makes kernels for the process of a macOS wheel: what it answers, what it keeps, what it refuses."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mps_build.common.process import Command, capture
from mps_build.kernels.machine import build as machine
from mps_build.simulation.builder.ninja_file import NATIVE
from mps_build.simulation.official.kernel_server import (
    ASK_KERNEL,
    ASK_NAMES,
    ASK_SOURCE,
    MOST_BYTES,
    VARIABLE,
    Kernels,
    kernel_server,
)
from small_kernels import bitcode, doubled

_BASE = 0x5B00_0000_0000
_RETURN = bytes.fromhex("c0035fd6")  # arm64's `ret`


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def server(home: Path) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPS_BUILD_CACHE", str(home))
        with kernel_server(Path("/nowhere/zig"), {}) as environ:
            yield environ[VARIABLE]


def _connected(server: str) -> socket.socket:
    talk = socket.socket(socket.AF_UNIX)
    while True:  # as rt_ask does: it may have to begin yet
        try:
            talk.connect(server)
        except (FileNotFoundError, ConnectionRefusedError):
            time.sleep(0.02)
        else:
            return talk


def _ask(server: str, *requests: tuple[int, int, bytes]) -> list[tuple[str, bytes]]:
    answers = []
    with _connected(server) as talk, talk.makefile("rb") as heard:
        for what, base, data in requests:
            talk.sendall(struct.pack("<QQQ", what, base, len(data)) + data)
            text, made = struct.unpack("<QQ", heard.read(16))
            answers.append((heard.read(text).decode(), heard.read(made)))
    return answers


def test_a_kernel_comes_back_as_code_of_arm64_for_the_address_that_was_given(server: str) -> None:
    given = bitcode(doubled())

    (names, _), (line, code), other = _ask(
        server, (ASK_NAMES, 0, b""), (ASK_KERNEL, _BASE, given), (ASK_KERNEL, _BASE + 4096, given)
    )

    assert "rt_exp" in names.split()
    base, entry, row, at, size, cooperative, most = (int(word) for word in line.split()[:7])
    assert (base, at, size, cooperative, most) == (_BASE, 0, len(code), 0, 1024)
    assert all(_BASE <= each < _BASE + size and each % 4 == 0 for each in (entry, row))
    assert code.count(_RETURN) >= 2  # for a thread, and for a row of threads
    assert other[0].split()[0] == str(_BASE + 4096)


def test_what_was_compiled_is_kept_for_the_next_process(server: str, home: Path) -> None:
    given = bitcode(doubled("fmul float %v, %v"))
    answer = _ask(server, (ASK_KERNEL, _BASE, given))[0]

    again = Kernels(reader=Path("/nowhere/reader"), home=home / "simulation/official", zig=Path("/nowhere/zig"))
    text, code = again.answer(ASK_KERNEL, _BASE, given)

    assert (text.decode(), code) == answer


@pytest.mark.parametrize(
    ("what", "data", "reason"),
    [
        (ASK_KERNEL, b"BC\xc0\xde and more", "LLVM cannot read the bitcode"),
        (ASK_KERNEL, bitcode("define void @f() {\n  ret void\n}\n"), "exactly one kernel"),
        (ASK_SOURCE, b"kernel void f(sampler s) {}", "parameter 'sampler s'"),
        (ASK_SOURCE, b"\xff", "can't decode byte 0xff"),
        (ASK_SOURCE, b"kernel void f(device float *a [[buffer(0)]]) {}", "No such file or directory"),
        (9, b"", "does not know request 9"),
    ],
)
def test_what_cannot_be_made_is_answered_with_a_reason(server: str, what: int, data: bytes, reason: str) -> None:
    (text, made), (names, _) = _ask(server, (what, 0, data), (ASK_NAMES, 0, b""))

    assert reason in text
    assert made == b""
    assert names


def test_a_request_without_an_end_is_not_read(server: str) -> None:
    with _connected(server) as talk:
        talk.sendall(struct.pack("<QQQ", ASK_KERNEL, 0, MOST_BYTES + 1))
        with talk.makefile("rb") as heard:
            assert b"of at most" in heard.read()
    assert _ask(server, (ASK_NAMES, 0, b""))[0][0]


class _Answer(ctypes.Structure):
    """native/linux/machine.h, `struct rt_answer`."""

    _fields_ = (("text", ctypes.c_uint64), ("data", ctypes.c_uint64), ("bytes", ctypes.c_void_p))


@pytest.fixture(scope="module")
def asks(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """What the software Metal asks the server by, compiled for this machine."""
    library = tmp_path_factory.mktemp("machine") / "libmachine.so"
    sources = [str(path) for folder in (machine.SOURCES, NATIVE / "linux") for path in folder.glob("*.c")]
    flags = ("-std=gnu11", "-fPIC", "-shared", "-w", f"-I{machine.SOURCES}")
    argv = (*machine.find_compiler(), *flags, "-o", str(library), *sources, "-lm", "-ldl", "-lpthread")
    done = capture(Command(argv=argv), timeout_seconds=300)
    assert done.ok, done.stderr
    return ctypes.CDLL(str(library))


def _answered(asks: ctypes.CDLL, what: int, data: bytes) -> tuple[int, str, int]:
    answer = _Answer()
    failed = asks.rt_ask(what, ctypes.c_uint64(_BASE), data, ctypes.c_uint64(len(data)), ctypes.byref(answer))
    return failed, ctypes.string_at(answer.bytes, answer.text).decode() if not failed else "", answer.data


def test_a_process_and_its_child_ask_over_connections_of_their_own(
    server: str, asks: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, server)
    given = bitcode(doubled())
    first = _answered(asks, ASK_KERNEL, given)

    child = os.fork()
    if child == 0:
        same = all(_answered(asks, ASK_KERNEL, given) == first for _ in range(50))
        os._exit(0 if same else 1)
    answers = {_answered(asks, ASK_NAMES, b"") for _ in range(50)}

    assert os.waitpid(child, 0)[1] == 0
    assert first[0] == 0 and first[1].startswith(f"{_BASE} ") and first[2] > 8
    assert [(failed, text.split()[0], data) for failed, text, data in answers] == [(0, "rt_exp", 0)]


def test_code_finds_the_functions_of_the_machine_and_of_c(asks: ctypes.CDLL) -> None:
    asks.rt_found_in.restype = ctypes.c_void_p

    assert all(asks.rt_found_in(None, name) for name in (b"rt_exp", b"rt_barrier", b"memcpy", b"fmodf"))
    assert not asks.rt_found_in(None, b"rt_nothing")
