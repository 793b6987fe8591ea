"""A patch file read strictly: its header, its hunks, what git would read otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest
from git_history import HEADER, ONE_TO_UNO
from mps_build.common.errors import PatchError
from mps_build.common.recipe.catalogue import patches_root
from mps_build.wheel_build.patches.file import read_patch


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (ONE_TO_UNO.replace("\n", "\r\n"), "CRLF"),
        (ONE_TO_UNO.replace("diff --git a/src/numbers.txt", "diff --git a/../numbers.txt"), "outside the tree"),
        (ONE_TO_UNO.replace("a/", "").replace("b/", ""), "lacks its a/ or b/"),
        ('--- "a/f"\n+++ "b/\\056\\056/x"\n@@ -1 +1 @@\n-a\n+b\n', "outside the tree"),
        ("diff --git a/x b/x\nGIT binary patch\nliteral 3\n", "binary patches are not read"),
        ("diff --git a/x b/../y\nsimilarity index 100%\nrename from x\nrename to ../y\n", "outside the tree"),
    ],
)
def test_what_git_would_read_otherwise_than_we_do_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    path = tmp_path / "x.patch"
    path.write_text(HEADER + text, newline="")

    with pytest.raises(PatchError, match=fault):
        read_patch(path)


@pytest.mark.parametrize(
    ("header", "fault"),
    [
        ("Origin: x\nForwarded: no\nFixes: none\n\n", "the header lacks Description"),
        (HEADER.replace("Fixes: none", "Fixes: soon"), "Fixes must be ids"),
        (HEADER.replace("Fixes: none", "Fixes: none\nFixes: B1"), "Fixes is given two times"),
        (HEADER.replace("Fixes: none", "Fixes: none\nAuthor: x"), "unknown header field 'Author'"),
        (HEADER.replace("\n\n", "\nsome prose\n\n"), "is not a header field"),
    ],
)
def test_a_header_is_read_strictly(tmp_path: Path, header: str, fault: str) -> None:
    path = tmp_path / "x.patch"
    path.write_text(header + ONE_TO_UNO)

    with pytest.raises(PatchError, match=fault):
        read_patch(path)


def test_a_header_field_goes_on_in_lines_that_start_with_a_space(tmp_path: Path) -> None:
    path = tmp_path / "x.patch"
    path.write_text(HEADER.replace("a test\n", "a test\n of two lines\n").replace("none", "B26, B27") + ONE_TO_UNO)

    patch = read_patch(path)

    assert patch.description == "a test\nof two lines"
    assert patch.fixes == ("B26", "B27")


@pytest.mark.parametrize("cut", [" four\n", "+uno\n"])
def test_a_hunk_that_is_shorter_than_it_says_is_refused(tmp_path: Path, cut: str) -> None:
    path = tmp_path / "x.patch"
    path.write_text(HEADER + ONE_TO_UNO.replace(cut, ""))

    with pytest.raises(PatchError, match="does not have the number of lines"):
        read_patch(path)


def test_a_file_without_a_diff_is_no_patch(tmp_path: Path) -> None:
    path = tmp_path / "x.patch"
    path.write_text(HEADER)

    with pytest.raises(PatchError, match="holds no hunk"):
        read_patch(path)


def test_every_patch_of_ours_can_be_read_and_touches_a_file() -> None:
    for path in sorted(patches_root().glob("*.patch")):
        assert read_patch(path).files, path.name
