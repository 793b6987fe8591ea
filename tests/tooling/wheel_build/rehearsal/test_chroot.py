"""The Debian root: what is decided about it, without making one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mps_build.common.errors import BuildEnvironmentError, DiskFull, HostError
from mps_build.common.process import capture
from mps_build.common.receipts import Ledger
from mps_build.common.reporting import SilentReporter
from mps_build.wheel_build.rehearsal import chroot as module
from mps_build.wheel_build.rehearsal.chroot import (
    Chroot,
    check_host,
    find_mirror,
    make_root,
    parse_mirrors,
    parse_mount_points,
)


def test_mirrors_are_those_of_debian_itself_once_each_in_apts_order() -> None:
    text = (
        "http://one.example/debian/|Debian|Debian\n"
        "http://one.example/debian/|Debian|Debian\n"
        "http://sec.example/debian-security/|Debian|Debian-Security\n"
        "https://other.example/x/|nodesource|nodesource\n"
        "http://two.example/debian/|Debian|Debian\n"
    )

    assert parse_mirrors(text) == ("http://one.example/debian/", "http://two.example/debian/")


@pytest.mark.parametrize("text", ["", "\n", "no bars here", "a|b", "E: something | failed"])
def test_a_text_that_names_no_mirror_gives_none(text: str) -> None:
    assert parse_mirrors(text) == ()


def test_the_callers_mirror_wins_without_apt() -> None:
    assert find_mirror("http://mine.example/debian") == "http://mine.example/debian"


def test_a_host_whose_apt_names_no_archive_has_to_give_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(HostError, match="has no Debian archive") as caught:
        find_mirror(None)
    assert caught.value.hint is not None and "--mirror" in caught.value.hint


def test_mount_points_are_read_with_their_escapes() -> None:
    text = "22 1 0:20 / /proc rw - proc proc rw\n23 1 0:21 / /a\\040b\\134c rw - x x rw\nbroken\n"

    assert parse_mount_points(text) == ("/proc", "/a b\\c")


def test_every_reason_against_a_host_is_given_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(module, "_search_path", lambda: str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with pytest.raises(HostError) as caught:
        check_host(tmp_path)
    assert "root is needed" in str(caught.value)
    assert "debootstrap" in str(caught.value) and "dpkg-source" in str(caught.value)
    assert caught.value.hint == "on Debian or Ubuntu: apt-get install debootstrap util-linux dpkg-dev apt"


def test_a_mac_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    with pytest.raises(HostError, match="needs Linux, this is darwin"):
        check_host(tmp_path)


def test_a_small_disk_is_refused_before_anything_is_made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(shutil, "which", lambda tool, path=None: f"/usr/bin/{tool}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(module, "FREE_BYTES", 10**18)
    folder = tmp_path / "not" / "there"

    with pytest.raises(DiskFull, match="GB free"):
        check_host(folder)
    assert not folder.exists()


def test_a_command_inside_gets_a_private_namespace_its_folders_and_nothing_of_our_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CPATH", "/leak")
    monkeypatch.setenv("https_proxy", "http://proxy.example")
    command = Chroot(root=tmp_path / "root", binds=(tmp_path,)).command(
        ("clang", "-v"), cwd=tmp_path, environ={"USE_MPS": "0"}
    )

    assert command.argv[:4] == ("unshare", "--mount", "--propagation", "private")
    assert command.argv[-3:] == ("--", "clang", "-v")
    assert str(tmp_path) in command.argv[8:-3]
    assert command.environ is not None
    assert "CPATH" not in command.environ
    assert command.environ["https_proxy"] == "http://proxy.example"
    assert command.environ["USE_MPS"] == "0"


def test_a_bind_that_is_not_there_is_left_out(tmp_path: Path) -> None:
    command = Chroot(root=tmp_path, binds=(tmp_path / "gone",)).command(("true",))

    assert str(tmp_path / "gone") not in command.argv


def _may_mount() -> bool:
    if os.geteuid() != 0 or not shutil.which("unshare"):
        return False
    return subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode == 0


@pytest.mark.skipif(not _may_mount(), reason="needs the right to mount")
def test_a_command_inside_sees_its_bind_and_leaves_nothing_mounted(tmp_path: Path) -> None:
    root, shared = tmp_path / "root", tmp_path / "sha red"
    shared.mkdir()
    (shared / "given").write_text("from outside", encoding="utf-8")
    for folder in ("proc", "sys", "dev"):
        (root / folder).mkdir(parents=True)
    # The smallest root that has a shell: this host's own programs, seen through binds.
    system = [Path(name) for name in ("/bin", "/lib", "/lib64", "/usr") if Path(name).exists()]
    inside = Chroot(root=root, binds=(shared, *system))

    answer = capture(inside.command(("cat", "given", "/proc/self/comm"), cwd=shared))

    assert answer.stdout == "from outsidecat\n", answer.stderr
    mounted = parse_mount_points(Path("/proc/self/mountinfo").read_text(encoding="utf-8"))
    assert [point for point in mounted if point.startswith(str(tmp_path))] == []


def test_a_bootstrap_that_failed_is_said_with_its_last_lines_and_done_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    fake = programs / "debootstrap"
    fake.write_text('#!/bin/sh\nmkdir -p "$3/half"; echo "E: no such host"; exit 1\n', encoding="utf-8")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    root, ledger, log = tmp_path / "root", Ledger(tmp_path / "receipts"), tmp_path / "log"

    def make() -> None:
        make_root(
            root=root,
            suite="trixie",
            mirror=lambda: "http://m.example",
            ledger=ledger,
            log=log,
            reporter=SilentReporter(),
        )

    with pytest.raises(BuildEnvironmentError, match="E: no such host"):
        make()
    assert (root / "half").is_dir()
    fake.write_text('#!/bin/sh\n[ -e "$3" ] && echo "E: half of a root is there"; exit 1\n', encoding="utf-8")
    with pytest.raises(BuildEnvironmentError) as caught:
        make()
    assert "half of a root" not in str(caught.value)
