"""delocate as it is called: with its own arguments, and with its output stored, since finish_wheel compresses it."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import pytest
from mps_build.common.errors import CompileError
from mps_build.wheel_build.steps.finish_wheel import FAST, SMALL, finish_wheel, repair_wheel

CODE = b"".join(str(number * number).encode() for number in range(20_000))
NAME = "thing-1.0-cp311-cp311-macosx_11_0_arm64.whl"
# What delocate-wheel does, in small: it reads its options, and packs by what its module calls dir2zip.
_MAIN = """\
import argparse, os
from delocate import delocating
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--require-archs"), parser.add_argument("-v", action="store_true")
    parser.add_argument("-e", action="append"), parser.add_argument("-w"), parser.add_argument("wheel")
    given = parser.parse_args()
    if given.e:
        raise SystemExit(f"cannot leave out {given.e}")
    delocating.dir2zip(given.wheel, os.path.join(given.w, os.path.basename(given.wheel)))
"""
_PACK = """\
import zipfile
def dir2zip(source, target{more}):
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w", compression={compression}) as new:
        for name in old.namelist():
            new.writestr(name, old.read(name))
"""
NEW = _PACK.format(more=", *, compression=zipfile.ZIP_DEFLATED", compression="compression")
OLD = _PACK.format(more="", compression="zipfile.ZIP_DEFLATED")


def _delocate(folder: Path, pack: str) -> dict[str, str]:
    for name, text in {"__init__": "", "delocating": pack, "cmd/__init__": "", "cmd/delocate_wheel": _MAIN}.items():
        path = folder / "delocate" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return {**os.environ, "PYTHONPATH": str(folder)}


def _wheel(folder: Path) -> Path:
    folder.mkdir()
    with zipfile.ZipFile(folder / NAME, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("thing/big.so", CODE)
        wheel.writestr("thing-1.0.dist-info/RECORD", "")
    return folder / NAME


def _repair(tmp_path: Path, environ: dict[str, str], *exclude: str) -> Path:
    wheel = _wheel(tmp_path / "raw")
    log, output = tmp_path / "log", tmp_path / "out"
    return repair_wheel(wheel, python=Path(sys.executable), output=output, environ=environ, exclude=exclude, log=log)


@pytest.mark.parametrize(("pack", "kind"), [(NEW, zipfile.ZIP_STORED), (OLD, zipfile.ZIP_DEFLATED)])
def test_what_delocate_writes_is_stored_where_it_can_be(tmp_path: Path, pack: str, kind: int) -> None:
    repaired = _repair(tmp_path, _delocate(tmp_path / "site", pack))

    with zipfile.ZipFile(repaired) as wheel:
        assert repaired.name == NAME
        assert wheel.getinfo("thing/big.so").compress_type == kind
        assert wheel.read("thing/big.so") == CODE


def test_delocates_own_failure_is_said(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="cannot leave out"):
        _repair(tmp_path, _delocate(tmp_path / "site", NEW), "libtorch.dylib")


def test_a_finished_wheel_is_compressed_once_and_its_contents_do_not_depend_on_how_much(tmp_path: Path) -> None:
    repaired = _repair(tmp_path, _delocate(tmp_path / "site", NEW))
    made = {
        level: finish_wheel(repaired, output=tmp_path / str(level), epoch=10**9, bill={}, level=level)
        for level in (FAST, SMALL)
    }
    again = finish_wheel(
        repaired, output=tmp_path / "again", epoch=10**9, bill={}, level=FAST, previous=made[FAST].path
    )

    assert made[SMALL].size < made[FAST].size < repaired.stat().st_size
    assert again.sha256 == made[FAST].sha256
    contents = []
    for each in made.values():
        with zipfile.ZipFile(each.path) as wheel:
            contents.append({name: wheel.read(name) for name in wheel.namelist()})
    assert contents[0] == contents[1]
