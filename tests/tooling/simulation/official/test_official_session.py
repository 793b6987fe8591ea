"""What an official wheel is run with: who may run, what is refused before any work, the environment of a program."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mps_build.commands.shared.parser import parse_options
from mps_build.commands.simulate import run as run_command
from mps_build.common.console import Console
from mps_build.common.errors import DiskFull, HostError, RefusedForSafety, UsageError
from mps_build.common.process import Command, CommandFailed
from mps_build.common.reporting import SilentReporter
from mps_build.common.wheels.download import FetchedWheel, pip_command
from mps_build.common.wheels.pip_call import EXECUTED, LIMITS, Limits
from mps_build.simulation.libraries import plugin_folder
from mps_build.simulation.official import session, wheel
from mps_build.simulation.official.build import Below, archives_of
from mps_build.simulation.official.interpreter import Interpreter, debian_interpreter, named_interpreter
from mps_build.simulation.official.metal_build import Metal
from mps_build.simulation.official.session import HOOK, Official, Request, pip_program, prepare, program_environ
from mps_build.simulation.official.session import run as run_program
from mps_build.simulation.official.tools import Tools, check_apt, check_host, check_room, official_folder
from mps_build.simulation.official.wheel import Wheel, find_official, find_trusted, needed
from packaging.requirements import Requirement
from packaging.version import Version
from small_wheels import write_wheel


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def official(tmp_path: Path) -> Official:
    """An environment whose `python` says how it was started, and ends with 7."""
    environment = tmp_path / "environment"
    (environment / "bin").mkdir(parents=True)
    python = environment / "bin/python"
    python.write_text('#!/bin/sh\nprintf "%s|%s|%s" "$VIRTUAL_ENV" "$LD_LIBRARY_PATH" "$1" > said\nexit 7\n')
    python.chmod(0o755)
    root = tmp_path / "root"
    wheel = Wheel(
        path=tmp_path / "torch.whl", version=Version("2.15.0"), python="3.11", sha256="0" * 64, requirements=()
    )
    return Official(
        wheel=wheel,
        interpreter=Interpreter(version="3.11", program=root / "usr/bin/python3.11", home="/usr/bin", root=root),
        below=Below(loader=tmp_path / "a", libcxx=tmp_path / "b", empty=tmp_path / "c"),
        environment=environment,
        site=tmp_path / "site",
        zig=tmp_path / "zig",
        metal=Metal(library=tmp_path / "d", machine=tmp_path / "e"),
    )


def _wheel(folder: Path, python: str = "311") -> Path:
    return write_wheel(folder, {}, name=f"torch-2.15.0-cp{python}-cp{python}-macosx_14_0_arm64.whl")


def test_a_program_runs_where_the_caller_stands_and_its_status_is_passed_on(
    official: Official, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": "/of/this/machine", "PYTHONPATH": "/ours", "MINE": "1"}

    status = run_program(official, ("python", "train.py"), environ=environ, macos="15.2")

    assert status == 7
    assert (tmp_path / "said").read_text() == f"{official.environment}||train.py"


def test_the_environment_of_a_program_is_the_callers_without_what_is_of_another_python(official: Official) -> None:
    environ = program_environ(
        official,
        environ={"PATH": "/nox", "MPS_BUILD_CALLER_PATH": "/mine", "PYTHONPATH": "x", "MINE": "1"},
        macos="14.4",
    )
    assert environ == {
        "MINE": "1",
        "PATH": f"{official.environment}/bin:/mine",
        "VIRTUAL_ENV": str(official.environment),
        "MPS_BUILD_MODULES": str(plugin_folder()),
        "MPS_BUILD_MACOS": "14.4",
    }


def test_pip_of_an_environment_compiles_no_modules_under_emulation(tmp_path: Path) -> None:
    python, pip = tmp_path / "a python", tmp_path / "pip"
    python.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    pip.write_text(pip_program(python))
    python.chmod(0o755)
    pip.chmod(0o755)
    for words, said in (
        (("install", "a b"), "-m|pip|install|--no-compile|a b|"),
        (("list",), "-m|pip|list|"),
        ((), "-m|pip|"),
    ):
        assert subprocess.run([pip, *words], check=True, capture_output=True, text=True).stdout == said


def test_a_wheel_that_is_a_file_runs_only_if_the_user_says_so(tmp_path: Path) -> None:
    path = _wheel(tmp_path)
    with pytest.raises(RefusedForSafety, match="would run with your rights") as refused:
        find_trusted(path, is_trusted=False, python=None)
    assert "--trust" in str(refused.value.hint)
    assert find_trusted(path, is_trusted=True, python=None).python == "3.11"


def test_a_wheel_of_another_python_is_refused_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is for Python 3\.12, and the interpreter is 3\.11"):
        find_trusted(_wheel(tmp_path, "312"), is_trusted=True, python="3.11")
    for ask in (
        lambda: debian_interpreter("3.12", SilentReporter()),
        lambda: prepare(Request(target="torch==2.15.0", interpreter="3.12"), SilentReporter()),
    ):
        with pytest.raises(UsageError, match=r"Debian has no Python 3\.12 .*, but 3\.9, 3\.11, 3\.13, 3\.14") as error:
            ask()
        assert "--interpreter" in str(error.value.hint)


def test_only_torch_is_simulated() -> None:
    with pytest.raises(UsageError, match="only torch is simulated"):
        find_official("numpy==2.0", python=None, reporter=SilentReporter())


@pytest.mark.parametrize("is_trusted", [False, True])
def test_a_release_without_a_hash_of_the_index_runs_only_if_the_user_says_so(
    is_trusted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[Limits] = []

    def fetch(requirement: str, **given: Any) -> FetchedWheel:
        limits.append(given.get("limits", LIMITS))
        return FetchedWheel(path=_wheel(tmp_path), from_cache=False)

    monkeypatch.setattr(wheel, "fetch_wheel", fetch)

    find_official("torch==2.15.0", python="3.11", reporter=SilentReporter(), is_trusted=is_trusted)

    assert [each.needs_hash for each in limits] == [not is_trusted]


@pytest.mark.parametrize("is_trusted", [False, True])
def test_neither_does_a_package_beside_it(
    is_trusted: bool, official: Official, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pip(command: Command, **_: object) -> None:
        if set(pip_command(EXECUTED)) <= set(command.argv):
            raise CommandFailed(
                command, exit_code=1, log=tmp_path, tail=("the index gives no sha256 of x.whl: it would run unchecked",)
            )
        Path(command.argv[command.argv.index("--target") + 1]).mkdir(parents=True)

    monkeypatch.setattr(session, "run_pip", pip)

    with nullcontext() if is_trusted else pytest.raises(RefusedForSafety, match="it would run unchecked"):
        session.packages_beside(official, ("pytest",), SilentReporter(), is_trusted=is_trusted)


def test_what_is_installed_with_a_torch_is_what_a_mac_gets() -> None:
    texts = (
        "sympy>=1.13",
        'setuptools; python_version >= "3.12"',
        'nvidia-cudnn-cu13==9.26.0.51; platform_system == "Linux"',
        'optree; extra == "o"',
    )
    requirements = [Requirement(text) for text in texts]
    assert needed(requirements, version=Version("2.15.0"), python="3.11") == ("sympy>=1.13", "numpy", "pip")
    assert needed(requirements, version=Version("2.2.2"), python="3.12") == (
        "setuptools",
        "sympy>=1.13",
        "numpy<2",
        "pip",
    )
    assert needed([], version=Version("2.1.2"), python="3.11") == ("setuptools<81", "numpy<2", "pip")


def test_an_interpreter_that_is_not_of_arm64_linux_is_refused(tmp_path: Path) -> None:
    tools = Tools(emulator=tmp_path / "none", zig=tmp_path / "none")
    script, other = tmp_path / "script", tmp_path / "other"
    script.write_text("#!/bin/sh\n")
    other.write_bytes(struct.pack("<4sBB10xHH", b"\x7fELF", 2, 1, 3, 62))
    for path, said in (
        (script, "is not a program for arm64"),
        (other, "is not a program for arm64"),
        (tmp_path / "no", "No such file"),
    ):
        with pytest.raises(UsageError, match=said):
            named_interpreter(path, tools, SilentReporter())


def test_a_host_that_cannot_run_one_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(machine="aarch64"))
    with pytest.raises(HostError, match="this is linux on aarch64"):
        check_host()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10**9))
    with pytest.raises(DiskFull, match=r"has 1\.0 GB free"):
        check_room(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match="missing: apt-get, dpkg-deb, tar") as error:
        check_apt()
    assert error.value.hint == "on Debian or Ubuntu: apt-get install apt dpkg tar"


def test_what_is_official_lies_in_a_folder_of_this_user_alone() -> None:
    assert official_folder().stat().st_mode & 0o777 == 0o700


def test_the_archives_of_libcxx_are_read_from_what_zig_says() -> None:
    line = "zig ld -dynamic -o p /c/o/1/p.o /c/o/2/libc++abi.a /c/o/3/libc++.a -lSystem /c/o/4/libcompiler_rt.a"
    assert archives_of([line])["libc++.a"] == Path("/c/o/3/libc++.a")
    with pytest.raises(Exception, match=r"where its libc\+\+abi\.a is"):
        archives_of(["/c/o/3/libc++.a"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("v2.6.0", "--interpreter", "python3"), "--interpreter is for a wheel"),
        (("torch==2.15.0", "--with", "einops", "--source", "tree"), "--source, --with: not for an official wheel"),
        (("torch==2.15.0", "--timing", "7"), "--timing is for a program"),
        (("torch==2.15.0", "--macos", "9"), "is not a version"),
    ],
)
def test_options_that_do_not_fit_are_refused(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run_command(parse_options("simulate", words), Console(quiet=True))


def test_the_wheels_module_is_found_before_the_folder_of_its_name(tmp_path: Path) -> None:
    suffix = f".cpython-{sys.version_info[0]}{sys.version_info[1]}-darwin.so"
    package = tmp_path / "wheel/torch"
    (package / "_C").mkdir(parents=True)  # what PyTorch's wheels have for type checkers
    (package / f"_C{suffix}").write_bytes(b"")
    (package / "other").mkdir()
    shutil.copy(HOOK, tmp_path)
    (tmp_path / "mps_build_official.json").write_text(json.dumps({"folders": [str(tmp_path / "wheel")]}))
    program = f"""
import sys
sys.path[:0] = [{str(tmp_path)!r}, {str(tmp_path / "wheel")!r}]
import mps_build_official, importlib.util, json
found = sys.meta_path[0].find_spec("torch._C", [{str(package)!r}])
print(found.origin)
print(sys.meta_path[0].find_spec("torch.other", [{str(package)!r}]), sys.meta_path[0].find_spec("json"))
print(importlib.util.find_spec("torch").submodule_search_locations[0])
"""
    answer = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert answer.stdout.splitlines() == [f"{package}/_C{suffix}", "None None", str(package)], answer.stderr
