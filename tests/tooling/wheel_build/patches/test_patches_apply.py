"""Patches: read strictly, tried on copies, applied all or none, never outside the tree."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

import pytest
from git_history import HEADER, ONE_TO_UNO
from mps_build.common.errors import PatchError
from mps_build.wheel_build.patches.apply import apply_patches

SEVEN_TO_SETTE = """\
--- a/src/numbers.txt
+++ b/src/numbers.txt
@@ -5,4 +5,4 @@
 five
 six
-seven
+sette
 eight
"""
NEW_FILE = """\
diff --git a/src/new.txt b/src/new.txt
new file mode 100644
--- /dev/null
+++ b/src/new.txt
@@ -0,0 +1,2 @@
+first
+second
"""
NUMBERS = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / "src").mkdir(parents=True)
    (root / "src/numbers.txt").write_text(NUMBERS)
    return root


@pytest.fixture
def series(tmp_path: Path) -> Path:
    folder = tmp_path / "patches"
    folder.mkdir()
    (folder / "uno.patch").write_text(HEADER + ONE_TO_UNO)
    (folder / "sette.patch").write_text(HEADER + SEVEN_TO_SETTE)
    (folder / "new.patch").write_text(HEADER + NEW_FILE)
    return folder


def test_a_series_is_applied_in_order_and_recorded_by_hash(tree: Path, series: Path) -> None:
    patched = apply_patches(tree, ["uno.patch", "sette.patch", "new.patch"], patches_root=series)

    changed = NUMBERS.replace("one", "uno").replace("seven", "sette")
    assert (tree / "src/numbers.txt").read_text() == changed
    assert (tree / "src/new.txt").read_text() == "first\nsecond\n"
    assert not patched.already
    assert patched.patches[0].sha256 == hashlib.sha256((series / "uno.patch").read_bytes()).hexdigest()
    assert patched.files["src/numbers.txt"] == hashlib.sha256(changed.encode()).hexdigest()
    assert sorted(path.name for path in tree.iterdir()) == ["src"]


def test_a_series_that_is_there_already_is_recognised_and_changes_nothing(tree: Path, series: Path) -> None:
    names = ["uno.patch", "sette.patch", "new.patch"]
    first = apply_patches(tree, names, patches_root=series)
    stamp = (tree / "src/numbers.txt").stat().st_mtime_ns

    again = apply_patches(tree, names, patches_root=series)

    assert again.already
    assert again.files == first.files
    assert (tree / "src/numbers.txt").stat().st_mtime_ns == stamp


def test_an_empty_series_is_fine(tree: Path, series: Path) -> None:
    assert apply_patches(tree, [], patches_root=series).patches == ()


def test_a_later_patch_that_does_not_fit_leaves_the_tree_untouched(tree: Path, series: Path) -> None:
    (tree / "src/numbers.txt").write_text(NUMBERS.replace("six", "SIX"))

    with pytest.raises(PatchError) as caught:
        apply_patches(tree, ["uno.patch", "sette.patch"], patches_root=series)

    assert "sette.patch does not fit: hunk 1 of src/numbers.txt, at line 5" in str(caught.value)
    assert "    -seven\n    +sette" in str(caught.value)
    assert caught.value.document["hunk"] == {"file": "src/numbers.txt", "line": 5}
    assert (tree / "src/numbers.txt").read_text() == NUMBERS.replace("six", "SIX")


def test_the_hunk_that_failed_is_named_and_not_the_first_one(tree: Path, series: Path) -> None:
    (series / "both.patch").write_text(HEADER + ONE_TO_UNO + "".join(SEVEN_TO_SETTE.splitlines(keepends=True)[2:]))
    (tree / "src/numbers.txt").write_text(NUMBERS.replace("seven", "7"))

    with pytest.raises(PatchError, match=r"hunk 2 of src/numbers\.txt, at line 5"):
        apply_patches(tree, ["both.patch"], patches_root=series)


def test_a_missing_file_is_named(tree: Path, series: Path) -> None:
    (tree / "src/numbers.txt").unlink()

    with pytest.raises(PatchError, match=r"uno\.patch does not fit: .*src/numbers\.txt: No such file"):
        apply_patches(tree, ["uno.patch"], patches_root=series)


def test_a_series_that_is_there_in_part_is_an_error(tree: Path, series: Path) -> None:
    apply_patches(tree, ["uno.patch"], patches_root=series)

    with pytest.raises(PatchError, match=r"only some of the patches: uno\.patch yes, sette\.patch no"):
        apply_patches(tree, ["uno.patch", "sette.patch"], patches_root=series)

    assert "seven" in (tree / "src/numbers.txt").read_text()


def test_patches_apply_inside_a_repository_below_its_root(tree: Path, series: Path) -> None:
    """There, a plain `git apply` passes over the files and says success."""
    subprocess.run(["git", "init", "-q", str(tree.parent)], check=True)

    apply_patches(tree, ["uno.patch"], patches_root=series)

    assert (tree / "src/numbers.txt").read_text().startswith("uno\n")


def test_git_configuration_of_the_user_changes_nothing(
    tree: Path, series: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[apply]\n whitespace = error-all\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    (series / "spaces.patch").write_text(HEADER + ONE_TO_UNO.replace("+uno", "+uno   "))

    apply_patches(tree, ["spaces.patch"], patches_root=series)

    assert (tree / "src/numbers.txt").read_text().startswith("uno   \n")


@pytest.mark.parametrize(
    "target",
    ["../outside.txt", "src/../../outside.txt", "/etc/outside.txt", "/outside.txt", ".git/config", "src\\..\\x"],
)
def test_a_patch_that_reaches_outside_the_tree_is_refused(tree: Path, series: Path, target: str) -> None:
    name = target if target.startswith("/") else f"b/{target}"
    (series / "out.patch").write_text(f"{HEADER}--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+injected\n")

    with pytest.raises(PatchError, match="would reach outside the tree"):
        apply_patches(tree, ["out.patch"], patches_root=series)

    assert not (tree.parent / "outside.txt").exists()


def test_a_patch_is_not_written_through_a_symbolic_link(tree: Path, series: Path) -> None:
    outside = tree.parent / "elsewhere"
    (tree / "src").rename(outside)
    (tree / "src").symlink_to(outside)

    with pytest.raises(PatchError, match="is a symbolic link to"):
        apply_patches(tree, ["uno.patch"], patches_root=series)

    assert (outside / "numbers.txt").read_text() == NUMBERS


def test_a_patch_that_makes_a_symbolic_link_is_refused(tree: Path, series: Path) -> None:
    (series / "link.patch").write_text(HEADER + NEW_FILE.replace("100644", "120000"))

    with pytest.raises(PatchError, match="symbolic links and submodules are not patched"):
        apply_patches(tree, ["link.patch"], patches_root=series)


def test_a_run_that_was_killed_while_replacing_files_is_finished_by_the_next(tree: Path, series: Path) -> None:
    names = ["uno.patch", "new.patch"]
    other = tree.parent / "other"
    (other / "src").mkdir(parents=True)
    (other / "src/numbers.txt").write_text(NUMBERS)
    whole = apply_patches(other, names, patches_root=series)
    stage = tree / ".mps-build-patching"
    (stage / "src").mkdir(parents=True)
    (tree / "src/new.txt").write_bytes((other / "src/new.txt").read_bytes())  # moved before the kill
    (stage / "src/numbers.txt").write_bytes((other / "src/numbers.txt").read_bytes())  # not yet
    before = hashlib.sha256(NUMBERS.encode()).hexdigest()
    plan = {
        "src/new.txt": {"before": None, "after": whole.files["src/new.txt"]},
        "src/numbers.txt": {"before": before, "after": whole.files["src/numbers.txt"]},
    }
    (stage / "plan.json").write_text(json.dumps(plan))

    patched = apply_patches(tree, names, patches_root=series)

    assert patched.already
    assert patched.files == whole.files
    assert not stage.exists()


@pytest.mark.parametrize("already", [False, True])
def test_a_stage_without_a_plan_is_cleared(tree: Path, series: Path, already: bool) -> None:
    if already:
        apply_patches(tree, ["uno.patch"], patches_root=series)
    (tree / ".mps-build-patching/src").mkdir(parents=True)
    (tree / ".mps-build-patching/src/numbers.txt").write_text("half a fi")

    apply_patches(tree, ["uno.patch"], patches_root=series)

    assert (tree / "src/numbers.txt").read_text().startswith("uno\ntwo\n")
    assert not (tree / ".mps-build-patching").exists()


def test_a_file_changed_by_another_between_kill_and_resume_is_not_overwritten(tree: Path, series: Path) -> None:
    (tree / ".mps-build-patching").mkdir()
    plan = {"src/numbers.txt": {"before": "0" * 64, "after": "1" * 64}}
    (tree / ".mps-build-patching/plan.json").write_text(json.dumps(plan))

    with pytest.raises(PatchError, match=r"numbers\.txt was changed while patches were being applied"):
        apply_patches(tree, ["uno.patch"], patches_root=series)

    assert (tree / "src/numbers.txt").read_text() == NUMBERS


def test_a_patch_can_remove_a_file(tree: Path, series: Path) -> None:
    body = "".join(f"-{line}\n" for line in NUMBERS.splitlines())
    (series / "gone.patch").write_text(f"{HEADER}--- a/src/numbers.txt\n+++ /dev/null\n@@ -1,8 +0,0 @@\n{body}")

    patched = apply_patches(tree, ["gone.patch"], patches_root=series)

    assert patched.files == {"src/numbers.txt": None}
    assert not (tree / "src/numbers.txt").exists()
    assert apply_patches(tree, ["gone.patch"], patches_root=series).already


def test_a_patch_that_makes_a_file_executable_beside_changing_another_does_both(tree: Path, series: Path) -> None:
    (tree / "src/tool.sh").write_text("true\n")
    mode = "diff --git a/src/tool.sh b/src/tool.sh\nold mode 100644\nnew mode 100755\n"
    (series / "mode.patch").write_text(HEADER + mode + ONE_TO_UNO)

    apply_patches(tree, ["mode.patch"], patches_root=series)

    assert (tree / "src/tool.sh").stat().st_mode & 0o111
    assert (tree / "src/numbers.txt").read_text().startswith("uno\n")


@pytest.mark.parametrize(("target", "kind"), [("src", "folder"), ("src/numbers.txt/x", "file")])
def test_a_folder_where_a_patch_wants_a_file_is_reported(tree: Path, series: Path, target: str, kind: str) -> None:
    (series / "kind.patch").write_text(f"{HEADER}--- /dev/null\n+++ b/{target}\n@@ -0,0 +1 @@\n+x\n")

    with pytest.raises(PatchError, match=f"is a {kind}"):
        apply_patches(tree, ["kind.patch"], patches_root=series)


@pytest.mark.parametrize("moves", range(5))
def test_wherever_replacing_stops_the_next_run_ends_with_the_same_tree(
    tree: Path, series: Path, moves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["uno.patch", "sette.patch", "new.patch"]
    wanted = {
        "src/numbers.txt": NUMBERS.replace("one", "uno").replace("seven", "sette"),
        "src/new.txt": "first\nsecond\n",
    }
    real, left = Path.replace, iter(range(moves))

    def stopping(self: Path, target: Path) -> Path:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return real(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", stopping)
        if moves < 3:  # the plan, then two files
            with pytest.raises(KeyboardInterrupt):
                apply_patches(tree, names, patches_root=series)
        else:
            apply_patches(tree, names, patches_root=series)

    apply_patches(tree, names, patches_root=series)

    found = {str(path.relative_to(tree)): path.read_text() for path in tree.rglob("*") if path.is_file()}
    assert found == wanted


def test_a_users_own_patch_needs_no_header(tree: Path, series: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.diff"
    mine.write_text("From: me\nSubject: anything\n---\n" + ONE_TO_UNO)

    patched = apply_patches(tree, ["sette.patch"], patches_root=series, extra=[mine])

    assert [patch.name for patch in patched.patches] == ["sette.patch", "mine.diff"]
