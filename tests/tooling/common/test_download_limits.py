"""A package server that drips, never ends, or asks us to come back tomorrow: a clear error in seconds, never a hang.

A real pip asks a real server on this machine; the limits are shrunk by parameter.
"""

from __future__ import annotations

import email.utils
import gzip
import json
import os
import re
import subprocess
import sys
import time
import venv
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from http_servers import Act, dripping, dripping_head, endless, index_of, listing, packed, page, patience, served
from mps_build.common.errors import SourceError
from mps_build.common.process import Command, CommandFailed, capture
from mps_build.common.reporting import SilentReporter
from mps_build.common.wheels.download import FetchedWheel, fetch_wheel
from mps_build.common.wheels.pip_call import Limits, limited_pip, run_pip
from small_wheels import write_wheel

FILE = "torch-2.15.0-cp313-cp313-macosx_14_0_arm64.whl"
SMALL = Limits(window_seconds=1.0, page_bytes=1 << 16, body_bytes=1 << 20, total_seconds=60.0)
MANY = 10_000_000


class Reports(SilentReporter):
    """Keeps the lines it is reported."""

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
    tmp_path: Path,
    address: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    limits: Limits = SMALL,
    reported: Reports | None = None,
) -> FetchedWheel:
    monkeypatch.setenv("PIP_INDEX_URL", f"{address}/simple")
    return fetch_wheel(
        "torch==2.15.0",
        python="3.13",
        cache=tmp_path / "cache",
        log=tmp_path / "log",
        reporter=reported or Reports(),
        limits=limits,
    )


@pytest.mark.parametrize(
    ("act", "said"),
    [
        pytest.param(
            dripping(declared=1000, kind="text/html"),
            "less than 1000 bytes a second",
            id="page_drips",
            marks=pytest.mark.slow,  # waits for it; below pip it is tried always
        ),
        pytest.param(index_of("torch", FILE, endless()), "sends more than 1048576 bytes", id="has_no_end"),
        pytest.param(patience("86400"), "asks for a pause of 86400 s", id="tomorrow"),
    ],
)
def test_a_server_past_a_limit_is_given_up_and_named(
    act: Act, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(act) as (address, _), pytest.raises(SourceError, match=said) as caught:
        fetch(tmp_path, address, monkeypatch)

    assert "127.0.0.1" in str(caught.value)
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "log"]


# What pip does with a refusal is queried above. A file is requested as it is, a page as pip asks for one.
BEYOND: dict[str, tuple[Act, str, str]] = {
    "headers_drip": (dripping_head, "page", "less than 1000 bytes a second"),
    "page_has_no_end": (endless(kind="text/html"), "page", "sends more than 65536 bytes"),
    "page_is_declared": (endless(declared=MANY, kind="text/html"), "page", "announces 10000000 bytes"),
    "drips": (dripping(declared=1000), "file", "less than 1000 bytes a second"),
    "is_declared": (endless(declared=MANY), "file", "announces 10000000 bytes"),
    "tomorrow_429": (patience("86400", status=429), "page", "answers 429 and asks for a pause of 86400 s"),
    "never": (patience("9" * 400), "page", "the longest pause taken is 60 s"),
    "gzip": (packed(b" " * MANY, encoding="gzip"), "page", "sends a page of more than 65536 bytes, the limit, in 9"),
    "deflate": (packed(b" " * MANY, encoding="deflate"), "page", "sends a page of more than 65536 bytes"),
    "raw_deflate": (packed(b" " * MANY, encoding="raw"), "page", "sends a page of more than 65536 bytes"),
    "gzip_in_parts": (packed(b"", encoding="gzip", data=gzip.compress(b" " * 50_000) * 3), "page", "more than 65536"),
    "no_gzip": (packed(b"", encoding="gzip", data=b"plain"), "page", "is not the gzip it says it is"),
    "cut_gzip": (packed(b"", encoding="gzip", data=gzip.compress(b"x")[:-9]), "page", "is not the gzip it says"),
    "not_requested": (packed(b"x", encoding="br"), "page", "in an encoding that was not requested: br"),
    "metadata_has_no_end": (endless(), "metadata", "sends more than 65536 bytes"),
    "a_date": (
        patience(email.utils.formatdate(time.time() + 7200, usegmt=True)),
        "page",
        r"asks for a pause of [67]\d{3} s \(Retry-After: \w{3}, ",
    ),
}
# The answers that are within the limits show that what is refused is not refused for another reason.
WITHIN: dict[str, tuple[Act, str]] = {
    "small": (lambda handler: page(handler, b"x" * 60_000), "page"),
    "a file as large as no page": (lambda handler: page(handler, b"x" * 500_000), "file"),
    "soon": (patience("soon", times=1), "page"),
    **{f"packed by {each}": (packed(b"x" * 60_000, encoding=each), "page") for each in ("gzip", "deflate", "raw")},
    "packed in parts": (packed(b"", encoding="gzip", data=gzip.compress(b"x" * 30_000) * 2), "page"),
    "a packed file": (packed(b"x" * 60_000, encoding="gzip"), "file"),
}
ASK = """
import http.client, json, sys
import limited_pip

limited_pip.limit(*map(float, sys.argv[1].split(",")))
said = {}
for name, (host, kind) in json.load(sys.stdin).items():
    queried = http.client.HTTPConnection(host)
    try:
        coding = "gzip, deflate, br" if kind == "page" else "identity"
        queried.request("GET", "/a.whl.metadata" if kind == "metadata" else "/", headers={"Accept-Encoding": coding})
        said[name] = f"{len(queried.getresponse().read())} bytes"
    except limited_pip.Refused as refused:
        said[name] = str(refused)
json.dump(said, sys.stdout)
"""


def test_every_answer_past_a_limit_is_refused_below_pip_and_no_other(tmp_path: Path) -> None:
    """The standard library in one process of its own, limited as the pip that `limited_pip` starts."""
    limits = limited_pip(sys.executable, limits=SMALL)[2]
    acts = {name: (act, kind) for name, (act, kind, _) in BEYOND.items()} | WITHIN
    environ = {**os.environ, "PYTHONPATH": str(Path(limited_pip(sys.executable)[1]).parent)}

    with ExitStack() as servers:
        addresses = {
            name: (servers.enter_context(served(act))[0].removeprefix("http://"), kind)
            for name, (act, kind) in acts.items()
        }
        ran = subprocess.run(
            [sys.executable, "-c", ASK, limits],
            input=json.dumps(addresses),
            env=environ,
            capture_output=True,
            text=True,
            check=True,
        )

    said = json.loads(ran.stdout)
    refused = {name: said.pop(name) for name in BEYOND}
    assert said.pop("a packed file") == f"{len(gzip.compress(b'x' * 60_000))} bytes"  # as it is
    assert said == {"a file as large as no page": "500000 bytes", "soon": "0 bytes"} | dict.fromkeys(
        ("small", "packed by gzip", "packed by deflate", "packed by raw", "packed in parts"), "60000 bytes"
    )
    assert not [each for name, each in refused.items() if not re.search(BEYOND[name][2], each)]
    assert all(each.startswith("127.0.0.1 ") for each in refused.values())


@pytest.mark.slow  # takes it
def test_a_short_pause_is_taken_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = write_wheel(tmp_path, {"torch/__init__.py": b""}, name=FILE).read_bytes()
    index = index_of("torch", FILE, lambda handler: page(handler, wheel, kind="application/octet-stream"))
    reported = Reports()

    with served(patience("1", times=1, then=index)) as (address, _):
        fetched = fetch(tmp_path, address, monkeypatch, reported=reported)

    assert fetched.path.read_bytes() == wheel
    assert [line.partition(" (Retry-After")[0] for line in reported.lines[:-1]] == [
        "127.0.0.1 answers 503 and asks for a pause of 1 s"
    ]


def test_a_compressed_page_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = write_wheel(tmp_path, {"torch/__init__.py": b""}, name=FILE).read_bytes()
    listed = packed(listing("torch", FILE), encoding="gzip")
    index = index_of("torch", FILE, lambda handler: page(handler, wheel), listed=listed)

    with served(index) as (address, _):
        assert fetch(tmp_path, address, monkeypatch).path.read_bytes() == wheel


def test_a_page_that_grows_a_thousandfold_is_given_up_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    act = packed(b" " * MANY, encoding="gzip")
    with served(act) as (address, _), pytest.raises(SourceError, match="sends a page of more than 65536 bytes"):
        fetch(tmp_path, address, monkeypatch)


def test_a_pause_that_is_no_time_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = write_wheel(tmp_path, {"torch/__init__.py": b""}, name=FILE).read_bytes()
    index = index_of("torch", FILE, lambda handler: page(handler, wheel, kind="application/octet-stream"))

    with served(patience("soon", times=1, then=index)) as (address, _):
        assert fetch(tmp_path, address, monkeypatch).path.read_bytes() == wheel


@pytest.mark.slow  # waits for it
def test_the_whole_call_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    act = index_of("torch", FILE, dripping(declared=1000))
    limits = replace(SMALL, window_seconds=600.0, total_seconds=2.0)

    with served(act) as (address, _), pytest.raises(SourceError, match="was not done after 2 seconds"):
        fetch(tmp_path, address, monkeypatch, limits=limits)

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
