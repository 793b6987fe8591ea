"""A cached wheel is believed by its hash, in a folder of the user's own; anything else is fetched anew or refused."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from http_servers import dripping, index_of, served
from mps_build.common.errors import UsageError
from mps_build.common.reporting import SilentReporter
from mps_build.common.wheels import download
from mps_build.common.wheels.download import FetchedWheel, WheelCache, fetch_wheel, file_digest, own_folder
from processes import LONGEST_SECONDS, environ, wait_until
from small_wheels import write_wheel

FILE = "torch-2.15.0-cp313-cp313-macosx_14_0_arm64.whl"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The wheel that every download brings: by a pip that plays its part, for a real one takes half a second each."""
    index = tmp_path / "index"
    index.mkdir()
    made = write_wheel(index, {"torch/__init__.py": b"1"}, name=FILE)
    pip = tmp_path / "pip"
    pip.write_text(f'#!/bin/sh\nfor each; do case "$each" in --dest=*) cp {made} "${{each#--dest=}}" ;; esac; done\n')
    pip.chmod(0o755)
    monkeypatch.setattr(download, "pip_command", lambda limits: (str(pip),))
    return made


def fetch(tmp_path: Path) -> FetchedWheel:
    cache, log = tmp_path / "cache" / "wheels", tmp_path / "log"
    return fetch_wheel("torch==2.15.0", python="3.13", cache=cache, log=log, reporter=SilentReporter())


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def test_another_file_of_the_same_size_is_fetched_anew(wheel: Path, tmp_path: Path) -> None:
    first = fetch(tmp_path)
    assert fetch(tmp_path).from_cache
    _flip(first.path)

    second = fetch(tmp_path)

    assert (second.from_cache, second.path.read_bytes()) == (False, wheel.read_bytes())


def test_a_link_in_the_cache_is_replaced_and_not_written_through(wheel: Path, tmp_path: Path) -> None:
    first = fetch(tmp_path)
    outside = tmp_path / "outside.whl"
    first.path.rename(outside)
    first.path.symlink_to(outside)

    second = fetch(tmp_path)

    assert not second.from_cache
    assert not second.path.is_symlink()
    assert outside.read_bytes() == wheel.read_bytes()


def test_a_note_of_an_older_version_is_not_believed_for_its_size(wheel: Path, tmp_path: Path) -> None:
    first = fetch(tmp_path)
    notes = first.path.with_name("requests.json")
    (key,) = json.loads(notes.read_text())
    notes.write_text(json.dumps({key: {"file": FILE, "size": first.path.stat().st_size}}))

    assert not fetch(tmp_path).from_cache
    assert json.loads(notes.read_text())[key]["sha256"] == hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_a_note_that_leads_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "secret.whl"
    outside.write_bytes(b"x")
    cache = WheelCache(tmp_path / "cache")
    entry = {"file": "../secret.whl", "sha256": file_digest(outside)}
    (tmp_path / "cache" / "requests.json").write_text(json.dumps({"key": entry}))

    assert cache.get("key") is None


def test_the_folder_is_the_users_own(wheel: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        fetch(tmp_path)
    finally:
        os.umask(before)

    for folder in (tmp_path / "cache", tmp_path / "cache" / "wheels"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (tmp_path / "cache" / "wheels").chmod(0o777)
    fetch(tmp_path)
    assert stat.S_IMODE((tmp_path / "cache" / "wheels").stat().st_mode) == 0o700


def test_a_link_in_the_folders_place_is_refused(wheel: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "wheels").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(UsageError, match="cache/wheels is a symbolic link: what lies in it is not used") as caught:
        fetch(tmp_path)

    assert "MPS_BUILD_CACHE" in (caught.value.hint or "")
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_what_belongs_to_another_user_is_not_believed(wheel: Path, tmp_path: Path) -> None:
    first = fetch(tmp_path)
    os.chown(first.path, 12345, -1)
    assert not fetch(tmp_path).from_cache

    os.chown(first.path.parent, 12345, -1)
    with pytest.raises(UsageError, match=r"belongs to another user \(uid 12345; yours is 0\)"):
        fetch(tmp_path)


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "wheels").write_text("")

    with pytest.raises(UsageError, match="wheels is not a folder"):
        own_folder(tmp_path / "wheels")


def test_a_pipe_in_a_wheels_place_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)

    assert file_digest(tmp_path / FILE) is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_download_that_a_signal_ends_leaves_nothing(number: signal.Signals, wheel: Path, tmp_path: Path) -> None:
    """What SIGKILL leaves goes with the next download."""
    cache, temporary = tmp_path / "cache", tmp_path / "tmp"
    temporary.mkdir()
    with served(index_of("torch", FILE, dripping(declared=1000))) as (address, requested):
        argv = [sys.executable, "-m", "mps_build", "audit_wheel", "torch==2.15.0", "--python", "3.13"]
        settings = {"PIP_INDEX_URL": address, "PIP_NO_CACHE_DIR": "1", "no_proxy": "127.0.0.1"}
        own = environ(MPS_BUILD_CACHE=str(cache), TMPDIR=str(temporary), PIP_CONFIG_FILE="/dev/null", **settings)
        for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS"):
            own.pop(name, None)
        with subprocess.Popen(argv, env=own, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as tool:
            wait_until(lambda: any(FILE in path for path in requested))
            time.sleep(0.3)
            assert list((cache / "wheels").glob(".fetch-*"))
            assert list(temporary.iterdir())
            tool.send_signal(number)
            status = tool.wait(LONGEST_SECONDS)  # the server would go on for longer

    assert status == (143 if number == signal.SIGTERM else -number)
    if number == signal.SIGKILL:
        fetch(tmp_path)
    else:
        assert not list(temporary.iterdir())
    assert not list((cache / "wheels").glob(".fetch-*"))
