"""Libraries of a simulated program: an environment is made once, and what is requested is installed into it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from mps_build.common.errors import BuildEnvironmentError, UsageError
from mps_build.common.reporting import SilentReporter
from mps_build.common.wheels.pip_call import EXECUTED, LIMITS, limited_pip
from mps_build.simulation.builder.build import Built
from mps_build.simulation.builder.root import LIBRARY, Root
from mps_build.simulation.libraries import libraries_of
from mps_build.simulation.releases import find_release

_PIP = " ".join(limited_pip("python", limits=EXECUTED)[1:])
# Writes how it was called; makes what `venv` makes; has no package named `missing`.
_PYTHON = """#!/bin/sh
echo "$@" >> "{said}"
case "$2" in
venv) sleep 0.2
  mkdir -p "$5/bin" && printf 'home = {home}\\ninclude-system-site-packages = true\\n' > "$5/pyvenv.cfg" ;;
esac
case "$*" in *missing*) echo "no package missing" >&2; exit 1 ;; esac
"""


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Built:
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    root = Root(path=tmp_path / "root", python_version="3.13")
    root.python.parent.mkdir(parents=True)
    root.python.write_text(_PYTHON.format(said=tmp_path / "said", home=root.python.parent))
    root.python.chmod(0o755)
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / LIBRARY).touch()
    return Built(
        release=find_release("2.6.0"),
        root=root,
        tree=tmp_path,
        folder=tmp_path / "build",
        kernels=tmp_path / "kernels",
        objective_files=69,
        cpu_seconds=12.5,
    )


def _said(tmp_path: Path) -> list[str]:
    return (tmp_path / "said").read_text().splitlines() if (tmp_path / "said").exists() else []


def test_nothing_is_made_where_nothing_is_requested(built: Built, tmp_path: Path) -> None:
    assert libraries_of(built, packages=(), folder=None, reporter=SilentReporter()) is None
    assert _said(tmp_path) == []


def test_packages_are_installed_once_into_an_environment_that_sees_torch(built: Built, tmp_path: Path) -> None:
    home = libraries_of(built, packages=("b", "a"), folder=None, reporter=SilentReporter())
    again = libraries_of(built, packages=("a", "b"), folder=None, reporter=SilentReporter())

    assert home == again
    assert _said(tmp_path) == [
        f"-m venv --system-site-packages --without-pip {home}",
        f"{_PIP} --python {home}/bin/python install --disable-pip-version-check a b",
    ]


def test_two_programs_at_once_make_one_environment(built: Built, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as both:
        answers = [
            both.submit(libraries_of, built, packages=("a",), folder=None, reporter=SilentReporter()) for _ in range(2)
        ]

    assert answers[0].result() == answers[1].result()
    assert [line.split()[1] for line in _said(tmp_path)] == ["venv", _PIP.split()[1]]


def test_a_folder_of_the_users_is_made_and_then_kept(built: Built, tmp_path: Path) -> None:
    folder = tmp_path / "mine"

    assert libraries_of(built, packages=(), folder=folder, reporter=SilentReporter()) == folder
    assert libraries_of(built, packages=("a",), folder=folder, reporter=SilentReporter()) == folder

    assert [line.split()[1] for line in _said(tmp_path)] == ["venv", _PIP.split()[1]]


def test_an_environment_of_another_python_is_refused_and_stays(built: Built, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\ninclude-system-site-packages = true\n")

    with pytest.raises(UsageError, match="is not an environment of the simulated Python"):
        libraries_of(built, packages=(), folder=folder, reporter=SilentReporter())
    assert (folder / "pyvenv.cfg").exists()


def test_a_package_that_cannot_be_had_is_reported_and_requested_again(built: Built, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(BuildEnvironmentError, match="no package missing"):
            libraries_of(built, packages=("missing",), folder=None, reporter=SilentReporter())
    assert sum(_PIP in line for line in _said(tmp_path)) == 2


def test_a_package_without_a_hash_is_taken_by_trust_alone(built: Built, tmp_path: Path) -> None:
    libraries_of(built, packages=("a",), folder=None, reporter=SilentReporter(), trust=True)
    assert " ".join(limited_pip("python", limits=LIMITS)[1:]) in _said(tmp_path)[1]
