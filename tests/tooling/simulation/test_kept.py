"""What a simulation loads into a program's process is what it made: not cut off, not changed, not another user's."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
from mps_build.common.errors import UsageError
from mps_build.common.reporting import SilentReporter
from mps_build.simulation.builder import build as builder
from mps_build.simulation.builder.root import LIBRARY
from mps_build.simulation.kept import digests, drop_damaged_libraries, own_cache
from mps_build.simulation.session import check_line

OTHER_USER = 12345
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


class _Lines(SilentReporter):
    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)


def _built(folder: Path) -> tuple[Path, Path]:
    kernels = folder / "kernels"
    kernels.mkdir(parents=True)
    (kernels / "metal_basic.kernels").write_bytes(b"code")
    (folder / LIBRARY).write_bytes(b"an ELF file")
    facts = {"kernels": str(kernels), "sha256": digests([folder / LIBRARY, kernels / "metal_basic.kernels"])}
    (folder / "built.json").write_text(json.dumps(facts))
    return folder / LIBRARY, kernels / "metal_basic.kernels"


def test_what_is_as_it_was_built_is_kept_in_silence(tmp_path: Path) -> None:
    library, kernels = _built(tmp_path / "build")

    assert builder._drop_damaged(tmp_path / "build", reporter := _Lines())
    assert (library.exists(), kernels.exists(), reporter.lines) == (True, True, [])


@pytest.mark.parametrize("which", [0, 1], ids=["library", "kernels"])
@pytest.mark.parametrize("damage", ["cut off", "changed", "gone", "link", pytest.param("foreign", marks=as_root)])
def test_a_file_that_is_not_what_was_built_is_made_again_and_reported(tmp_path: Path, damage: str, which: int) -> None:
    path = _built(tmp_path / "build")[which]
    if damage == "foreign":
        os.chown(path, OTHER_USER, OTHER_USER)
    elif damage == "link":
        (tmp_path / "elsewhere").write_bytes(path.read_bytes())
        path.unlink()
        path.symlink_to(tmp_path / "elsewhere")
    elif damage == "gone":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-1] if damage == "cut off" else b"x" + path.read_bytes()[1:])

    assert not builder._drop_damaged(tmp_path / "build", reporter := _Lines())

    assert not path.exists() and not path.is_symlink()
    assert len(reporter.lines) == 1 and str(path) in reporter.lines[0]


@as_root
def test_a_note_of_another_user_vouches_for_nothing(tmp_path: Path) -> None:
    library, _ = _built(tmp_path / "build")
    os.chown(tmp_path / "build" / "built.json", OTHER_USER, OTHER_USER)

    assert not builder._drop_damaged(tmp_path / "build", _Lines())
    assert not library.exists()


def test_compiled_metal_source_is_believed_by_the_hash_at_its_end(tmp_path: Path) -> None:
    data = b"\x7fELF code"
    whole = data + hashlib.sha256(data).hexdigest().encode()
    for name, content in {"good": whole, "cut": whole[:-3], "changed": b"x" + whole, "plain": data}.items():
        (tmp_path / f"{name}.so").write_bytes(content)

    (tmp_path / "folder.so" / "inner").mkdir(parents=True)

    drop_damaged_libraries(tmp_path, reporter := _Lines())

    assert [path.name for path in tmp_path.iterdir()] == ["good.so"]
    assert len(reporter.lines) == 4


def test_what_anybody_could_write_in_an_open_cache_goes(tmp_path: Path) -> None:
    cache = tmp_path / "simulation"
    for name, mode in {"mine": 0o644, "open": 0o666}.items():
        (cache / name).mkdir(parents=True)
        (cache / name / "a.so").write_bytes(b"")
        (cache / name / "a.so").chmod(mode)
    (cache / "mine" / "link").symlink_to("a.so")
    cache.chmod(0o777)

    own_cache(cache, reporter := _Lines())

    assert [path.name for path in cache.iterdir()] == ["mine"]
    assert "open to all" in reporter.lines[0]


@as_root
def test_what_others_put_into_an_open_cache_goes_and_the_folder_is_closed(tmp_path: Path) -> None:
    cache = tmp_path / "simulation"
    for name in ("builds/own", "metal/theirs"):
        (cache / name).mkdir(parents=True)
    (cache / "metal/theirs/a.so").write_bytes(b"")
    os.chown(cache / "metal/theirs/a.so", OTHER_USER, OTHER_USER)
    cache.chmod(0o777)

    own_cache(cache, reporter := _Lines())

    assert sorted(path.name for path in cache.iterdir()) == ["builds"]
    assert cache.stat().st_mode & 0o777 == 0o700
    assert "another user's" in reporter.lines[0]
    os.chown(cache, OTHER_USER, OTHER_USER)
    with pytest.raises(UsageError, match="belongs to another user"):
        own_cache(cache, reporter)


def test_a_folder_with_a_line_break_is_refused() -> None:
    with pytest.raises(UsageError, match="holds a line break"):
        check_line(Path("/a\nb"))
