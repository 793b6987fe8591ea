"""A full disk and a disk that fails are reported as such, each with its status; neither is a bug of ours or the file's.

`/proc/self/mem` fails to read as a broken disk does, and `/dev/full` to write as a full one: real errors.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import stat
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from http_servers import dripping, served
from mps_build import cli
from mps_build.commands.dev import matrix
from mps_build.common import process
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import DiskFull, HostError, MpsBuildError, SourceError, UsageError
from mps_build.common.files import copy_whole, machine_fault, write_whole
from mps_build.common.git import answer, git, mirror_of, run_git
from mps_build.common.json_text import read_json
from mps_build.common.process import Command, run_logged
from mps_build.common.receipts import fingerprint
from mps_build.common.strict_yaml import load
from mps_build.common.wheels import wheel_file
from mps_build.common.wheels.download import file_digest
from mps_build.common.wheels.wheel_file import read_wheel
from mps_build.common.workspace import Workspace
from mps_build.inspection.audit import audit_installed, audit_wheel
from pydantic import BaseModel
from small_wheels import write_wheel

LINUX = pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs Linux's /proc and /dev/full")
WHEEL = "torch-2.15.0-cp313-cp313-macosx_14_0_arm64.whl"


def ended(work: Callable[[], object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run some work as a command's, and return its status and what it said on stderr."""

    def run(options: object, console: object) -> object:
        work()
        raise AssertionError("it went well")

    monkeypatch.setattr(matrix, "run", run)
    status = cli.main("matrix", [])
    return status, capsys.readouterr().err


@LINUX
@pytest.mark.parametrize(
    "read",
    [
        read_json,
        fingerprint,
        lambda path: load(path, BaseModel),
        lambda path: copy_whole(path, path.with_name("copy")),
    ],
    ids=["json", "fingerprint", "yaml", "copy"],
)
def test_a_file_that_the_disk_does_not_give_is_the_disks_fault(
    read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / WHEEL
    path.symlink_to("/proc/self/mem")

    status, said = ended(lambda: read(path), monkeypatch, capsys)

    assert status == HostError.exit_code, said
    assert said.startswith("error: the disk or the network folder fails: ")
    assert "Input/output error" in said and str(tmp_path) in said
    assert "hint: look at the disk" in said
    assert "bug of mps-build" not in said and "Traceback" not in said


@LINUX
def test_a_copy_that_fails_names_the_file_that_was_not_read_and_not_the_copy(tmp_path: Path) -> None:
    (tmp_path / "source").symlink_to("/proc/self/mem")

    with pytest.raises(OSError, match="Input/output error") as caught:
        copy_whole(tmp_path / "source", tmp_path / "copy")

    assert caught.value.filename == str(tmp_path / "source")


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.EIO, HostError), (errno.ESTALE, HostError), (errno.ENOSPC, DiskFull)]
)
def test_a_write_that_fails_is_the_disks_fault_and_what_was_there_stays(
    number: int,
    kind: type[MpsBuildError],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "a").write_text("old")

    def fail(self: Path, data: bytes) -> int:
        raise OSError(number, os.strerror(number))  # as write() does: without a name

    monkeypatch.setattr(Path, "write_bytes", fail)

    status, said = ended(lambda: write_whole(tmp_path / "a", "new"), monkeypatch, capsys)

    assert (status, str(tmp_path / "a") in said, "bug" in said) == (kind.exit_code, True, False), said
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


@LINUX
def test_a_log_on_a_full_disk_ends_the_program_with_the_status_of_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(process, "open_to_append", lambda log: io.FileIO("/dev/full", "a"))

    status, said = ended(lambda: run_logged(Command(argv=("sleep", "60")), log=tmp_path / "log"), monkeypatch, capsys)

    assert (status, "no space left" in said, "bug" in said) == (DiskFull.exit_code, True, False), said


@LINUX
def test_an_installed_file_that_the_disk_does_not_give_is_no_finding(tmp_path: Path) -> None:
    name = "torch-2.15.0.dist-info"
    wheel = write_wheel(tmp_path, {"torch/__init__.py": b"1"}, name=WHEEL)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    (tmp_path / "site/torch/__init__.py").unlink()
    (tmp_path / "site/torch/__init__.py").symlink_to("/proc/self/mem")

    with pytest.raises(OSError) as caught:
        audit_installed(tmp_path / "site", name)

    fault = machine_fault(caught.value)
    assert isinstance(fault, HostError) and "torch/__init__.py: Input/output error" in str(fault)


def test_a_wheel_that_the_disk_does_not_give_is_neither_rejected_nor_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wheel = write_wheel(tmp_path, {"torch/__init__.py": b"1"}, name=WHEEL)
    monkeypatch.setattr("os.pread", lambda *arguments: _Broken().read())
    monkeypatch.setattr(wheel_file, "open_regular", lambda path, *, follow: _Broken(b"PK" * 100))

    for read in (audit_wheel, read_wheel):
        status, said = ended(lambda read=read: read(wheel), monkeypatch, capsys)  # type: ignore[misc]

        assert (status, WHEEL in said) == (HostError.exit_code, True), said
        assert said.startswith("error: the disk or the network folder fails: ")


class _Broken(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


@LINUX
def test_a_cached_wheel_that_the_disk_does_not_give_is_not_taken_for_a_changed_one() -> None:
    with pytest.raises(OSError, match="Input/output error") as caught:
        file_digest(Path("/proc/self/mem"))

    assert caught.value.filename == "/proc/self/mem"


def test_an_error_of_ours_that_a_full_disk_caused_has_the_status_of_a_full_disk(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        try:
            raise OSError(errno.ENOSPC, "No space left on device", "/some/record.json")
        except OSError as error:
            raise UsageError("/some/record.json cannot be written") from error

    status, said = ended(work, monkeypatch, capsys)

    assert (status, "no space left: /some/record.json cannot be written" in said) == (19, True), said


def test_a_lock_that_the_disk_refuses_is_nobodys_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(file: object, how: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("fcntl.flock", fail)

    with pytest.raises(OSError, match="Input/output error"), Workspace(root=tmp_path).held():
        pass


# git


def fake_git(tmp_path: Path, says: str, *, real_for: str = "") -> Mapping[str, str]:
    """Return an environment whose git fails with some words; the real one does what is named."""
    real = next(path for each in os.environ["PATH"].split(":") if (path := Path(each) / "git").is_file())
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    lines = [f'case " $* " in *" {word} "*) exec {real} "$@";; esac' for word in real_for.split()]
    program.write_text("\n".join(["#!/bin/sh", *lines, f"echo '{says}' >&2", "exit 128", ""]))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return {**fetch_environ(os.environ), "PATH": f"{program.parent}:{os.environ['PATH']}"}


GITS_WORDS = [
    ("fatal: write error: No space left on device", DiskFull),
    ("error: unable to write file c10/core/a.cpp: No space left on device", DiskFull),
    ("fatal: cannot create directory at third_party: Disk quota exceeded", DiskFull),
    ("fatal: unable to read tree: Input/output error", HostError),
]


@pytest.mark.parametrize(("says", "kind"), GITS_WORDS)
@pytest.mark.parametrize("real_for", ["", "init config", "init config --depth=1"], ids=["init", "fetch", "checkout"])
def test_a_disk_that_git_finds_full_or_broken_has_its_own_status(
    says: str, kind: type[MpsBuildError], real_for: str, tmp_path: Path
) -> None:
    environ = fake_git(tmp_path, says, real_for=real_for)
    source = tmp_path / "source"
    _commit(source)
    commit = answer(git("rev-parse", "HEAD", cwd=source, environ=os.environ))
    mirror = mirror_of(str(source), cache=tmp_path / "cache", environ=environ, log=tmp_path / "log")

    with pytest.raises(kind):
        mirror.fetch(commit)
        mirror.check_out(commit, tmp_path / "tree")


@pytest.mark.parametrize("ends", ["exit 128", "sleep 600"])
def test_half_a_pack_is_removed_however_git_ends(ends: str, tmp_path: Path) -> None:
    environ = fake_git(tmp_path, "early EOF", real_for="init config rev-parse")
    program = tmp_path / "bin" / "git"
    program.write_text(program.read_text().replace("exit 128", f"echo > objects/pack/tmp_pack_1; echo half; {ends}"))
    mirror = mirror_of(str(tmp_path / "source"), cache=tmp_path / "cache", environ=environ, log=tmp_path / "log")
    seen: list[bool] = []

    def interrupted(number: int, frame: object) -> None:
        seen.append(any(mirror.path.glob("objects/pack/tmp_*")))
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupted)
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        with pytest.raises((SourceError, KeyboardInterrupt)):
            mirror.fetch("0" * 40)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    assert seen == ([True] if ends == "sleep 600" else [])
    assert mirror.path.is_dir()
    assert not list(mirror.path.glob("objects/pack/tmp_*"))


def _commit(folder: Path) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    answer(git("init", "-q", str(folder), environ=os.environ))
    answer(git(*identity, "commit", "-q", "--allow-empty", "-m", "x", cwd=folder, environ=os.environ))


def test_a_git_server_that_drips_is_given_up(tmp_path: Path) -> None:
    environ = {**fetch_environ(os.environ), "GIT_HTTP_LOW_SPEED_TIME": "1", "no_proxy": "127.0.0.1"}
    act = dripping(declared=None, kind="application/x-git-upload-pack-advertisement")

    with served(act) as (address, _), pytest.raises(SourceError, match="too slow") as caught:
        fetch = git("fetch", f"{address}/a.git", cwd=_repository(tmp_path), environ=environ)
        run_git(fetch, log=tmp_path / "log", timeout_seconds=40)

    assert "the network failed" in (caught.value.hint or "")


def test_git_has_a_lowest_rate_without_being_queried() -> None:
    assert "http.lowSpeedLimit=1000" in git("fetch", environ={}).argv
    assert "http.lowSpeedTime=120" in git("fetch", environ={}).argv


def test_git_has_a_total_limit_of_time_and_of_size(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with pytest.raises(SourceError, match=r"was not done after 0\.5 seconds"):
        run_git(Command(argv=("sleep", "60")), log=log, timeout_seconds=0.5)
    says = "printf 'Receiving objects:  1%% (1/100), 5.00 GiB | 1.00 MiB/s\\r'; sleep 60"
    with pytest.raises(SourceError, match="received 5368709120 bytes; the limit is 4294967296"):
        run_git(Command(argv=("sh", "-c", says)), log=log, most_bytes=4 << 30)


def _repository(tmp_path: Path) -> Path:
    answer(git("init", "-q", "--bare", str(tmp_path / "own.git"), environ=os.environ))
    return tmp_path / "own.git"
