"""The loader's parser of Mach-O files, compiled for this machine: what it reads, and that damage is an error."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from mps_build.simulation.official.build import LOADER
from small_images import ARM64, DATA, small_image, universal

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler for this machine")
_SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
_SAID = """\
segment __TEXT 5
segment __DATA 3
segment __LINKEDIT 1
library /usr/lib/libSystem.B.dylib
{fixups}called _malloc
export 0x800
others 0 0
"""
_CHAINED = "rebase 0x1000 0x800\nbind 0x1008 _malloc 1 0\nbind 0x1010 _environ -2 16\n"
_OPCODES = "rebase 0x1000 0x800\nbind 0x1010 _environ -2 16\nbind 0x1008 _malloc 1 0\n"


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("parser") / "probe"
    sources = [
        str(Path(__file__).with_name("parse_probe.c")),
        *(str(LOADER / name) for name in ("parse.c", "fixups.c")),
    ]
    flags = ("-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror")
    for more in (_SANITIZERS, ()):  # a compiler may come without its sanitizers
        answer = subprocess.run(
            ["cc", *flags, *more, "-o", str(made), *sources], check=False, capture_output=True, text=True
        )
        if answer.returncode == 0:
            return made
    raise AssertionError(answer.stderr)


def _describe(probe: Path, folder: Path, data: bytes) -> str:
    (folder / "image").write_bytes(data)
    return subprocess.run(
        [str(probe), "describe", str(folder / "image")], check=False, capture_output=True, text=True
    ).stdout


def test_both_kinds_of_fixups_say_the_same(probe: Path, tmp_path: Path) -> None:
    assert _describe(probe, tmp_path, small_image()) == _SAID.format(fixups=_CHAINED)
    assert _describe(probe, tmp_path, small_image(chained=False)) == _SAID.format(fixups=_OPCODES)
    assert _describe(probe, tmp_path, universal(small_image())) == _SAID.format(fixups=_CHAINED)


def test_what_is_not_for_this_loader_is_named(probe: Path, tmp_path: Path) -> None:
    writable_code = bytearray(small_image())
    writable_code[32 + 60] = 7
    far = bytearray(small_image())
    far[DATA : DATA + 8] = struct.pack("<Q", 1 << 63 | 9)

    rows = {
        b"": "not a 64-bit Mach-O",
        small_image(processor=0x01000007): "not for arm64",
        small_image(file_type=2): "neither a library nor a bundle",
        small_image()[:600]: "exceed the file",
        small_image()[:0x1800]: "lies outside of the file",
        bytes(writable_code): "may be written and executed",
        bytes(far): "names an import that is not there",
        universal(small_image())[:0x2000]: "lies outside of the file",
        universal(small_image()).replace(struct.pack(">I", ARM64), bytes(4)): "without an arm64 part",
    }
    said = {wanted: _describe(probe, tmp_path, data) for data, wanted in rows.items()}
    assert [wanted for wanted, text in said.items() if wanted not in text] == []


def _damaged(probe: Path, folder: Path, count: int) -> None:
    for number, data in enumerate((small_image(), small_image(chained=False), universal(small_image()))):
        (folder / "image").write_bytes(data)
        argv = [str(probe), "damage", str(folder / "image"), str(2026 + number), str(count)]
        answer = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=600)
        assert answer.returncode == 0, answer.stderr[-2000:]
        refused = int(answer.stdout.split()[0])
        assert 0 < refused < count  # some damage is harmless, some is seen


def test_a_damaged_file_is_an_error_and_never_a_crash(probe: Path, tmp_path: Path) -> None:
    _damaged(probe, tmp_path, 500)


@pytest.mark.slow
def test_twenty_thousand_damaged_files_are_errors(probe: Path, tmp_path: Path) -> None:
    _damaged(probe, tmp_path, 20_000)
