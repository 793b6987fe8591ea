"""The finished wheel: same inputs, same bytes; a bill of materials; a RECORD that is right."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import sys
import zipfile
from pathlib import Path

import pytest
from mps_build.common.errors import CompileError
from mps_build.wheel_build.steps.finish_wheel import FAST, SMALL, bill_of_materials, finish_wheel, repair_wheel

BILL = bill_of_materials(
    name="torch",
    version="2.6.0+mps.g1eba9b3",
    commit="1" * 40,
    origin="https://example.org/pytorch.git",
    submodules={"third_party/fmt": "2" * 40},
    patches={"a.patch": "3" * 64},
    tools={"cmake": "3.31.6"},
    bundled={"libomp": f"21.1.8 {'4' * 64}"},
)
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


def _raw(path: Path, names: tuple[str, ...], when: tuple[int, int, int, int, int, int]) -> Path:
    with zipfile.ZipFile(path, "w") as wheel:
        for name in names:
            info = zipfile.ZipInfo(name, when)
            info.external_attr = (0o100775 if name.endswith("manager") else 0o100664) << 16
            wheel.writestr(info, f"content of {name}")
        wheel.writestr(zipfile.ZipInfo("torch-2.6.0.dist-info/RECORD", when), "old")
    return path


NAMES = ("torch/b.py", "torch/bin/torch_shm_manager", "torch/a.py", "torch-2.6.0.dist-info/METADATA")


def test_order_and_times_of_the_raw_wheel_do_not_show(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    first = finish_wheel(
        _raw(tmp_path / "t-1.whl", NAMES, (2026, 1, 1, 0, 0, 0)), output=tmp_path / "1", epoch=9, bill=BILL
    )
    raw = _raw(tmp_path / "x" / "t-1.whl", NAMES[::-1], (2025, 5, 5, 5, 5, 4))
    second = finish_wheel(raw, output=tmp_path / "2", epoch=9, bill=BILL)

    assert first.sha256 == second.sha256
    assert first.path.read_bytes() == second.path.read_bytes()
    assert hashlib.sha256(first.path.read_bytes()).hexdigest() == first.sha256
    assert first.path.stat().st_size == first.size


def test_the_record_lists_every_member_with_its_hash(tmp_path: Path) -> None:
    wheel = finish_wheel(
        _raw(tmp_path / "t-1.whl", NAMES, (2026, 1, 1, 0, 0, 0)), output=tmp_path / "1", epoch=9, bill=BILL
    )

    with zipfile.ZipFile(wheel.path) as file:
        rows = list(csv.reader(file.read("torch-2.6.0.dist-info/RECORD").decode().splitlines()))
        assert [row[0] for row in rows] == file.namelist()
        assert rows[-1] == ["torch-2.6.0.dist-info/RECORD", "", ""]
        for name, digest, size in rows[:-1]:
            data = file.read(name)
            encoded = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (digest, size) == (f"sha256={encoded}", str(len(data)))


def test_programs_stay_executable_and_nothing_else_is(tmp_path: Path) -> None:
    wheel = finish_wheel(
        _raw(tmp_path / "t-1.whl", NAMES, (2026, 1, 1, 0, 0, 0)), output=tmp_path / "1", epoch=9, bill=BILL
    )

    with zipfile.ZipFile(wheel.path) as file:
        modes = {info.filename: info.external_attr >> 16 & 0o777 for info in file.infolist()}
    assert modes.pop("torch/bin/torch_shm_manager") == 0o755
    assert set(modes.values()) == {0o644}


def test_the_bill_names_commit_submodules_patches_and_bundled_libraries(tmp_path: Path) -> None:
    wheel = finish_wheel(
        _raw(tmp_path / "t-1.whl", NAMES, (2026, 1, 1, 0, 0, 0)), output=tmp_path / "1", epoch=9, bill=BILL
    )

    with zipfile.ZipFile(wheel.path) as file:
        bill = json.loads(file.read("torch-2.6.0.dist-info/sboms/mps-build.cdx.json"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert {each["name"]: each["version"] for each in bill["components"]} == {
        "third_party/fmt": "2" * 40,
        "libomp": "21.1.8",
    }
    assert "a.patch" in json.dumps(bill["metadata"]["component"]["pedigree"])
    assert set(bill["dependencies"][0]["dependsOn"]) == {each["bom-ref"] for each in bill["components"]}


# delocate as it is called: with its own arguments, and with its output stored, since finish_wheel compresses it.


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
