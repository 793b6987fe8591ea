"""What lies beside a wheel, and in it, was made by strangers: read up to a bound, and never believed without a look."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from mps_build.common.errors import UsageError
from mps_build.common.json_text import parse_json
from mps_build.common.recipe.catalogue import find_recipe, patches_root
from mps_build.common.wheels.wheel_file import UnsoundWheel, open_wheel, read_wheel
from mps_build.publish.provenance.claims import read_receipt, recipe_checks, wheel_checks

NAME = "torch-2.6.0-cp311-cp311-macosx_14_0_arm64.whl"
BILL = "torch-2.6.0.dist-info/sboms/mps-build.cdx.json"
LARGE = 64 << 20


def wheel_of(folder: Path, files: dict[str, bytes]) -> Path:
    path = folder / NAME
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def receipt_of(folder: Path, **changes: object) -> dict[str, object]:
    said = {"wheel": {}, "recipe": {}, "patches": {}, "submodules": {}, "dirty": [], "profile": "release", **changes}
    path = folder / "receipt.json"
    path.write_text(json.dumps(said), encoding="utf-8")
    return read_receipt(folder / NAME, path)


@pytest.mark.parametrize("member", ["torch-2.6.0.dist-info/METADATA", BILL])
def test_publish_index_reads_no_member_without_bound(member: str, tmp_path: Path) -> None:
    metadata = b"Name: torch\nVersion: 2.6.0\n"
    path = wheel_of(tmp_path, {"torch-2.6.0.dist-info/METADATA": metadata, member: metadata + b" " * LARGE})

    with pytest.raises(UsageError, match=r"more than 8388608 bytes"):
        read_wheel(path)


@pytest.mark.parametrize("member", ["torch/version.py", BILL])
def test_verify_provenance_reads_no_member_without_bound(member: str, tmp_path: Path) -> None:
    path = wheel_of(tmp_path, {member: b" " * LARGE})

    with pytest.raises(UsageError, match=r"more than 8388608 bytes"):
        wheel_checks(path, receipt_of(tmp_path))


def test_a_directory_of_a_million_members_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / NAME
    entry = struct.pack("<4s6H3L5H2L", b"PK\1\2", *[0] * 6, *[0] * 3, 8, *[0] * 4, 0, 0) + b"12345678"
    data = entry * 1_000_000
    end = struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, 1_000_000, 1_000_000, len(data), 0)
    end += struct.pack("<4sLQL", b"PK\6\7", 0, len(data), 1)
    path.write_bytes(data + end + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0))

    with pytest.raises(UnsoundWheel, match="1000000 members"), open_wheel(path):
        pass


def _cut(data: bytes) -> bytes:
    return data[:-30]


def _encrypted(data: bytes) -> bytes:
    at = data.index(b"PK\1\2")
    return data[:at] + data[at : at + 8] + b"\1\0" + data[at + 10 :]


def _other_method(data: bytes) -> bytes:
    at = data.index(b"PK\1\2")
    return data[: at + 10] + b"\x63\0" + data[at + 12 :]


def _damaged(data: bytes) -> bytes:
    return data[:60] + b"\xff" * 20 + data[80:]


@pytest.mark.parametrize("spoil", [_cut, _encrypted, _other_method, _damaged])
def test_a_spoiled_wheel_is_a_usage_error(spoil: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = wheel_of(tmp_path, {"torch-2.6.0.dist-info/METADATA": bytes(range(256)) * 4})
    path.write_bytes(spoil(path.read_bytes()))

    with pytest.raises(UsageError):
        read_wheel(path)


@pytest.mark.parametrize(
    "bill", ["[]", "1", '{"metadata": 1}', '{"components": [1]}', '{"components": [{}], "metadata": []}']
)
def test_a_bill_that_is_none_is_a_claim_that_does_not_hold(bill: str, tmp_path: Path) -> None:
    path = wheel_of(tmp_path, {BILL: bill.encode()})
    checks = {check.claim: check.holds for check in wheel_checks(path, receipt_of(tmp_path))}
    assert not checks["the wheel holds its bill of materials"]


def test_a_bill_with_endless_notes_is_read_at_once(tmp_path: Path) -> None:
    bill = {"metadata": {"component": {"pedigree": {"notes": "a" * 4_000_000}}}}
    path = wheel_of(tmp_path, {BILL: json.dumps(bill).encode()})
    assert wheel_checks(path, receipt_of(tmp_path))


@pytest.mark.parametrize("text", ["[" * 100_000, "[" * 100 + "]" * 100, '{"a":' * 5000 + "1" + "}" * 5000])
def test_a_deeply_nested_receipt_is_invalid(text: str, tmp_path: Path) -> None:
    path = tmp_path / "receipt.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be read"):
        read_receipt(tmp_path / NAME, path)


def test_json_has_no_half_surrogates() -> None:
    assert parse_json('{"\\ud800": ["\\udc00 \\ud83d\\ude00 \\\\ud800"]}') == {"?": ["? \U0001f600 \\ud800"]}


@pytest.mark.parametrize("missing", ["lifted", "settings"])
def test_a_receipt_that_lacks_them_proves_nothing_about_them(missing: str, tmp_path: Path) -> None:
    said: dict[str, object] = {"lifted": [], "settings": {}}
    recipe = find_recipe("v2.6.0")

    def claim(receipt: dict[str, object]) -> bool:
        checks = recipe_checks(receipt, recipe, patches_root=patches_root(), commit=None)
        return next(each.holds for each in checks if each.claim.startswith("as a release"))

    assert claim(receipt_of(tmp_path, **said))
    del said[missing]
    assert not claim(receipt_of(tmp_path, **said))
    assert not claim(receipt_of(tmp_path, **said, **{missing: "none"}))
