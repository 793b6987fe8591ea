"""The bundle for an issue: all that helps, nothing that names anybody, no way out of the work folder."""

from __future__ import annotations

import json
import os
import tarfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from mps_build import cli
from mps_build.common.scrubbing.identifiers import Identity
from mps_build.common.scrubbing.scrubber import Scrubber
from mps_build.host.support import Bundle, collect, write_bundle

IDENTITY = Identity(
    words={
        "/Users/jdoe": ("home folder", "/Users/user"),
        "Janes-Mac": ("host name", "mac.local"),
        "jdoe": ("user name", "user"),
    }
)
RECORDING = {"schema": 1, "probes": [{"argv": ["uname"], "stdout": "Darwin", "stderr": "", "exit": 0}]}


def record_host(identity: Identity) -> tuple[dict[str, Any], Counter[str]]:
    return dict(RECORDING), Counter({"serial number": 1})


def make(work: Path, *, log_bytes: int = 10_000, total_bytes: int = 1_000_000, names: tuple[str, ...] = ()) -> Bundle:
    return collect(
        work,
        work.parent / "cache",
        names=names,
        log_bytes=log_bytes,
        total_bytes=total_bytes,
        identity=IDENTITY,
        record_host=record_host,
    )


def write_work(root: Path) -> Path:
    work = root / "work"
    texts = {
        "v2.6.0/receipts/configure.json": '{"who": "jdoe", "path": "/Users/jdoe/x", "token": "hunter2"}',
        "v2.6.0/logs/compile_wheel.log": "on Janes-Mac\nclang /Users/jdoe/torch/a.mm: error: no\n",
        "v2.6.0/source/secret.txt": "never",
        "v2.6.0/overrides.cmake": "set(MPS_BUILD_EXPECT_USE_MPS ON)\n",
        "v2.6.0/build/release/mps-build-facts.json": '{"USE_MPS": "ON"}',
        "v2.6.0/source/build/CMakeCache.txt": "USE_MPS:BOOL=ON\n",
        "v2.6.0/build/other.txt": "never",
        "verify/1-mps/record.json": '{"schema": "mps-build/record/1"}',
        "mine/notes.txt": "never",
    }
    for name, text in texts.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    return work


def texts_of(bundle: Bundle) -> dict[str, str]:
    return {entry.name: entry.data.decode() for entry in bundle.entries}


def test_recording_receipts_logs_records_and_versions_are_in_it(tmp_path: Path) -> None:
    texts = texts_of(make(write_work(tmp_path)))

    assert set(texts) == {
        "versions.json",
        "recording.json",
        "work/v2.6.0/receipts/configure.json",
        "work/v2.6.0/logs/compile_wheel.log",
        "work/v2.6.0/overrides.cmake",
        "work/v2.6.0/build/release/mps-build-facts.json",
        "work/v2.6.0/source/build/CMakeCache.txt",
        "work/verify/1-mps/record.json",
    }
    assert json.loads(texts["recording.json"])["probes"]
    assert "mps_build" in json.loads(texts["versions.json"])


def test_the_recording_of_this_host_holds_every_probe_also_of_programs_that_are_missing(tmp_path: Path) -> None:
    bundle = collect(tmp_path / "work", tmp_path / "cache", log_bytes=1000, total_bytes=1_000_000)

    probes = json.loads(texts_of(bundle)["recording.json"])["probes"]
    assert {tuple(probe["argv"]) for probe in probes} >= {("uname", "-a"), ("ccache", "--version")}


def test_nobody_is_named_and_what_was_taken_out_is_counted(tmp_path: Path) -> None:
    bundle = make(write_work(tmp_path))

    whole = "\n".join(texts_of(bundle).values())
    assert not [word for word in ("jdoe", "Janes-Mac", "hunter2", str(tmp_path)) if word in whole]
    assert "clang /Users/user/torch/a.mm: error: no" in whole
    assert {"home folder", "user name", "host name", "password", "serial number"} <= bundle.removed.keys()
    assert json.loads(texts_of(bundle)["work/v2.6.0/receipts/configure.json"])["path"] == "/Users/user/x"


@pytest.mark.parametrize(
    "line",
    [
        "PIP_INDEX_URL=https://jane:pa55word@index.example.org/simple",
        "Authorization: Bearer abcdefghijklmnop",
        "export MY_API_KEY=abcdefghijklmnop",
        "remote: ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "DB_PASSWORD: abcdefghijklmnop",
        "https://pa55word@github.com/x/y.git",
    ],
)
def test_what_looks_like_a_password_goes_and_a_second_pass_finds_nothing(line: str) -> None:
    scrubber = Scrubber(IDENTITY)

    clean = scrubber.text(line)

    assert not [word for word in ("pa55word", "abcdefghijklmnop") if word in clean]
    assert sum(scrubber.removed.values()) >= 1
    assert scrubber.text(clean) == clean


@pytest.mark.parametrize(
    "line",
    ["clang++ -O2 -DUSE_MPS=1 a.cpp", "error: expected unqualified-id near token ';'", "tokenizers==0.20.3"],
)
def test_what_names_nobody_stays_as_it_is(line: str) -> None:
    assert Scrubber(IDENTITY).text(line) == line


def test_links_are_reported_and_not_followed(tmp_path: Path) -> None:
    work = write_work(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.log").write_text("injected outside")
    (work / "v2.6.0" / "logs" / "link.log").symlink_to(outside / "secret.log")
    (work / "v2.6.0" / "more").symlink_to(outside)
    (work / "bisect").symlink_to(outside)
    os.mkfifo(work / "v2.6.0" / "logs" / "pipe.log")

    bundle = make(work)

    assert not [name for name in texts_of(bundle) if "link" in name or "more" in name or "pipe" in name]
    assert "injected outside" not in "".join(texts_of(bundle).values())
    assert {"work/v2.6.0/logs/link.log", "work/v2.6.0/more", "work/bisect"} <= bundle.left_out.keys()


def test_of_a_long_log_the_end_is_kept_from_a_whole_line_on(tmp_path: Path) -> None:
    work = write_work(tmp_path)
    log = work / "v2.6.0" / "logs" / "long.log"
    log.write_text("".join(f"line {number}\n" for number in range(10_000)))

    entry = next(each for each in make(work, log_bytes=1000).entries if each.name.endswith("long.log"))

    assert len(entry.data) <= 1000
    assert entry.data.startswith(b"line ")
    assert entry.data.endswith(b"line 9999\n")
    assert entry.note == f"the last {len(entry.data)} of 98890 bytes"


def test_a_full_bundle_keeps_the_newest_and_tells_the_rest(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "a" / "receipts").mkdir(parents=True)
    for number in range(10):
        path = work / "a" / f"{number}.log"
        path.write_text("x" * 999 + "\n")
        os.utime(path, (number, number))

    bundle = make(work, total_bytes=3000)

    assert [name for name in texts_of(bundle) if name.endswith(".log")] == [f"work/a/{each}.log" for each in (9, 8, 7)]
    assert len(bundle.left_out) == 7


def test_the_file_is_for_its_owner_whole_and_the_same_for_the_same_contents(tmp_path: Path) -> None:
    bundle = make(write_work(tmp_path))

    write_bundle(bundle, tmp_path / "one.tar.gz")
    write_bundle(bundle, tmp_path / "two.tar.gz")

    assert (tmp_path / "one.tar.gz").read_bytes() == (tmp_path / "two.tar.gz").read_bytes()
    assert (tmp_path / "one.tar.gz").stat().st_mode & 0o777 == 0o600
    with tarfile.open(tmp_path / "one.tar.gz") as archive:
        members = archive.getmembers()
        contents = archive.extractfile("mps-build-support/CONTENTS.txt")
        assert contents is not None
        assert "Taken out of the texts:" in contents.read().decode()
    assert all(member.isfile() and (member.uid, member.uname) == (0, "") for member in members)


def test_the_command_writes_it_and_prints_what_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(write_work(tmp_path)))
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("mps_build.host.support._record_host", record_host)
    monkeypatch.chdir(tmp_path)

    assert cli.main("support", ["v2.6.0", "--output", "s.tar.gz", "--json", "a.json"]) == 0

    output = capsys.readouterr().out
    assert "work/v2.6.0/logs/compile_wheel.log" in output
    assert "taken out" in output
    document = json.loads((tmp_path / "a.json").read_text())
    assert "work/verify/1-mps/record.json" not in [entry["name"] for entry in document["entries"]]
    assert document["removed"]["serial number"] == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--output", "there.tar.gz"], "already exists"),
        (["--output", "no/folder.tar.gz"], "no folder"),
        (["--output", "a.zip"], "is a .tar.gz"),
        (["--log-size", "0"], "numbers from 1"),
        (["v9.9.9"], "has no v9.9.9"),
    ],
)
def test_what_cannot_be_is_exit_2_and_leaves_what_was_there(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(write_work(tmp_path)))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "there.tar.gz").write_text("mine")

    assert cli.main("support", [*arguments, "--json", "a.json"]) == 2

    assert words in json.loads((tmp_path / "a.json").read_text())["error"]
    assert (tmp_path / "there.tar.gz").read_text() == "mine"
