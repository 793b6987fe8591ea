"""What a process that holds a wheel's code may still do: compute, and talk over the descriptors that it was left.

Standard library alone: the process that has torch loads this file by its path. The rules are libseccomp's
(https://github.com/seccomp/libseccomp), whose names and filters hold on every processor; docs/security.md says what
each layer stops.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import resource
import signal
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

MEMORY_BYTES = 2 << 30
# Sparse tensors: address space, of which a launch of a few threadgroups touches little.
LARGE_BYTES = 800 << 30
CPU_SECONDS = 1200
_STACK_BYTES = 64 << 20
_FILES = 64

# Computing: memory, time, waiting, signals to oneself by faults, and descriptors that are open already.
_ALLOWED = (
    "read", "write", "readv", "writev", "close", "poll", "ppoll", "brk", "mprotect", "munmap", "mremap", "madvise",
    "futex", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "setitimer", "getitimer", "exit",
    "exit_group", "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
    "sched_yield", "getrandom", "restart_syscall", "rseq", "getpid", "gettid", "getuid", "geteuid", "getgid", "getegid",
    "getrusage", "times", "getcpu", "fstat", "get_robust_list", "set_robust_list",
)  # fmt: skip
# What libraries try on their way (a file beside a traceback, a terminal behind a number, one thread more): refused,
# and the process goes on. Everything that is in neither list ends it.
_REFUSED = (
    "open", "openat", "openat2", "creat", "stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2",
    "readlink", "readlinkat", "getcwd", "getdents64", "ioctl", "fcntl", "lseek", "dup", "dup2", "dup3", "pipe2", "kill",
    "tkill", "tgkill", "clone", "clone3", "fork", "vfork", "setrlimit", "uname",
    "sysinfo", "membarrier", "sched_setaffinity", "getppid", "getpgrp", "getsid",
)  # fmt: skip
# mmap: private memory of nobody else's, that does not grow by itself and is neither locked nor of huge pages.
_SHARED, _ANONYMOUS, _GROWS, _LOCKED, _HUGE = 0x01, 0x20, 0x0100, 0x2000, 0x40000
_KILL, _REFUSE, _ALLOW = 0x80000000, 0x00050000 | errno.EPERM, 0x7FFF0000
_UNEQUAL, _EQUAL, _MASKED_EQUAL = 1, 4, 7
_NO_NEW_PRIVILEGES = 38
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT = 444, 446
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # by Landlock's version, how many there are


class SandboxUnavailable(Exception):
    """This system has not what it takes to run a stranger's code; nothing of it is run."""


class _Filter(ctypes.Structure):
    """linux/filter.h, `struct sock_fprog`; beside it the instructions, and the number of the system call seccomp."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))
    held: Any
    number: int


class _Comparison(ctypes.Structure):
    """seccomp.h, `struct scmp_arg_cmp`."""

    _fields_ = (("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64))


def enter(memory: int = MEMORY_BYTES, *, keep: Sequence[int] = ()) -> None:
    """Limit this process and close it: from here on it computes, and reads and writes pipes that are open.

    Args:
        memory: the most bytes of writable memory.
        keep: descriptors beside pipes that stay open; every other is closed (0 to 2 become /dev/null).

    Raises:
        SandboxUnavailable: a part of it cannot be had, or does not hold when it is tried.
    """
    rules = filter_rules()
    try:
        _leave_the_terminal()
        _close_descriptors(keep)
        _limit(memory)
    except (OSError, ValueError) as error:
        raise SandboxUnavailable(f"this process cannot be limited: {error}") from error
    libc = _libc()
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise SandboxUnavailable("the kernel does not let a process give up new privileges")
    _landlock(libc)
    set_filter, all_threads = 1, 1
    if libc.syscall(rules.number, set_filter, all_threads, ctypes.byref(rules)) != 0:
        raise SandboxUnavailable(f"the kernel takes no filter of system calls: {os.strerror(ctypes.get_errno())}")
    _try_what_is_forbidden()


def prove() -> None:
    """Enter in children, and try there what ends a process: each must be ended by the filter, before any kernel runs.

    Raises:
        SandboxUnavailable: one of them lived, or could not enter.
    """
    filter_rules()
    for name, attempt in _FATAL.items():
        code = _ended_by(attempt)
        if code != -signal.SIGSYS:
            how = {_WENT_ON: "it went on", _NOT_CLOSED: "it could not be closed"}.get(code, f"status {code}")
            raise SandboxUnavailable(f"a closed process that tried {name} was not ended by it: {how}")


def _ended_by(attempt: Callable[[Any], object]) -> int:
    pid = os.fork()
    if pid == 0:
        code = _NOT_CLOSED
        try:
            enter()
            code = _WENT_ON
            attempt(_libc())
        finally:
            os._exit(code)
    status = os.waitpid(pid, 0)[1]
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


_NOT_CLOSED, _WENT_ON = 3, 4
_FATAL: dict[str, Callable[[Any], object]] = {
    "to start a program": lambda libc: libc.execve(b"/bin/true", None, None),
    "to open a socket": lambda libc: libc.socket(1, 1, 0),
    "to trace a process": lambda libc: libc.ptrace(16, os.getppid(), 0, 0),
    "to make a file of memory": lambda libc: libc.memfd_create(b"x", 0),
    "to take privileges": lambda libc: libc.setuid(0),
}


def _leave_the_terminal() -> None:
    try:
        os.setsid()
    except PermissionError:  # it leads a group already: then the terminal itself is given up
        with suppress(OSError):
            terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
            before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which the leader of a session is sent for it
            fcntl.ioctl(terminal, 0x5422)  # TIOCNOTTY
            signal.signal(signal.SIGHUP, before)
            os.close(terminal)


def _close_descriptors(keep: Sequence[int]) -> None:
    try:
        numbers = sorted(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208  # a child's first milliseconds
    except OSError:
        numbers = list(range(resource.getrlimit(resource.RLIMIT_NOFILE)[0]))
    for number in numbers:
        with suppress(OSError):
            if number in keep or stat.S_ISFIFO(os.fstat(number).st_mode):
                continue
            if number > 2:
                os.close(number)
                continue
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, number)
            if nothing != number:
                os.close(nothing)


def _limit(memory: int) -> None:
    limits = {"CORE": 0, "FSIZE": 0, "MEMLOCK": 0, "MSGQUEUE": 0, "DATA": memory, "STACK": _STACK_BYTES}
    for name, wanted in {**limits, "CPU": CPU_SECONDS, "NOFILE": _FILES}.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(kind)
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (value, value))


def _landlock(libc: Any) -> None:
    """Give up every right to files a second time, where the kernel has Landlock (5.13 and newer)."""
    version = libc.syscall(_LANDLOCK_CREATE, None, 0, 1)
    if version < 1:
        return
    rights = (ctypes.c_uint64 * 1)((1 << _FILE_RIGHTS.get(version, 16)) - 1)
    rules = libc.syscall(_LANDLOCK_CREATE, ctypes.byref(rights), ctypes.sizeof(rights), 0)
    if rules < 0:
        return
    failed = libc.syscall(_LANDLOCK_RESTRICT, rules, 0)
    os.close(rules)
    if failed:
        raise SandboxUnavailable(f"Landlock takes no rules: {os.strerror(ctypes.get_errno())}")


@lru_cache(maxsize=1)
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


@lru_cache(maxsize=1)
def _seccomp() -> Any:
    if not sys.platform.startswith("linux"):
        raise SandboxUnavailable(f"a stranger's code is run on Linux alone, not on {sys.platform}")
    try:
        library = ctypes.CDLL("libseccomp.so.2")
    except OSError as error:
        raise SandboxUnavailable(
            "libseccomp is not installed, which keeps a wheel's code from this machine: "
            "apt-get install libseccomp2, dnf install libseccomp, apk add libseccomp"
        ) from error
    pointer = ctypes.c_void_p
    library.seccomp_init.restype = pointer
    library.seccomp_release.argtypes = [pointer]
    library.seccomp_attr_set.argtypes = [pointer, ctypes.c_int, ctypes.c_uint32]
    library.seccomp_rule_add_array.argtypes = [pointer, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, pointer]
    library.seccomp_export_bpf.argtypes = [pointer, ctypes.c_int]
    return library


@lru_cache(maxsize=1)
def filter_rules() -> _Filter:
    """Return the filter of system calls as libseccomp writes it, made once for a process and its children.

    Raises:
        SandboxUnavailable: there is no libseccomp, or it does not take the rules.
    """
    library = _seccomp()
    rules = library.seccomp_init(_KILL)
    if not rules:
        raise SandboxUnavailable("libseccomp does not know this processor")
    try:
        _add_all(rules)
        data = _exported(rules)
    finally:
        library.seccomp_release(rules)
    held = ctypes.create_string_buffer(data, len(data))
    found = _Filter(len(data) // 8, ctypes.addressof(held))
    found.held, found.number = held, library.seccomp_syscall_resolve_name(b"seccomp")
    return found


def _exported(rules: int) -> bytes:
    with os.fdopen(os.memfd_create("filter"), "rb", buffering=0) as file:
        if failed := _seccomp().seccomp_export_bpf(rules, file.fileno()):
            raise SandboxUnavailable(f"libseccomp writes no filter: {os.strerror(-failed)}")
        file.seek(0)
        return file.readall()


def _add_all(rules: int) -> None:
    tree_of_comparisons = 8
    _seccomp().seccomp_attr_set(rules, tree_of_comparisons, 2)  # libseccomp before 2.5 has a list
    for name in _ALLOWED:
        _add(rules, _ALLOW, name)
    for name in _REFUSED:
        _add(rules, _REFUSE, name)
    flags = _SHARED | _ANONYMOUS | _GROWS | _LOCKED | _HUGE
    _add(rules, _ALLOW, "mmap", (3, _MASKED_EQUAL, flags, _ANONYMOUS))
    for each in (_SHARED, _GROWS, _LOCKED, _HUGE):
        _add(rules, _REFUSE, "mmap", (3, _MASKED_EQUAL, each, each))
    _add(rules, _REFUSE, "mmap", (3, _MASKED_EQUAL, _ANONYMOUS, 0))
    # Its own limits may be read, and nobody's set.
    _add(rules, _ALLOW, "prlimit64", (0, _EQUAL, 0, 0), (2, _EQUAL, 0, 0))
    _add(rules, _REFUSE, "prlimit64", (2, _UNEQUAL, 0, 0))
    _add(rules, _REFUSE, "prlimit64", (0, _UNEQUAL, 0, 0), (2, _EQUAL, 0, 0))
    _add(rules, _ALLOW, "sched_getaffinity", (0, _EQUAL, 0, 0))
    _add(rules, _REFUSE, "sched_getaffinity", (0, _UNEQUAL, 0, 0))


def _add(rules: int, action: int, name: str, *comparisons: tuple[int, int, int, int]) -> None:
    library = _seccomp()
    number = library.seccomp_syscall_resolve_name(name.encode())
    if number < 0:
        return  # this processor has no such call (open and fork on arm64), and so needs no rule
    array = (_Comparison * max(len(comparisons), 1))(*(_Comparison(*each) for each in comparisons))
    if failed := library.seccomp_rule_add_array(rules, action, number, len(comparisons), ctypes.byref(array)):
        raise SandboxUnavailable(f"libseccomp takes no rule for {name}: {os.strerror(-failed)}")


def _try_what_is_forbidden() -> None:
    """Try in this process what must fail: a filter that is there and does not hold is worse than none."""
    attempts: dict[str, Callable[[], object]] = {
        "open a file": lambda: os.open("/dev/null", os.O_RDONLY),
        "signal another process": lambda: os.kill(1, 0),
        "start a process": lambda: os.fork() or os._exit(0),
        "ask a terminal": lambda: fcntl.ioctl(0, 0x5401, b"\0" * 64),  # TCGETS
        "share memory": lambda: mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS),
        "set a limit": lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)),
    }
    for name, attempt in attempts.items():
        try:
            attempt()
        except OSError as error:
            if error.errno == errno.EPERM:
                continue
        except ValueError:  # resource.setrlimit's word for EPERM
            continue
        raise SandboxUnavailable(f"a closed process could still {name}")
