"""A process that starts others: it has imported what takes long, and forks a child for each that connects.

The child talks, and is closed by `begin` before it hears of anything foreign; this process itself never does.
Standard library alone: the process that has torch loads this file by its path.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

CONTROL, _FAILED = ".control", ".failed"
_USER, _PID, _NETWORK, _IPC, _NAMES = 0x10000000, 0x20000000, 0x40000000, 0x08000000, 0x04000000
_DEATH = 1
_GRACE_SECONDS = 2.0


def isolate() -> None:
    """Go on in user, PID, network, IPC and host-name namespaces of one's own, where the kernel offers them.

    The process that was started stays outside and waits; both end with the process that started it.
    """
    _end_with_parent(os.getppid())
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_USER | _PID | _NETWORK | _IPC | _NAMES) != 0:
        return
    pid = os.fork()
    if pid == 0:
        _end_with_parent(None)
        return
    with suppress(ChildProcessError):
        _, status = os.waitpid(pid, 0)
        os._exit(1 if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
    os._exit(1)


def _end_with_parent(parent: int | None) -> None:
    ctypes.CDLL(None).prctl(_DEATH, signal.SIGKILL, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os._exit(1)  # it ended before it could be signalled


def connect(path: str, seconds: float) -> socket.socket:
    """Return a connection to a server that may still be importing.

    Raises:
        ServerFailed: it has said why it cannot begin, or nothing for so many seconds.
    """
    until = time.monotonic() + seconds
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path)
        except (FileNotFoundError, ConnectionRefusedError):
            connection.close()
            if (failed := Path(path + _FAILED)).exists():
                raise ServerFailed(failed.read_text(encoding="utf-8")) from None
            if time.monotonic() > until:
                raise ServerFailed(f"it did not begin within {seconds:.0f} s") from None
            time.sleep(0.02)
        else:
            return connection


class ServerFailed(Exception):
    """The server of closed processes could not begin, with what it said."""


def run(path: str, main: Callable[[], None]) -> None:
    """Run a server's main function; what ends it is left where `connect` looks."""
    try:
        main()
    except BaseException as error:
        beside = Path(path + _FAILED + ".new")
        beside.write_text(f"{type(error).__name__}: {error}", encoding="utf-8", errors="replace")
        beside.rename(path + _FAILED)
        raise


def serve(path: str, begin: Callable[[socket.socket], None]) -> None:
    """Fork a child for each connection to `path`; on `path`.control say how one ended, or end it. Never returns."""
    listeners = [_listening(path + CONTROL), _listening(path)]
    waiting = select.poll()
    for each in listeners:
        waiting.register(each, select.POLLIN)
    control, entrance = listeners
    statuses: dict[int, int] = {}
    while True:
        ready = [number for number, _ in waiting.poll(1000)]
        _reap(statuses)
        if control.fileno() in ready:
            _answer(control.accept()[0], statuses)
        if entrance.fileno() in ready:
            connection, _ = entrance.accept()
            pid = os.fork()
            if pid == 0:
                _child(listeners, connection, begin)
            connection.close()


def _listening(path: str) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    beside = path + ".new"
    server.bind(beside)
    server.listen(64)
    Path(beside).rename(path)  # who finds the name can connect
    return server


def _child(listeners: list[socket.socket], connection: socket.socket, begin: Callable[[socket.socket], None]) -> None:
    status = 1
    try:
        _end_with_parent(None)
        for each in listeners:
            each.close()
        begin(connection)
        status = 0
    finally:
        os._exit(status)


def _reap(statuses: dict[int, int]) -> None:
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            statuses[pid] = status


def _answer(connection: socket.socket, statuses: dict[int, int]) -> None:
    """Say with which status a child ended; one that goes on is ended, after a moment if no one requested that."""
    with connection, suppress(OSError, ValueError, TypeError, KeyError):
        connection.settimeout(5)
        request = json.loads(connection.recv(200))
        pid = int(request["pid"])
        if pid not in statuses:
            statuses[pid] = _ended(pid, 0.0 if request["end"] else _GRACE_SECONDS)
        connection.sendall(json.dumps({"status": statuses.pop(pid)}).encode())


def _ended(pid: int, grace: float) -> int:
    until = time.monotonic() + grace
    while time.monotonic() < until:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def status_of(path: str, pid: int, *, end: bool) -> int:
    """Return the wait status of a child of the server at `path`; `end`: it is killed first.

    Raises:
        OSError: the server has gone.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(path + CONTROL)
        connection.sendall(json.dumps({"pid": pid, "end": end}).encode())
        answer = connection.recv(200)
    if not answer:
        raise ConnectionError(f"the server of closed processes knows no process {pid}")
    return int(json.loads(answer)["status"])
