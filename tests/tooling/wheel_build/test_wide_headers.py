"""A wide header on a small project of its own: which files get it, and which are left out when they break with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mps_build.wheel_build.wide_headers import LIST, WideHeader, exclude, wide_header_lines

FAILED = "FAILED: [code=1] CMakeFiles/torch_cpu.dir/{}.o \nclang++ -o ...\nninja: build stopped: subcommand failed.\n"


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """A configured folder of two files; only a.cpp has the header."""
    command = "clang++ -Xclang -include-pch -Xclang CMakeFiles/torch_cpu.dir/cmake_pch.hxx.pch -o {0} -c x"
    units = [
        {"file": "/s/a.cpp", "command": command.format("CMakeFiles/torch_cpu.dir/a.cpp.o")},
        {"file": "/s/b.cpp", "command": "clang++ -o CMakeFiles/torch_cpu.dir/b.cpp.o -c b.cpp"},
    ]
    (tmp_path / "compile_commands.json").write_text(json.dumps(units))
    return tmp_path


def test_a_file_that_fails_with_the_header_is_left_out_once(build: Path) -> None:
    assert exclude(build, FAILED.format("a.cpp")) == ("/s/a.cpp",)
    assert (build / LIST).read_text() == "/s/a.cpp\n"
    assert exclude(build, FAILED.format("a.cpp")) == (), "without the header it fails for a reason of its own"


def test_a_file_that_fails_without_the_header_fails_the_build(build: Path) -> None:
    assert exclude(build, FAILED.format("b.cpp")) == ()
    assert not (build / LIST).exists()


def test_a_header_that_cannot_be_compiled_leaves_its_target_out(build: Path) -> None:
    assert exclude(build, FAILED.format("cmake_pch.hxx.pch").replace(".pch.o", ".pch")) == ("target:torch_cpu",)


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_without_compile_commands_nothing_is_left_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "compile_commands.json").write_text(text)

    assert exclude(tmp_path, FAILED.format("a.cpp")) == ()


@pytest.mark.slow
@pytest.mark.zig
@pytest.mark.skipif(not shutil.which("cmake") or not shutil.which("ninja"), reason="needs cmake and ninja")
def test_a_build_goes_on_without_the_header_where_it_breaks(tmp_path: Path) -> None:
    (tmp_path / "wide.h").write_text(
        "#pragma once\nnamespace one { inline int roll(int x) { return x; } }\n"
        "#ifdef SEEN\nnamespace one { int seen(); }\n#endif\n"
    )
    (tmp_path / "good.cpp").write_text("int good() { return one::roll(1); }\n")  # compiles with the header only
    (tmp_path / "bad.cpp").write_text("namespace one { int roll(int x) { return x + 1; } }\n")  # and this without it
    (tmp_path / "seen.cpp").write_text('#define SEEN\n#include "wide.h"\nint seen() { return one::seen(); }\n')
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.24)\nproject(p CXX)\n"
        "add_library(torch_cpu STATIC good.cpp bad.cpp seen.cpp)\n"
    )
    wrapper = tmp_path / "c++"
    wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang c++ "$@"\n')
    wrapper.chmod(0o755)
    header = WideHeader(target="torch_cpu", header="torch_cpu.h", excluded=())
    lines = wide_header_lines((header,), tmp_path / "headers").replace(
        str(tmp_path / "headers" / "torch_cpu.h"), str(tmp_path / "wide.h")
    )
    (tmp_path / "overrides.cmake").write_text(lines)
    build = tmp_path / "build"

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        environ = {**os.environ, "ZIG_LOCAL_CACHE_DIR": str(tmp_path / "zig")}
        return subprocess.run(argv, capture_output=True, text=True, env=environ, check=False, timeout=600)

    configured = run(
        *("cmake", "-GNinja", f"-S{tmp_path}", f"-B{build}", f"-DCMAKE_CXX_COMPILER={wrapper}"),
        *("-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", f"-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES={tmp_path / 'overrides.cmake'}"),
    )
    assert configured.returncode == 0, configured.stderr
    first = run("ninja", "-C", str(build))
    assert first.returncode != 0, "the fault: a file that breaks with the header"

    assert exclude(build, first.stdout) == (str(tmp_path / "bad.cpp"),)
    again = run("ninja", "-C", str(build))

    assert again.returncode == 0, again.stdout
