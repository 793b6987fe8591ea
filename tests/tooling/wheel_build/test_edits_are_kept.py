"""A tree of ours that somebody edited is never made anew under his hands."""

from __future__ import annotations

import os
from dataclasses import replace
from difflib import unified_diff
from pathlib import Path

import pytest
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import SourceError
from mps_build.common.receipts import Ledger
from mps_build.common.recipe.catalogue import find_recipe, recipes_root
from mps_build.common.recipe.embedded_source import materialise
from mps_build.common.reporter import SilentReporter
from mps_build.common.workspace import Workspace
from mps_build.wheel_build.artifacts import SourceTree
from mps_build.wheel_build.build_request import SourceRequest
from mps_build.wheel_build.steps.prepare_source import prepare_source


@pytest.fixture(name="request_")
def _request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourceRequest:
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    recipe = find_recipe("sample")
    embedded = materialise(recipes_root() / "sample", tmp_path / "embedded", expected=recipe.commit)
    return SourceRequest(recipe=recipe, origin="git", repository=str(embedded.url), commit=embedded.commit)


def _prepare(request: SourceRequest, folder: Path) -> SourceTree:
    workspace = Workspace(root=folder / "work")
    environ, quiet = fetch_environ(os.environ), SilentReporter()
    ledger = Ledger(workspace.receipts)
    return prepare_source(
        request, workspace=workspace, ledger=ledger, environ=environ, reporter=quiet, unchanged=False
    )[0]


def _patched(request: SourceRequest, root: Path, folder: Path) -> SourceRequest:
    listed = (root / "operators.txt").read_text(encoding="utf-8").splitlines(keepends=True)
    lines = unified_diff(listed, ["# patched\n", *listed], "a/operators.txt", "b/operators.txt")
    patch = folder / "mine.patch"
    patch.write_text("Description: a line more\n" + "".join(lines), encoding="utf-8")
    return replace(request, extra_patches=(patch,))


def test_another_patch_does_not_take_an_edit_back(request_: SourceRequest, tmp_path: Path) -> None:
    root = _prepare(request_, tmp_path).root
    edited = root / "csrc" / "core.cpp"
    before = edited.read_text(encoding="utf-8")
    edited.write_text(before + "// mine\n", encoding="utf-8")

    with pytest.raises(SourceError, match=r"was edited \(csrc/core.cpp\)") as caught:
        _prepare(_patched(request_, root, tmp_path), tmp_path)

    assert edited.read_text(encoding="utf-8").endswith("// mine\n")
    assert "git -C" in str(caught.value.hint)
    edited.write_text(before, encoding="utf-8")
    assert _prepare(_patched(request_, root, tmp_path), tmp_path).root == root
    assert "# patched" in (root / "operators.txt").read_text(encoding="utf-8")


def test_another_commit_does_not_take_an_edit_back(request_: SourceRequest, tmp_path: Path) -> None:
    root = _prepare(request_, tmp_path).root
    (root / "mine.txt").write_text("an untracked file of mine", encoding="utf-8")

    with pytest.raises(SourceError, match=r"was edited \(mine.txt\)"):
        _prepare(replace(request_, commit="0" * 40), tmp_path)

    assert (root / "mine.txt").is_file()


def test_a_tree_that_nobody_edited_is_made_anew(request_: SourceRequest, tmp_path: Path) -> None:
    root = _prepare(request_, tmp_path).root

    assert _prepare(_patched(request_, root, tmp_path), tmp_path).dirty == ()
