"""A requirement becomes a wheel file: by a real pip, from a folder that stands for the index."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.common.errors import SourceError, UsageError
from mps_build.common.reporting import SilentReporter
from mps_build.common.wheels import download as step
from mps_build.common.wheels.download import FetchedWheel, fetch_wheel, parse_requirement
from small_wheels import write_wheel


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that pip asks instead of the network."""
    folder = tmp_path / "an index"
    folder.mkdir()
    for tag in ("cp312-cp312-macosx_14_0_arm64", "cp313-cp313-macosx_14_0_arm64", "cp313-cp313t-macosx_14_0_arm64"):
        write_wheel(folder, {"torch/__init__.py": b""}, name=f"torch-2.15.0-{tag}.whl")
    write_wheel(folder, {"torch/__init__.py": b""}, name="torch-2.15.0-cp314-cp314-manylinux_2_28_x86_64.whl")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", folder.as_uri())
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setattr(step, "PYTHONS", ("3.14", "3.13"))
    return folder


def fetch(tmp_path: Path, requirement: str, python: str | None = None) -> FetchedWheel:
    return fetch_wheel(
        requirement, python=python, cache=tmp_path / "cache", log=tmp_path / "log", reporter=SilentReporter()
    )


def test_the_newest_python_that_has_a_wheel_is_taken_and_kept(index: Path, tmp_path: Path) -> None:
    first = fetch(tmp_path, "torch==2.15.0")
    for wheel in index.iterdir():
        wheel.unlink()
    second = fetch(tmp_path, "torch==2.15.0")

    assert first.path.name == "torch-2.15.0-cp313-cp313-macosx_14_0_arm64.whl"
    assert (first.from_cache, second) == (False, FetchedWheel(path=first.path, from_cache=True))
    assert not list((tmp_path / "cache").glob(".fetch-*"))


@pytest.mark.slow  # four calls of pip
def test_a_lost_or_shortened_file_of_the_cache_is_fetched_again(index: Path, tmp_path: Path) -> None:
    first = fetch(tmp_path, "torch==2.15.0", "3.12")
    whole = first.path.read_bytes()
    first.path.write_bytes(whole[:100])

    second = fetch(tmp_path, "torch==2.15.0", "3.12")

    assert not second.from_cache
    assert second.path.read_bytes() == whole


def test_free_threaded_pythons_have_their_own(index: Path, tmp_path: Path) -> None:
    assert fetch(tmp_path, "torch==2.15.0", "3.13t").path.name == "torch-2.15.0-cp313-cp313t-macosx_14_0_arm64.whl"


def test_what_is_not_there_is_a_clear_error(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "PYTHONS", ("3.14",))  # each is a call of pip; two are queried above
    with pytest.raises(
        UsageError, match=r"no macOS arm64 wheel of torch==9\.9 for any Python from 3\.14 to 3\.14"
    ) as caught:
        fetch(tmp_path, "torch==9.9")
    with pytest.raises(UsageError, match=r"no macOS arm64 wheel of torch==2\.15\.0 for Python 3\.14"):
        fetch(tmp_path, "torch==2.15.0", "3.14")

    assert "pip index versions torch" in (caught.value.hint or "")


def test_an_index_that_cannot_be_reached_is_no_missing_wheel(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")

    with pytest.raises(SourceError, match="cannot be reached"):
        fetch(tmp_path, "absent-thing==1.0", "3.12")


def test_a_constraint_of_pips_own_settings_is_named_and_can_be_left_out(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "constraints.txt").write_text("torch<=2.14.1\n")
    settings = tmp_path / "pip.conf"
    settings.write_text(f"[global]\nconstraint = {tmp_path / 'constraints.txt'}\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))

    with pytest.raises(UsageError, match=r"do not allow torch==2\.15\.0: a constraint says torch<=2\.14\.1") as caught:
        fetch(tmp_path, "torch==2.15.0", "3.12")

    assert "PIP_CONSTRAINT=/dev/null" in (caught.value.hint or "")
    monkeypatch.setenv("PIP_CONSTRAINT", "/dev/null")
    assert fetch(tmp_path, "torch==2.15.0", "3.12").path.is_file()


@pytest.mark.parametrize(
    "text", ["torch 2.15", "==2.15", "torch @ https://example.invalid/x.whl", "torch==2; python_version>'3'"]
)
def test_what_is_no_plain_requirement_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_requirement(text)


def test_a_python_that_is_no_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not a version of Python"):
        fetch(tmp_path, "torch==2.15.0", "2.7")
