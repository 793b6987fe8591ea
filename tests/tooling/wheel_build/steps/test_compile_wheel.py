"""The second wheel of an edited tree: what did not change is carried over; the bytes are those of a whole packing."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from mps_build.common.process import Command, capture
from mps_build.common.reporting import SilentReporter
from mps_build.wheel_build.backend import build_folder
from mps_build.wheel_build.ninja import run_build
from mps_build.wheel_build.steps.compile_wheel import (
    build_command,
    compile_wheel,
    files_of,
    make_commands,
    repack_wheel,
    staging,
)
from mps_build.wheel_build.steps.configure import configure, configure_command, write_overrides
from mps_build.wheel_build.steps.finish_wheel import finish_wheel

FIXTURE = Path(__file__).parents[2] / "fixtures" / "setup_py_era"
NAME = "thing-1.0-cp311-cp311-linux_x86_64.whl"
CONTENTS = {
    "thing/__init__.py": b"x = 1\n",
    "thing/lib/big.so": os.urandom(5000) + bytes(50_000),
    "thing/empty.py": b"",
}


def _row(name: str, data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def _wheel(path: Path, contents: dict[str, bytes]) -> Path:
    metadata = {"thing-1.0.dist-info/METADATA": b"Name: thing\nVersion: 1.0\n"}
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        rows = ""
        for name, data in {**contents, **metadata}.items():
            wheel.writestr(name, data)
            rows += _row(name, data)
        wheel.writestr("thing-1.0.dist-info/RECORD", f"{rows}thing-1.0.dist-info/RECORD,,\n")
    return path


def _tree(root: Path, contents: dict[str, bytes]) -> Path:
    for name, data in contents.items():
        file = root / "build" / "lib.linux-x86_64-cpython-311" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return root


def _files(root: Path, previous: Path) -> dict[str, Path] | None:
    found = files_of("setuptools", source=root, build=root / "build", previous=previous)
    return None if found is None else dict(found)


def test_only_what_changed_is_packed_anew_and_record_says_so(tmp_path: Path) -> None:
    previous = _wheel(tmp_path / "last" / NAME, CONTENTS)
    edited = {**CONTENTS, "thing/lib/big.so": b"other code"}
    files = _files(_tree(tmp_path, edited), previous)
    assert files is not None

    wheel, changed = repack_wheel(previous, files, output=tmp_path / "next")

    assert changed == ("thing/lib/big.so",)
    with zipfile.ZipFile(wheel) as zipped:
        assert zipped.testzip() is None
        assert {name: zipped.read(name) for name in edited} == edited
        record = zipped.read("thing-1.0.dist-info/RECORD").decode()
    assert all(_row(name, data) in record for name, data in edited.items())


def test_a_finished_wheel_has_the_same_bytes_with_the_last_one_and_without(tmp_path: Path) -> None:
    first = finish_wheel(_wheel(tmp_path / "a" / NAME, CONTENTS), output=tmp_path / "first", epoch=10**9, bill={"a": 1})
    edited = _wheel(tmp_path / "b" / NAME, {**CONTENTS, "thing/__init__.py": b"x = 2\n"})

    whole = finish_wheel(edited, output=tmp_path / "whole", epoch=10**9, bill={"a": 2})
    carried = finish_wheel(edited, output=tmp_path / "carried", epoch=10**9, bill={"a": 2}, previous=first.path)

    assert carried.sha256 == whole.sha256 != first.sha256
    assert carried.path.read_bytes() == whole.path.read_bytes()


def test_another_time_stamp_carries_nothing_over(tmp_path: Path) -> None:
    raw = _wheel(tmp_path / "a" / NAME, CONTENTS)
    first = finish_wheel(raw, output=tmp_path / "first", epoch=10**9, bill={})

    later = finish_wheel(raw, output=tmp_path / "later", epoch=11**9, bill={}, previous=first.path)

    assert later.sha256 == finish_wheel(raw, output=tmp_path / "whole", epoch=11**9, bill={}).sha256


@pytest.mark.parametrize("change", ["added", "gone"])
def test_other_members_are_no_matter_of_repacking(tmp_path: Path, change: str) -> None:
    previous = _wheel(tmp_path / "last" / NAME, CONTENTS)
    contents = dict(CONTENTS)
    if change == "added":
        contents["thing/new.py"] = b""
    else:
        del contents["thing/empty.py"]

    assert _files(_tree(tmp_path, contents), previous) is None


def test_from_2_14_on_a_new_python_file_is_no_matter_of_repacking_either(tmp_path: Path) -> None:
    previous = _wheel(tmp_path / "last" / NAME, CONTENTS)
    for name, data in CONTENTS.items():
        file = (staging(tmp_path / "build") if name.endswith(".so") else tmp_path) / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    assert set(_scikit(tmp_path, previous) or ()) == set(CONTENTS)

    (tmp_path / "thing" / "new.py").touch()

    assert _scikit(tmp_path, previous) is None


def _scikit(root: Path, previous: Path) -> dict[str, Path] | None:
    found = files_of("scikit-build-core", source=root, build=root / "build", previous=previous)
    return None if found is None else dict(found)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("c++"), reason="no compiler for this machine")
def test_an_edit_of_the_setup_py_era_ends_in_the_same_finished_wheel_as_building_it_whole(tmp_path: Path) -> None:
    source, venv = Path(shutil.copytree(FIXTURE, tmp_path / "source")), tmp_path / "venv"
    assert capture(Command(argv=(sys.executable, "-m", "venv", str(venv))), timeout_seconds=300).ok
    needed = ("setuptools<80", "wheel", "cmake>=3.24", "ninja", "build")
    installed = capture(Command(argv=(str(venv / "bin" / "pip"), "install", "-q", *needed)), timeout_seconds=600)
    assert installed.ok, installed.stderr
    python, build = venv / "bin" / "python", build_folder("setuptools", source=source, build=tmp_path / "build")
    path = os.pathsep.join([str(venv / "bin"), os.environ["PATH"]])
    environ = {"PATH": path, "LC_ALL": "C", "USE_MPS": "1", "USE_OPENMP": "0", "SOURCE_DATE_EPOCH": "1000000000"}
    overrides, log, quiet = write_overrides(tmp_path / "o.cmake", expect_mps=False), tmp_path / "log", SilentReporter()
    settings: dict[str, Any] = {
        "python": python,
        "source": source,
        "build": build,
        "environ": environ,
        "overrides": overrides,
    }
    configure(configure_command("setuptools", **settings), build=build, log=log, reporter=quiet, new_python=False)
    pack = build_command("setuptools", output=tmp_path / "dist", **settings)
    first = compile_wheel(pack, output=tmp_path / "dist", log=log, reporter=quiet)
    finished = finish_wheel(first, output=tmp_path / "finished", epoch=10**9, bill={})
    core = source / "csrc" / "core.cpp"
    core.write_text(core.read_text(encoding="utf-8").replace("return", "return 7 +"), encoding="utf-8")
    # CMake's install (cmFileCopier.cxx) and setuptools keep a copy that is of the same second; no edit is made so soon.
    copies = [path for path in source.rglob("libold_core.so") if path.parent.name == "lib"]
    assert len(copies) == 2
    for copy in copies:
        os.utime(copy, (10**9, 10**9))

    for command in make_commands("setuptools", jobs=2, **settings):
        run_build(command, log=log, reporter=quiet)
    files = files_of("setuptools", source=source, build=build, previous=first)
    assert files is not None
    again, changed = repack_wheel(first, files, output=tmp_path / "repacked")
    ours = finish_wheel(again, output=tmp_path / "ours", epoch=10**9, bill={}, previous=finished.path)

    assert changed == ("old_sample/lib/libold_core.so",)
    whole = compile_wheel(pack, output=tmp_path / "dist", log=log, reporter=quiet)
    assert ours.sha256 == finish_wheel(whole, output=tmp_path / "whole", epoch=10**9, bill={}).sha256 != finished.sha256
