"""Two build hosts on this machine, with the real sccache and a real Redis: they share, and outlive the store."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from mps_build.common.process import Captured, Command, Running, capture, watched
from mps_build.wheel_build.compiler_cache.launcher import CacheCounts, cache_counts, cache_gain, cache_troubles
from mps_build.wheel_build.compiler_cache.store import choose_store, relayed, store_problem
from shared import two_hosts

_PARTS = 3
_HOST = Path(__file__).parents[1] / "fakes" / "fleet_hosts.py"
_SCRIPTS = Path(__file__).parents[3] / "scripts"
_SCCACHE, _COMPILER = shutil.which("sccache"), shutil.which("cc")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_SCCACHE is None or _COMPILER is None, reason="sccache and a compiler are needed"),
]


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Redis:
    """A real Redis: where it is, its process, and its own commands."""

    port: int
    process: Running

    @property
    def address(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def ask(self, *words: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            said = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
            connection.sendall(b"*%d\r\n%s" % (len(words), said))
            time.sleep(0.05)
            return connection.recv(1 << 20)

    def keys(self) -> list[bytes]:
        """Return the keys of what was compiled; sccache asks for one more by itself."""
        return [word for word in self.ask(b"KEYS", b"*").split(b"\r\n") if word.count(b"/") == 3]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Redis]:
    """A Redis that answers."""
    program = two_hosts.redis_server()
    if program is None:
        pytest.skip("redis-server is needed")
    port = _free_port()
    argv = (program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path))
    with watched(Command(argv=argv), log=tmp_path / "redis.log") as process:
        for _ in range(100):
            if store_problem("127.0.0.1", port) is None:
                break
            time.sleep(0.1)
        yield Redis(port=port, process=process)


class Host:
    """One build host: its own disk cache and its own server of sccache; the sources lie at the same path."""

    def __init__(self, folder: Path, name: str, variables: Mapping[str, str]) -> None:
        self.source = folder / "src"
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "SCCACHE_DIR": str(folder / name),
            **variables,
        }

    def compile(self, number: int, *, timeout_seconds: float = 90) -> Captured:
        path = self.source / f"part{number}.c"
        argv = (_SCCACHE or "", _COMPILER or "", "-O1", "-c", str(path), "-o", str(path.with_suffix(".o")))
        return capture(Command(argv=argv, environ=self.environ), timeout_seconds=timeout_seconds)

    def build(self) -> list[Captured]:
        return [self.compile(number) for number in range(_PARTS)]

    def objects(self) -> list[bytes]:
        return [(self.source / f"part{number}.o").read_bytes() for number in range(_PARTS)]

    def counts(self) -> CacheCounts | None:
        return cache_counts(Path(_SCCACHE or ""), self.environ)

    def stop(self) -> None:
        capture(Command(argv=(_SCCACHE or "", "--stop-server"), environ=self.environ))


@contextmanager
def building(folder: Path, name: str, address: str) -> Iterator[tuple[Host, list[str]]]:
    """Stand where a build of ours stands: the store tried, the relay before it; yield the host, and what it reports."""
    choice = choose_store({"MPS_BUILD_SHARED_CACHE": address}, shared=True)
    reported = list(choice.warnings)
    with relayed(choice.variables, choice.upstream, Path(_SCCACHE or ""), report=reported.append) as variables:
        host = Host(folder, name, variables)
        try:
            yield host, reported
        finally:
            host.stop()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    for number in range(_PARTS):
        (tmp_path / "src" / f"part{number}.c").write_text(
            f"int f{number}(void) {{ return {number}; }}\n", encoding="utf-8"
        )
    return tmp_path


def test_a_second_host_takes_what_the_first_compiled(folder: Path, store: Redis) -> None:
    with building(folder, "a", store.address) as (first, reported):
        assert all(made.ok for made in first.build())
        assert first.counts() == CacheCounts(hits=0, misses=_PARTS)
        compiled = first.objects()
    with building(folder, "b", store.address) as (second, _):
        assert all(made.ok for made in second.build())
        assert second.counts() == CacheCounts(hits=_PARTS, misses=0)
        assert second.objects() == compiled
    assert reported == []


@pytest.mark.skipif(two_hosts.why_not() is not None, reason=str(two_hosts.why_not()))
def test_two_hosts_in_network_namespaces_share_over_the_wire(folder: Path) -> None:
    """Each host has a loopback, a home and an sccache server of its own: what it finds came over the wire."""
    with two_hosts.two_hosts(folder / "redis") as (hosts, address):
        answers = []
        for host in hosts:
            (folder / host).mkdir()
            own = (
                "env",
                f"PYTHONPATH={_SCRIPTS}",
                sys.executable,
                str(_HOST),
                str(folder / "src"),
                str(folder / host),
                address,
            )
            answers.append(capture(Command(argv=two_hosts.inside(host, own)), timeout_seconds=120))
    first, second = (json.loads(answer.stdout) for answer in answers)

    assert first == {"failed": [], "reported": [], "hits": 0, "misses": _PARTS, "errors": 0, "write_errors": 0}
    assert second == {"failed": [], "reported": [], "hits": _PARTS, "misses": 0, "errors": 0, "write_errors": 0}


def test_a_dead_store_stops_sccache_but_not_a_build_of_ours(folder: Path, store: Redis) -> None:
    trusting = choose_store({"MPS_BUILD_SHARED_CACHE": store.address}, shared=True)
    store.process.kill()
    naive = Host(folder, "a", trusting.variables)
    try:
        # The hazard itself; the day it passes, choose_store may go.
        assert not naive.compile(0).ok
    finally:
        naive.stop()

    with building(folder, "b", store.address) as (ours, reported):
        assert all(made.ok for made in ours.build())
    assert "local disk only" in reported[0]


@pytest.mark.parametrize("how", ["dies", "hangs"])
def test_a_store_that_is_lost_under_way_holds_up_sccache_but_not_a_build_of_ours(
    folder: Path, store: Redis, how: str
) -> None:
    trusting = choose_store({"MPS_BUILD_SHARED_CACHE": store.address}, shared=True)
    naive = Host(folder, "a", trusting.variables)
    with building(folder, "b", store.address) as (ours, reported):
        try:
            assert naive.compile(0).ok
            assert ours.compile(0).ok
            if how == "dies":
                store.process.kill()
            else:
                os.kill(store.process.pid, signal.SIGSTOP)
            # The hazard itself: a minute for each file. The day it passes, the relay may go.
            assert naive.compile(1, timeout_seconds=20).timed_out
            assert all(made.ok for made in ours.build())
        finally:
            naive.stop()
    assert any("compiled here" in each for each in reported)
    assert "the build went on without" in reported[-1]


def test_a_slow_store_still_serves(folder: Path, store: Redis) -> None:
    with building(folder, "a", store.address) as (first, _):
        assert all(made.ok for made in first.build())
    with building(folder, "b", store.address) as (second, reported):
        for number in range(_PARTS):
            store.ask(b"CLIENT", b"PAUSE", b"700", b"ALL")
            assert second.compile(number).ok
        assert second.counts() == CacheCounts(hits=_PARTS, misses=0)
    assert reported == []


def test_a_full_store_takes_nothing_and_the_build_goes_on(folder: Path, store: Redis) -> None:
    with building(folder, "a", store.address) as (host, reported):
        before = host.counts()
        assert host.compile(0).ok
        store.ask(b"CONFIG", b"SET", b"maxmemory-policy", b"noeviction")
        store.ask(b"CONFIG", b"SET", b"maxmemory", b"1")
        assert all(made.ok for made in host.build())
        time.sleep(1)  # sccache writes to the store after it has answered
        gain = cache_gain(before, host.counts())
    assert gain is not None
    assert (gain["hits"], gain["misses"], gain["write_errors"]) == (1, _PARTS, _PARTS - 1)
    assert "did not store" in cache_troubles(gain)[0]
    assert "OOM" in reported[0]


def test_a_store_full_from_the_start_does_not_keep_the_build_from_starting(folder: Path, store: Redis) -> None:
    store.ask(b"CONFIG", b"SET", b"maxmemory-policy", b"noeviction")
    store.ask(b"CONFIG", b"SET", b"maxmemory", b"1")

    with building(folder, "a", store.address) as (host, reported):
        assert all(made.ok for made in host.build())
    assert "OOM" in reported[0]


@pytest.mark.parametrize("junk", ["noise", "nothing", "half", "one bit"])
def test_garbage_in_the_store_is_compiled_anew_and_reported(folder: Path, store: Redis, junk: str) -> None:
    with building(folder, "a", store.address) as (first, _):
        assert all(made.ok for made in first.build())
        compiled = first.objects()
        time.sleep(1)
    keys = store.keys()
    assert len(keys) == _PARTS
    for key in keys:
        answer = store.ask(b"GET", key)
        value = answer.split(b"\r\n", 1)[1][:-2]
        flipped = bytearray(value)
        flipped[120] ^= 1
        bad = {"noise": os.urandom(500), "nothing": b"", "half": value[: len(value) // 2], "one bit": bytes(flipped)}
        store.ask(b"SET", key, bad[junk])
    with building(folder, "b", store.address) as (second, _):
        before = second.counts()
        assert all(made.ok for made in second.build())
        gain = cache_gain(before, second.counts())
        assert second.objects() == compiled, "never an object that the compiler did not make"
    assert gain is not None
    assert gain["hits"] == 0
    assert "could not be read" in cache_troubles(gain)[0]


def test_a_wrong_password_stops_sccache_but_not_a_build_of_ours(folder: Path, store: Redis) -> None:
    store.ask(b"CONFIG", b"SET", b"requirepass", b"right")
    address = store.address.replace("redis://", "redis://:wrong@")
    naive = Host(folder, "a", choose_store({"MPS_BUILD_SHARED_CACHE": address}, shared=True).variables)
    try:
        assert not naive.compile(0).ok
    finally:
        naive.stop()

    with building(folder, "b", address) as (ours, reported):
        assert all(made.ok for made in ours.build())
    assert "WRONGPASS" in reported[0]


def test_the_right_password_goes_through_the_relay(folder: Path, store: Redis) -> None:
    store.ask(b"CONFIG", b"SET", b"requirepass", b"right")
    address = store.address.replace("redis://", "redis://:right@")

    for name in ("a", "b"):
        with building(folder, name, address) as (host, reported):
            assert all(made.ok for made in host.build())
            counts = host.counts()
            assert reported == []
    assert counts == CacheCounts(hits=_PARTS, misses=0)
