"""System calls that a closed process tries by code of its own; as a program, many of them from a small process.

The program reads a list of [number, argument...] from standard input and writes how each child ended. A child of the
process that runs the tests costs thirty milliseconds, because of its size; one of this program's costs five.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import platform
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from mps_build.kernels.execution import sandbox

SCRIPTS = Path(__file__).resolve().parents[3] / "scripts"
DONE, REFUSED, FAILED = 0, 7, 9
# A function of the machine that makes one system call: number, then three arguments.
_CALL = {
    "x86_64": bytes.fromhex("4889f8 4889f7 4889d6 4889ca 4d89c2 0f05 c3"),
    "aarch64": struct.pack("<7I", 0xAA0003E8, 0xAA0103E0, 0xAA0203E1, 0xAA0303E2, 0xAA0403E3, 0xD4000001, 0xD65F03C0),
}.get(platform.machine(), b"")  # queried before the process is closed, which could not ask


def _held() -> int:
    """Return the bytes of writable memory that this process has mapped: what other tests left counts as a child's."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmData"))


def closed(attempt: Callable[[], object], *, memory: int = sandbox.MEMORY_BYTES, keep: Sequence[int] = ()) -> int:
    """Return how a closed process ended that tried something: DONE, REFUSED (EPERM), FAILED, or minus its signal."""
    memory += _held()
    pid = os.fork()
    if pid == 0:
        code = FAILED
        try:
            sandbox.enter(memory, keep=keep)
            attempt()
            code = DONE
        except PermissionError:
            code = REFUSED
        except MemoryError:
            code = REFUSED
        except BaseException:
            code = FAILED
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _machine_code(number: int, *arguments: int) -> int:
    """Make a system call by code of our own, as a kernel could that no check has seen; return what the system says."""
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=7)
    page.write(_CALL)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    function = ctypes.CFUNCTYPE(ctypes.c_long, *[ctypes.c_long] * 5)(address)
    return int(function(number, *(*arguments, 0, 0, 0, 0)[:4]))


def by_code(number: int, *arguments: int) -> Callable[[], None]:
    """Return an attempt at one system call."""

    def attempt() -> None:
        if (answer := _machine_code(number, *arguments)) < 0:
            raise OSError(-answer, os.strerror(-answer))

    return attempt


def closed_all(calls: Iterable[tuple[int, ...]]) -> list[int]:
    """Return how a closed process ended for each call, tried from the program."""
    said = json.dumps(list(calls))
    environ = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    argv = [sys.executable, __file__]
    done = subprocess.run(argv, input=said, env=environ, capture_output=True, text=True, check=True)
    found: list[int] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    print(json.dumps([closed(by_code(*each)) for each in json.load(sys.stdin)]))
