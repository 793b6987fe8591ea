"""A failed build is tried again where that can help, and only there."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from mps_build.common.console import Console
from mps_build.common.errors import CompileError
from mps_build.common.process import Command
from mps_build.wheel_build.failure import with_retries
from mps_build.wheel_build.ninja import ninja_of
from mps_build.wheel_build.steps.configure import write_overrides

KILLED = "FAILED: CMakeFiles/torch_cpu.dir/a.cpp.o\nclang++: error: unable to execute command: Killed: 9\n"
AMBIGUOUS = "FAILED: CMakeFiles/torch_cpu.dir/a.cpp.o\na.cpp:1:2: error: reference to 'roll' is ambiguous\n"
FULL = "FAILED: CMakeFiles/torch_cpu.dir/a.cpp.o\nLLVM ERROR: IO failure on output stream: No space left on device\n"


@pytest.fixture
def tries(tmp_path: Path) -> Callable[..., list[str | None]]:
    """Return what runs a build that ends with the given logs in turn (None: well), and tells each try's job count."""
    unit = {"file": "/s/a.cpp", "command": "c++ -include-pch cmake_pch.hxx.pch -o CMakeFiles/torch_cpu.dir/a.cpp.o"}
    (tmp_path / "compile_commands.json").write_text(json.dumps([unit]))

    def run(*logs: str | None, jobs: int = 8) -> list[str | None]:
        seen: list[str | None] = []

        def attempt(command: Command) -> None:
            seen.append((command.environ or {}).get("MAX_JOBS"))
            if text := logs[len(seen) - 1]:
                (tmp_path / "log").write_text(text)
                raise CompileError("the build failed")

        with_retries(
            attempt,
            Command(argv=("build",), environ={}),
            build=tmp_path,
            log=tmp_path / "log",
            jobs=jobs,
            release=None,
            console=Console(),
        )
        return seen

    return run


def test_a_killed_compiler_is_tried_once_with_half_the_jobs(tries: Callable[..., list[str | None]]) -> None:
    assert tries(KILLED, None) == [None, "4"]
    with pytest.raises(CompileError):
        tries(KILLED, KILLED)
    with pytest.raises(CompileError):
        tries(KILLED, jobs=1)


def test_a_file_that_breaks_with_the_wide_header_is_tried_without_it(tries: Callable[..., list[str | None]]) -> None:
    assert tries(AMBIGUOUS, KILLED, None) == [None, None, "4"]


def test_it_fails_the_build_if_it_fails_without_the_header_too(tries: Callable[..., list[str | None]]) -> None:
    with pytest.raises(CompileError):
        tries(AMBIGUOUS, AMBIGUOUS)


def test_a_known_cause_is_not_the_headers_fault(tries: Callable[..., list[str | None]], tmp_path: Path) -> None:
    with pytest.raises(CompileError):
        tries(FULL)

    assert not list(tmp_path.glob("*without*"))


@pytest.mark.parametrize(
    ("cache", "program"),
    [
        ("CMAKE_MAKE_PROGRAM:FILEPATH=/usr/bin/ninja\n", "/usr/bin/ninja"),
        (
            "//x\nCMAKE_MAKE_PROGRAM:UNINITIALIZED=/venv with blank/bin/ninja-build\n",
            "/venv with blank/bin/ninja-build",
        ),
        ("CMAKE_MAKE_PROGRAM:FILEPATH=/usr/bin/make\n", "ninja"),
        (None, "ninja"),
    ],
)
def test_a_folder_is_built_by_the_ninja_that_configured_it(tmp_path: Path, cache: str | None, program: str) -> None:
    """Two ninjas in turn build everything anew each time: the older cannot read the newer one's log."""
    if cache is not None:
        (tmp_path / "CMakeCache.txt").write_text(cache, encoding="utf-8")

    assert ninja_of(tmp_path) == program


def test_equal_overrides_are_left_as_old_as_they_are(tmp_path: Path) -> None:
    """ninja configures again when this file is newer than its own."""
    overrides = write_overrides(tmp_path / "overrides.cmake", expect_mps=True, profile_lines="# a\n")
    os.utime(overrides, (1, 1))

    write_overrides(overrides, expect_mps=True, profile_lines="# a\n")
    assert overrides.stat().st_mtime == 1
    write_overrides(overrides, expect_mps=True, profile_lines="# b\n")
    assert overrides.stat().st_mtime > 1 and "# b" in overrides.read_text(encoding="utf-8")
