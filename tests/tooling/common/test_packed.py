"""What the wheel of the tool holds as one file is read as the folder that a clone has."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.common.packed import pack, packed_file, texts_of, unpack
from mps_build.common.recipe.catalogue import locks_root, recipes_root
from mps_build.simulation.builder.ninja_file import NATIVE
from mps_build.simulation.builder.source import mirrored
from mps_build.wheel_build.objc.model import DATA


@pytest.mark.parametrize("folder", [locks_root(), recipes_root() / "sample", NATIVE, DATA], ids=lambda path: path.name)
def test_a_folder_and_its_one_file_have_the_same_texts(folder: Path, tmp_path: Path) -> None:
    installed = tmp_path / folder.name
    packed_file(installed).write_text(pack(folder), encoding="utf-8")

    assert texts_of(installed) == texts_of(folder)
    made = mirrored(installed, tmp_path / "made")
    assert {path.relative_to(made): path.read_bytes() for path in made.rglob("*") if path.is_file()} == {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }


def test_hashes_that_begin_alike_are_not_packed_and_a_cut_one_needs_its_whole(tmp_path: Path) -> None:
    line = "a==1 \\\n    --hash=sha256:{}\n"
    same = "0" * 63
    (tmp_path / "a.txt").write_text(line.format(f"{same}1"))

    (tmp_path / "b.txt").write_text(line.format(f"{same}2"))
    with pytest.raises(ValueError, match="two hashes begin with 0000"):
        pack(tmp_path)
    (tmp_path / "b.txt").write_text("x\n## y\n")
    with pytest.raises(ValueError, match=r"b\.txt cannot be packed"):
        pack(tmp_path)
    with pytest.raises(ValueError, match="no hash begins with 0000"):
        unpack("## a.txt\n" + line.format(f"{same[:16]}…"))


def test_what_the_finder_leaves_in_a_clone_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("#pragma once\n")
    (tmp_path / ".DS_Store").write_bytes(b"\0\0\0\1Bud1\xff")

    assert texts_of(tmp_path) == {"a.h": "#pragma once\n"}


def test_a_folder_that_is_nowhere_is_not_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        texts_of(tmp_path / "native")
