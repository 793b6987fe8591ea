"""The finished wheel: same inputs, same bytes; a bill of materials; a RECORD that is right."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import zipfile
from pathlib import Path

from mps_build.wheel_build.steps.finish_wheel import bill_of_materials, finish_wheel

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
