"""The sandbox alone: what a closed process tries fails, whatever code it runs. No check of bitcode stands before it."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import pty
import resource
import signal
import socket
import sys
from functools import partial
from pathlib import Path

import pytest
from closed_calls import DONE, FAILED, REFUSED, by_code, closed, closed_all
from mps_build.kernels.execution import sandbox
from mps_build.kernels.execution.sandbox import SandboxUnavailable, enter

pytestmark = pytest.mark.sandbox


def number_of(name: str) -> int:
    return int(sandbox._seccomp().seccomp_syscall_resolve_name(name.encode()))


def test_it_computes_and_talks_over_its_pipe() -> None:
    out, back = os.pipe()

    def computes() -> None:
        assert sum(range(1000)) == 499500
        bytearray(10 << 20)
        os.write(back, b"right")

    assert closed(computes) == DONE
    assert os.read(out, 100) == b"right"


@pytest.mark.parametrize("path", ["/etc/passwd", "/proc/self/mem", "/proc/self/environ", "/dev/tty", "/tmp", "."])
def test_no_file_is_opened(path: str) -> None:
    assert closed(lambda: os.open(path, os.O_RDONLY)) == REFUSED
    assert closed(lambda: Path(path).stat()) == REFUSED
    assert closed(lambda: list(Path(path).iterdir())) == REFUSED
    encoded = path.encode() + b"\0"
    at = ctypes.addressof(ctypes.create_string_buffer(encoded))
    assert closed(by_code(number_of("openat"), -100, at, 0)) == REFUSED


@pytest.mark.parametrize(
    "how", [os.O_WRONLY | os.O_CREAT, os.O_RDWR, getattr(os, "O_TMPFILE", 0) | os.O_RDWR, os.O_PATH]
)
def test_no_file_is_written(tmp_path: Path, how: int) -> None:
    assert closed(lambda: os.open(tmp_path if how & getattr(os, "O_TMPFILE", 0) else tmp_path / "x", how)) == REFUSED
    assert not list(tmp_path.iterdir())


def test_nothing_that_was_open_can_be_read_but_pipes(tmp_path: Path) -> None:
    (tmp_path / "private").write_text("secret")
    listening = socket.socket()
    with (tmp_path / "private").open("rb", buffering=0) as file, listening:
        descriptors = file.fileno(), listening.fileno()
        for each in descriptors:
            assert closed(partial(os.read, each, 1)) == FAILED  # EBADF
        assert closed(lambda: os.read(descriptors[0], 1), keep=descriptors[:1]) == DONE  # what is kept is kept


def test_nothing_is_typed_into_a_terminal() -> None:
    """TIOCSTI put a command into the terminal of whoever ran a kernel."""
    leader, follower = pty.openpty()

    def types() -> None:
        fcntl.ioctl(follower, 0x5412, b"x")

    assert closed(types, keep=(follower,)) == REFUSED
    assert closed(lambda: fcntl.ioctl(0, 0x5412, b"x")) == REFUSED
    assert closed(lambda: os.open("/dev/tty", os.O_RDWR)) == REFUSED
    os.close(leader)
    os.close(follower)


def test_it_has_left_its_terminal() -> None:
    """The child of a terminal's own session has none after it is closed."""
    pid, leader = pty.fork()
    if pid == 0:
        out = os.dup(1)
        enter(keep=(out,))
        code = 3
        try:
            os.tcgetpgrp(0)
        except OSError:
            code = 0
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(leader)


def test_nobody_is_signalled_and_no_limit_of_others_is_set() -> None:
    parent = os.getpid()
    for attempt in (
        lambda: os.kill(parent, 0),
        lambda: os.kill(parent, signal.SIGKILL),
        lambda: resource.prlimit(parent, resource.RLIMIT_CPU),
        lambda: resource.prlimit(parent, resource.RLIMIT_CPU, (1, 1)),
        by_code(number_of("tgkill"), parent, parent, 9),
        by_code(number_of("kill"), parent, 9),
    ):
        assert closed(attempt) in (REFUSED, FAILED)
    assert closed(lambda: resource.setrlimit(resource.RLIMIT_CPU, (1, 1))) == FAILED  # ValueError
    assert closed(lambda: resource.getrlimit(resource.RLIMIT_CPU)) == DONE


@pytest.mark.parametrize("kind", ["MAP_SHARED", "MAP_LOCKED", "MAP_HUGETLB", "MAP_GROWSDOWN"])
def test_no_memory_is_shared_locked_or_grows(kind: str) -> None:
    flag = {"MAP_SHARED": 1, "MAP_LOCKED": 0x2000, "MAP_HUGETLB": 0x40000, "MAP_GROWSDOWN": 0x100}[kind]
    private = 0 if kind == "MAP_SHARED" else mmap.MAP_PRIVATE

    def maps() -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype, libc.mmap.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 4]
        if libc.mmap(None, 3 << 30, 3, flag | private | mmap.MAP_ANONYMOUS, -1, 0) == ctypes.c_void_p(-1).value:
            raise OSError(ctypes.get_errno(), "mmap")

    assert closed(maps) == REFUSED


def test_memory_past_the_limit_is_refused() -> None:
    def grows() -> None:
        for _ in range(10):
            data = mmap.mmap(-1, 16 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            data[::4096] = b"x" * len(data[::4096])
            kept.append(data)

    kept: list[mmap.mmap] = []
    assert closed(grows, memory=8 << 30) == DONE
    assert closed(grows, memory=100 << 20) == FAILED  # ENOMEM
    assert closed(lambda: bytearray(3 << 30)) == REFUSED


@pytest.mark.parametrize("name", ["fork", "vfork", "clone", "clone3"])
def test_nothing_is_started(name: str) -> None:
    if (number := number_of(name)) < 0:
        pytest.skip(f"this processor has no {name}")
    assert closed(by_code(number, 17)) == REFUSED


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.slow)])
def test_every_system_call_that_is_on_no_list_ends_the_process(every: int) -> None:
    """By rule, over all numbers that there are: so also what a newer kernel has. Each fifth, or all of them."""
    lists = {
        number_of(each) for each in (*sandbox._ALLOWED, *sandbox._REFUSED, "mmap", "prlimit64", "sched_getaffinity")
    }
    # uretprobe and uprobe of x86-64, the kernel's own trampolines, pass every filter, and do nothing here.
    lists |= {335, 336} if platform.machine() == "x86_64" else set()
    numbers = {*range(0, 480, every), 1000, 0x40000000 + 2, 0x40000000 + 59} - lists

    lives, *ends = closed_all((number,) for number in (number_of("getpid"), *numbers))

    assert lives == DONE
    assert {number: how for number, how in zip(numbers, ends, strict=True) if how != -signal.SIGSYS} == {}


def test_every_refused_call_is_refused_whatever_its_arguments() -> None:
    numbers = {name: number_of(name) for name in sandbox._REFUSED}
    tried = [(name, argument) for name, number in numbers.items() if number >= 0 for argument in (0, 1, -1)]

    calls = ((numbers[name], *[argument] * 3) for name, argument in tried)
    lives, *ends = closed_all(((number_of("getpid"),), *calls))

    assert lives == DONE
    assert [each for each, how in zip(tried, ends, strict=True) if how != REFUSED] == []


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the other word size of x86-64")
def test_calls_of_the_other_word_size_end_the_process() -> None:
    def calls() -> None:
        page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
        page.write(bytes.fromhex("b814000000 cd80 c3"))  # getpid by int 0x80
        ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()

    assert closed(calls) == -signal.SIGSYS


def test_a_program_gains_nothing_by_being_run_by_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    assert closed(lambda: os.setuid(0)) == -signal.SIGSYS
    assert closed(lambda: os.chroot("/")) == -signal.SIGSYS


def test_a_second_layer_forbids_files_without_the_filter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Landlock alone: the filter of system calls is left out, and still no file is opened."""
    if ctypes.CDLL(None).syscall(444, None, 0, 1) < 1:
        pytest.skip("this kernel has no Landlock")
    (tmp_path / "private").write_text("secret")

    def without_filter(*_: object, **__: object) -> None:
        libc = sandbox._libc()
        assert libc.prctl(38, 1, 0, 0, 0) == 0
        sandbox._landlock(libc)

    monkeypatch.setattr(sandbox, "enter", without_filter)
    assert closed(lambda: os.open(tmp_path / "private", os.O_RDONLY)) == REFUSED
    assert closed(lambda: os.open(tmp_path / "made", os.O_WRONLY | os.O_CREAT)) == REFUSED


@pytest.mark.parametrize("layer", ["prctl", "the filter", "the library", "what it forbids"])
def test_a_layer_that_cannot_be_had_is_an_error(monkeypatch: pytest.MonkeyPatch, layer: str) -> None:
    """No process goes on half closed."""

    class Without:
        def __getattr__(self, name: str) -> object:
            if layer == "prctl" and name == "prctl":
                return lambda *_: -1
            if layer in ("the filter", "what it forbids") and name == "syscall":
                answer = -1 if layer == "the filter" else 0
                return lambda number, *rest: answer if number == sandbox.filter_rules().number else -1
            return getattr(ctypes.CDLL(None, use_errno=True), name)

    def unavailable() -> None:
        raise SandboxUnavailable("libseccomp is not installed")

    monkeypatch.setattr(sandbox, "_libc", Without)
    if layer == "the library":
        monkeypatch.setattr(sandbox, "filter_rules", unavailable)
    code = os.fork()
    if code == 0:
        try:
            enter()
        except SandboxUnavailable:
            os._exit(5)
        finally:
            os._exit(6)
    assert os.waitstatus_to_exitcode(os.waitpid(code, 0)[1]) == 5


def test_it_is_proved_in_children_before_anything_runs() -> None:
    before = resource.getrlimit(resource.RLIMIT_CORE)

    sandbox.prove()

    assert resource.getrlimit(resource.RLIMIT_CORE) == before


def test_other_systems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    sandbox._seccomp.cache_clear()
    sandbox.filter_rules.cache_clear()
    try:
        with pytest.raises(SandboxUnavailable, match="on Linux alone"):
            enter()
    finally:
        sandbox._seccomp.cache_clear()
        sandbox.filter_rules.cache_clear()
    assert errno.EPERM == 1
