"""A package server that drips, never ends, or asks us to come back tomorrow: a clear error in seconds, never a hang.

A real pip asks a real server on this machine; the limits are shrunk by parameter.
"""

from __future__ import annotations

import email.utils
import sys
import time
import venv
from dataclasses import replace
from pathlib import Path

import pytest
from mps_build.common.errors import SourceError
from mps_build.common.process import Command, CommandFailed, capture
from mps_build.common.reporter import SilentReporter
from mps_build.common.wheels.download import FetchedWheel, fetch_wheel
from mps_build.common.wheels.pip_call import Limits, limited_pip, run_pip
from small_wheels import write_wheel
from strange_server import Act, dripping, dripping_head, endless, index_of, page, patience, served

FILE = "torch-2.15.0-cp313-cp313-macosx_14_0_arm64.whl"
SMALL = Limits(window_seconds=1.0, page_bytes=1 << 16, body_bytes=1 << 20, total_seconds=60.0)
MANY = 10_000_000


class Told(SilentReporter):
    """Keeps the lines it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture(autouse=True)
def _pip_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


def fetch(
    tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch, *, limits: Limits = SMALL, told: Told | None = None
) -> FetchedWheel:
    monkeypatch.setenv("PIP_INDEX_URL", f"{address}/simple")
    return fetch_wheel(
        "torch==2.15.0",
        python="3.13",
        cache=tmp_path / "cache",
        log=tmp_path / "log",
        reporter=told or Told(),
        limits=limits,
    )


@pytest.mark.parametrize(
    ("act", "said"),
    [
        pytest.param(dripping(declared=1000, kind="text/html"), "less than 1000 bytes a second", id="page_drips"),
        pytest.param(dripping_head, "less than 1000 bytes a second", id="headers_drip"),
        pytest.param(endless(kind="text/html"), "sends more than 65536 bytes", id="page_has_no_end"),
        pytest.param(endless(declared=MANY, kind="text/html"), "announces 10000000 bytes", id="page_is_declared"),
        pytest.param(index_of("torch", FILE, dripping(declared=1000)), "less than 1000 bytes a second", id="drips"),
        pytest.param(index_of("torch", FILE, endless()), "sends more than 1048576 bytes", id="has_no_end"),
        pytest.param(index_of("torch", FILE, endless(declared=MANY)), "announces 10000000 bytes", id="is_declared"),
        pytest.param(patience("86400"), "asks for a pause of 86400 s", id="tomorrow"),
        pytest.param(patience("86400", status=429), "answers 429 and asks for a pause of 86400 s", id="tomorrow_429"),
        pytest.param(patience("9" * 400), "the longest pause taken is 60 s", id="never"),
        pytest.param(
            patience(email.utils.formatdate(time.time() + 7200, usegmt=True)),
            r"asks for a pause of [67]\d{3} s \(Retry-After: \w{3}, ",
            id="a_date",
        ),
    ],
)
def test_a_server_past_a_limit_is_given_up_and_named(
    act: Act, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = time.monotonic()

    with served(act) as (address, _), pytest.raises(SourceError, match=said) as caught:
        fetch(tmp_path, address, monkeypatch)

    assert "127.0.0.1" in str(caught.value)
    assert time.monotonic() - began < 20
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "log"]


def test_a_short_pause_is_taken_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = write_wheel(tmp_path, {"torch/__init__.py": b""}, name=FILE).read_bytes()
    index = index_of("torch", FILE, lambda handler: page(handler, wheel, kind="application/octet-stream"))
    told = Told()

    with served(patience("1", times=1, then=index)) as (address, _):
        fetched = fetch(tmp_path, address, monkeypatch, told=told)

    assert fetched.path.read_bytes() == wheel
    assert [line.partition(" (Retry-After")[0] for line in told.lines] == [
        "127.0.0.1 answers 503 and asks for a pause of 1 s"
    ]


def test_a_pause_that_is_no_time_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = write_wheel(tmp_path, {"torch/__init__.py": b""}, name=FILE).read_bytes()
    index = index_of("torch", FILE, lambda handler: page(handler, wheel, kind="application/octet-stream"))

    with served(patience("soon", times=1, then=index)) as (address, _):
        assert fetch(tmp_path, address, monkeypatch).path.read_bytes() == wheel


def test_the_whole_call_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    act = index_of("torch", FILE, dripping(declared=1000))
    limits = replace(SMALL, window_seconds=600.0, total_seconds=5.0)
    began = time.monotonic()

    with served(act) as (address, _), pytest.raises(SourceError, match="was not done after 5 seconds"):
        fetch(tmp_path, address, monkeypatch, limits=limits)

    assert time.monotonic() - began < 20
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "log"]


def test_the_pip_of_another_python_is_held_to_the_limits_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip --python` starts pip anew."""
    venv.create(tmp_path / "other", with_pip=False)
    program = limited_pip(sys.executable, limits=SMALL)
    options = ("--python", str(tmp_path / "other" / "bin" / "python"), "download", "--no-deps", "torch")

    with served(patience("86400")) as (address, _):
        argv = (*program, *options, "-d", str(tmp_path), "--index-url", address)
        with pytest.raises(CommandFailed) as caught:
            run_pip(Command(argv=argv), log=tmp_path / "log", tell=print, limits=SMALL)

    assert "asks for a pause of 86400 s" in caught.value.tail[-1]


def test_a_copy_beside_a_venv_is_held_to_the_limits_too(tmp_path: Path) -> None:
    program = limited_pip(sys.executable, limits=SMALL, beside=tmp_path)

    with served(patience("86400")) as (address, _):
        answer = capture(Command(argv=(*program, "index", "versions", "torch", "--index-url", address)))

    assert program[1] == str(tmp_path / "limited_pip.py")
    assert "asks for a pause of 86400 s" in answer.stderr
