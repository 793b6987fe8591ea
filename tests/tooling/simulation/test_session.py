"""How a program is started, and what the command says of itself."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import pytest
from mps_build.commands.shared.parser import parse_options
from mps_build.commands.simulate import document_of, run
from mps_build.common.console import Console
from mps_build.common.errors import UsageError
from mps_build.common.process import Command, capture
from mps_build.simulation.builder.build import Built
from mps_build.simulation.builder.root import LIBRARY, Root
from mps_build.simulation.kept import cache_key
from mps_build.simulation.libraries import plugin_folder
from mps_build.simulation.releases import find_release
from mps_build.simulation.session import Coverage, check_macos, program_argv, run_program, simulated_environ


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Built:
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    root = Root(path=tmp_path / "root", python_version="3.13")
    root.python.parent.mkdir(parents=True)
    root.python.write_text('#!/bin/sh\nprintf \'%s|%s|%s\\n\' "$MPS_BUILD_MACOS" "$PYTHONPATH" "$1" > said\nexit 7\n')
    root.python.chmod(0o755)
    folder = tmp_path / "build"
    folder.mkdir()
    (folder / LIBRARY).write_bytes(b"12345")
    return Built(
        release=find_release("2.6.0"),
        root=root,
        tree=tmp_path,
        folder=folder,
        kernels=tmp_path / "kernels",
        objective_files=69,
        cpu_seconds=12.5,
    )


def test_a_program_runs_where_the_caller_stands_and_its_status_is_passed_on(
    built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/ours"}
    environ = simulated_environ(built, macos="14.4", environ=environ)
    status = run_program(program_argv(built, ("python", "train.py")), environ=environ)

    assert status == 7
    assert (tmp_path / "said").read_text() == "14.4||train.py\n"
    assert environ["MPS_BUILD_MODULES"] == str(plugin_folder())


def test_a_program_has_a_compiler_for_torch_compile_unless_the_caller_names_one(built: Built) -> None:
    environ = simulated_environ(built, macos="14.4", environ={"PATH": "/usr/bin"})

    compiler = Path(environ["CXX"])
    assert os.access(compiler, os.X_OK)
    assert "omp_get_thread_num" in (compiler.parent / "include/omp.h").read_text(encoding="utf-8")
    built.root.clang.parent.mkdir(parents=True)
    built.root.clang.write_text('#!/bin/sh\necho "$@"\n')
    built.root.clang.chmod(0o755)
    said = capture(Command(argv=(str(compiler), "-fopenmp", "a b.cpp"), environ={"PATH": os.defpath})).stdout
    assert said.startswith("--driver-mode=g++ ") and said.endswith(" -fopenmp a b.cpp -fopenmp=libgomp\n")
    other = simulated_environ(built, macos="14.4", environ={"PATH": "/usr/bin", "CXX": "mine"})
    assert other["CXX"] == "mine"


@pytest.mark.parametrize("name", ["python", "python3", "python3.13"])
def test_python_is_the_simulated_interpreter(built: Built, name: str) -> None:
    assert program_argv(built, (name, "-c", "1")) == (str(built.root.python), "-c", "1")


def test_a_timing_and_libraries_reach_the_program(built: Built, tmp_path: Path) -> None:
    plain = simulated_environ(built, macos="15.2", environ={"PATH": "/usr/bin"})
    drawn = simulated_environ(built, macos="15.2", environ={"PATH": "/usr/bin"}, timing=7, libraries=tmp_path / "venv")

    assert "MPS_BUILD_TIMING" not in plain
    assert drawn["MPS_BUILD_TIMING"] == "7"
    assert drawn["PATH"].startswith(f"{tmp_path}/venv/bin:")
    argv = program_argv(built, ("python3", "a.py"), libraries=tmp_path / "venv")
    assert argv == (f"{tmp_path}/venv/bin/python", "a.py")


def test_another_program_finds_the_simulated_interpreter_by_its_name(built: Built) -> None:
    assert program_argv(built, ("sh", "run.sh")) == ("sh", "run.sh")

    environ = simulated_environ(built, macos="15.2", environ={"PATH": "/nox", "MPS_BUILD_CALLER_PATH": "/mine"})

    first, rest = environ["PATH"].split(":", 1)
    assert (Path(first) / "python").resolve() == built.root.python
    assert rest == "/mine"  # the caller's own, not the session's
    assert environ["LD_LIBRARY_PATH"] == str(built.folder)
    assert not any(name.startswith("MPS_BUILD_CALLER_") for name in environ)


@pytest.mark.parametrize("text", ["11.0", "12", "12.2", "27.1", "15.2.1", "fifteen", "", "-1"])
def test_a_version_that_no_mps_runs_on_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--macos"):
        check_macos(text)


@pytest.mark.parametrize("text", ["12.3", "12.10", "13.3", "14.4", "15", "26.0"])
def test_a_version_of_macos_is_taken(text: str) -> None:
    check_macos(text)


def test_the_document_says_what_is_covered(built: Built) -> None:
    covered = Coverage(needed=349, missing=("LSTMWithSourceTensor:",), registrations=715)

    assert document_of(built, covered, macos="15.2") == {
        "release": "2.6.0",
        "macos": "15.2",
        "torch": "debian",
        "objective_files": 69,
        "selectors": {"needed": 349, "implemented": 348, "missing": ["LSTMWithSourceTensor:"]},
        "registrations": 715,
        "library_bytes": 5,
        "build_cpu_seconds": 12.5,
    }


def test_what_follows_two_dashes_is_the_program() -> None:
    options = parse_options("simulate", ["v2.6.0", "--macos", "14.4", "--", "python", "--macos", "x"])

    assert options.command == ("python", "--macos", "x")
    assert (options.recipe, options.macos) == ("v2.6.0", "14.4")


def test_a_program_is_no_argument_of_its_own() -> None:
    with pytest.raises((UsageError, argparse.ArgumentError)):
        parse_options("simulate", ["v2.6.0", "python"])


@pytest.mark.parametrize("words", [["--timing", "1"], ["--with", "accelerate"], ["--venv", "here"]])
def test_what_is_for_a_program_is_refused_without_one(words: list[str]) -> None:
    options = parse_options("simulate", ["v2.6.0", *words])

    with pytest.raises(UsageError, match="are for a program"):
        run(options, Console())


def test_a_key_is_printed_and_nothing_else_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    options = parse_options("simulate", ["torch==2.15.0", "--cache-key"])

    result = run(options, Console())

    assert capsys.readouterr().out == f"{result.document['cache_key']}\n"
    assert result.document["cache_key"] == cache_key("torch==2.15.0")
    with pytest.raises(UsageError, match="needs a version"):
        run(parse_options("simulate", ["torch", "--cache-key"]), Console())
    with pytest.raises(UsageError, match=r"no\.whl: cannot be read"):
        run(parse_options("simulate", ["no.whl", "--cache-key"]), Console())


def test_what_a_program_can_import_of_ours_stands_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin with the known issues, and the answers of a Mac, in a Python that has nothing else of ours."""
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path))
    folder = plugin_folder()
    text = (
        "import json, platform, mps_build.as_mac; from mps_build import pytest_plugin as p\n"
        "rows = json.loads(p.Path(p.__file__).with_name('known_issues.json').read_text())\n"
        "print(platform.processor(), platform.machine(), platform.mac_ver()[0], len(rows) > 100, rows[0]['where'])"
    )
    environ = {"PYTHONPATH": str(folder), "MPS_BUILD_MACOS": "14.4"}

    said = capture(Command(argv=(sys.executable, "-c", text), environ=environ))

    assert said.stdout == "arm arm64 14.4 True ['mac', 'simulated', 'official']\n", said.stderr
    assert plugin_folder() == folder
