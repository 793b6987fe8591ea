"""check_mm on PyTorch's own files: 0 diagnostics on those of a release, and every injected mistake is found.

The tree is that of `nox -s rehearse -- v2.6.0`, or the one that MPS_BUILD_TREE_2_6_0 names.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mm_faults import FAULTS, MORE
from mps_build.common.cores import usable_cores
from mps_build.common.reporting import SilentReporter
from mps_build.common.workspace import work_folder
from mps_build.wheel_build.mm.check import Report, check_files, make_checker
from mps_build.wheel_build.mm.tree import read_tree

pytestmark = [pytest.mark.slow, pytest.mark.zig]


@pytest.fixture(scope="module")
def tree() -> Path:
    named = os.environ.get("MPS_BUILD_TREE_2_6_0")
    places = [Path(named)] if named else sorted((work_folder() / "rehearsal").glob("v2.6.0*/source"))
    found = next((place for place in places if (place / "aten/src/ATen/mps").is_dir()), None)
    if found is None:
        pytest.skip("no tree of 2.6.0: nox -s rehearse -- v2.6.0, or MPS_BUILD_TREE_2_6_0=…")
    return found.resolve()


def _check(tree: Path, files: list[Path], folder: Path) -> Report:
    checker = make_checker(read_tree(tree), target="13.0", folder=folder, reporter=SilentReporter())
    return check_files(checker, files, jobs=usable_cores(), reporter=SilentReporter())


def test_the_files_of_the_release_have_no_diagnostic(tree: Path, tmp_path: Path) -> None:
    files = sorted(path for each in ("mps", "native/mps") for path in (tree / "aten/src/ATen" / each).rglob("*.mm"))
    report = _check(tree, files, tmp_path)
    assert len(report.files) == 69
    assert report.diagnostics == ()
    assert report.unknown == ()
    assert report.cpu_seconds / len(files) < 5


def test_every_injected_mistake_is_found(tree: Path, tmp_path: Path) -> None:
    changed = {}
    for number, (name, file, old, new, _) in enumerate((*FAULTS, *MORE)):
        text = (tree / "aten/src/ATen" / file).read_text(encoding="utf-8")
        assert old in text, name
        path = tmp_path / f"{number:02}-{Path(file).name}"
        path.write_text(text.replace(old, new), encoding="utf-8")
        changed[name] = path
    report = _check(tree, list(changed.values()), tmp_path / "work")
    missed = [
        name
        for (name, *_, words), path in zip((*FAULTS, *MORE), changed.values(), strict=True)
        if not any(each.file == str(path) and words in each.text for each in report.diagnostics)
    ]
    assert missed == []
    assert len(changed) == len(FAULTS) + len(MORE) >= 45


def test_in_a_new_file_each_wrong_line_is_found_and_no_right_one(tree: Path, tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "fixtures" / "mm_faults.mm").read_text(encoding="utf-8")
    new = tmp_path / "New.mm"
    new.write_text(text, encoding="utf-8")
    wrong = {number for number, line in enumerate(text.splitlines(), start=1) if "// WRONG" in line}

    report = _check(tree, [new], tmp_path / "work")

    assert {each.line for each in report.diagnostics} == wrong
    assert len(wrong) == 59
