"""A path that cannot be written or read is exit 2 with its name, before work starts; never a bug of ours."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from mps_build.cli import main
from mps_build.common.errors import UsageError
from mps_build.common.files import check_writable, refusal
from small_wheels import torch_files, write_wheel

# /proc takes no file from anybody, root included; elsewhere a folder without permissions stands for it.
READ_ONLY = Path("/proc/sys") if Path("/proc/sys").is_dir() else Path("/System")


@pytest.fixture(name="places")
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    return tmp_path


def _refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    status = main(words[0], list(words[1:]))
    said = capsys.readouterr().err
    assert status == 2, said
    assert "Traceback" not in said and "bug" not in said
    return said


def test_a_wheelhouse_that_cannot_be_written_is_refused_before_anything_is_made(
    places: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (places / "file").write_text("")

    for place in (READ_ONLY / "wheelhouse", places / "file", places / "file" / "wheelhouse"):
        said = _refused(capsys, "build_wheel", "sample", "--wheelhouse", str(place))
        assert "--wheelhouse" in said and str(place) in said

    assert not (places / "work").exists()


@pytest.mark.parametrize(
    ("variable", "what"), [("MPS_BUILD_WORK", "the work folder"), ("MPS_BUILD_CACHE", "the cache")]
)
def test_work_and_cache_are_tried_too(
    places: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, what: str
) -> None:
    monkeypatch.setenv(variable, str(READ_ONLY / "place"))

    said = _refused(capsys, "build_wheel", "sample")

    assert what in said and f"set {variable}" in said


def test_an_index_in_a_read_only_folder_is_refused(places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheelhouse = places / "wheelhouse"
    wheelhouse.mkdir()
    write_wheel(wheelhouse, torch_files())

    assert "--output" in _refused(capsys, "publish_index", str(wheelhouse), "--output", str(READ_ONLY / "site"))


@pytest.mark.parametrize(
    "refuse",
    [
        lambda folder: (folder / "file" / "below").read_text(),
        lambda folder: (folder / "file").mkdir(),
        lambda folder: folder.read_bytes(),
        lambda folder: (folder / ("n" * 300)).write_text(""),
    ],
)
def test_what_the_system_refuses_is_the_users_to_mend_and_named(
    places: Path, refuse: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (places / "file").write_text("")
    monkeypatch.setattr("mps_build.commands.dev.matrix.all_recipes", lambda: refuse(places))

    status = main("matrix", ["--json", str(places / "answer.json")])

    document = json.loads((places / "answer.json").read_text(encoding="utf-8"))
    assert (status, document["cause"]) == (2, "usage"), document
    assert document["error"].startswith("/")
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_wheel_is_exit_2(places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel = write_wheel(places, torch_files())
    wheel.chmod(0)

    assert wheel.name in _refused(capsys, "audit_wheel", str(wheel))


def test_a_missing_file_of_ours_is_still_a_bug() -> None:
    assert refusal(FileNotFoundError(2, "No such file or directory", "/ours")) is None
    assert isinstance(refusal(PermissionError(13, "Permission denied", "/theirs")), UsageError)


def test_nothing_is_left_behind_and_nothing_is_made(tmp_path: Path) -> None:
    check_writable(tmp_path / "a" / "b", what="it", hint="none")

    assert list(tmp_path.iterdir()) == []
