"""`--nightly`: the newest pre-release of an index, by a real pip and a folder that stands for the index."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from mps_build.cli import main
from mps_build.commands.shared.wheels import chosen_nightly
from mps_build.common.errors import BuildEnvironmentError, SourceError, UsageError
from mps_build.common.wheels import download
from mps_build.common.wheels.download import MACOS_PLATFORM
from mps_build.common.wheels.pip_call import VARIABLE
from mps_build.verify.target import resolve
from small_wheels import torch_files, write_wheel

NEWEST = "2.17.0.dev20261121"
OURS = f"{sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture(name="index")
def _index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nightlies of two days and a release for Python 3.13, an older nightly for 3.14, and another platform's."""
    folder = tmp_path / "nightlies"
    folder.mkdir()
    for version, python in (
        ("2.17.0.dev20261120", "cp313"),
        (NEWEST, "cp313"),
        ("2.16.0", "cp313"),
        ("2.18.0", "cp313"),
    ):
        write_wheel(folder, torch_files(), name=f"torch-{version}-{python}-{python}-macosx_14_0_arm64.whl")
    write_wheel(folder, torch_files(), name="torch-2.19.0.dev20261122-cp313-cp313-manylinux_2_28_x86_64.whl")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", VARIABLE):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return folder


def _chosen(index: str | None, *pythons: str) -> tuple[str, str]:
    return chosen_nightly(None, nightly=True, index=index, pythons=pythons, platform=MACOS_PLATFORM)


def test_the_newest_pre_release_for_macos_is_chosen_and_no_release(index: Path) -> None:
    assert _chosen(str(index), "3.14", "3.13") == (f"torch=={NEWEST}", "3.13")


def test_the_index_may_be_configured(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(index))

    assert _chosen(None, "3.13") == (f"torch=={NEWEST}", "3.13")


def test_an_index_without_pre_releases_and_one_that_cannot_be_queried_are_errors(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match=r"has no pre-release of torch for Python 3\.12"):
        _chosen(str(index), "3.12")
    with pytest.raises(UsageError, match="neither a folder nor an address"):
        _chosen(str(tmp_path / "nowhere"), "3.13")
    monkeypatch.delenv("PIP_NO_INDEX")
    with pytest.raises((SourceError, UsageError), match=r"cannot list|no pre-release"):
        _chosen("http://127.0.0.1:9/simple", "3.13")


@pytest.mark.slow  # what chooses the nightly is queried by default
def test_audit_wheel_audits_the_nightly(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(download, "PYTHONS", ("3.13",))
    answer = tmp_path / "answer.json"

    status = main("audit_wheel", ["--nightly", "--index", str(index), "--python", "3.13", "--json", str(answer)])

    document = json.loads(answer.read_text(encoding="utf-8"))
    assert status in (0, 9), document
    assert document["facts"]["version"] == NEWEST
    assert f"nightly: torch=={NEWEST} for Python 3.13" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "arguments", "said"),
    [
        ("audit_wheel", ["torch==2.15.0", "--nightly"], "leave torch==2.15.0 out"),
        ("verify_mps", ["torch==2.15.0", "--nightly"], "leave torch==2.15.0 out"),
        ("verify_mps", ["--index", "/nowhere"], "--index goes with --nightly"),
        ("verify_mps", ["--nightly", "--python", "/usr/bin/python3"], "environment of its own"),
    ],
)
def test_what_does_not_go_together_is_said(
    command: str, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command, arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow  # what chooses the nightly is queried by default
def test_verify_mps_asks_for_the_nightly_of_this_python(
    tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Up to the wheel: what is in it is a fake that no Python can import."""
    tag = OURS.replace(".", "")
    platform = "macosx_11_0_arm64" if sys.platform == "darwin" else "manylinux_2_17_x86_64"
    nightly = write_wheel(index, torch_files(), name=f"torch-{NEWEST}-cp{tag}-cp{tag}-{platform}.whl")

    def stop(wheel: Path, *_: object, **__: object) -> Path:
        raise BuildEnvironmentError(f"{wheel.name} is to be installed", hint="this test ends here")

    monkeypatch.setattr(resolve, "make_environment", stop)
    monkeypatch.setattr(
        "mps_build.verify.target.wheel.own_pip", lambda _: (sys.executable, "-m", "pip")
    )  # making our own takes 5 s
    status = main(
        "verify_mps", ["--nightly", "--index", str(index), "--device", "cpu", "--record", str(tmp_path / "r")]
    )

    assert status == BuildEnvironmentError.exit_code
    assert f"{nightly.name} is to be installed" in capsys.readouterr().err
