"""Companions: which torch, which source, what is refused, what the wheels pin, and that wrong answers are seen."""

from __future__ import annotations

import json
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from git_history import ENVIRON, git, repository
from mps_build.common.errors import SourceError, UsageError
from mps_build.common.receipts import Ledger, fingerprint
from mps_build.common.recipe.catalogue import all_recipes, find_recipe
from mps_build.common.reporting import SilentReporter
from mps_build.common.workspace import Workspace
from mps_build.wheel_build.companions.build import Sources, pin_torch
from mps_build.wheel_build.companions.plan import (
    PROJECTS,
    SourceChoice,
    built_wheel,
    check_choice,
    check_tree,
    chosen_companions,
    copy_tree,
    given_wheel,
    has_mps_kernels,
    parse_sources,
    tree_digest,
)
from small_wheels import MAC, RECIPE, plan, torch_wheel, vision_tree

# What a wheel demands of torch.


@pytest.mark.parametrize(
    "demand", ["torch", "torch==2.6.0", "torch (==2.6.0)", "Torch >= 2.5", "torch==2.6.0; python_version >= '3.9'"]
)
def test_any_demand_for_torch_becomes_the_exact_one(demand: str) -> None:
    text = f"Name: torchvision\nRequires-Dist: numpy\nRequires-Dist: {demand}\n\nRequires-Dist: torch in the text\n"

    pinned = pin_torch(text, "2.6.0+mps.g1eba9b3")

    assert pinned == (
        "Name: torchvision\nRequires-Dist: numpy\nRequires-Dist: torch==2.6.0+mps.g1eba9b3\n\n"
        "Requires-Dist: torch in the text\n"
    )


def test_a_wheel_that_asks_for_no_torch_is_pinned_too_and_others_demands_stay() -> None:
    text = "Name: torchaudio\r\nRequires-Dist: torchcodec; extra == 'all'\r\nRequires-Dist: torch_x\r\n"

    pinned = pin_torch(text, "2.11.0+mps.gabc")

    assert pinned.splitlines()[1:] == [
        "Requires-Dist: torchcodec; extra == 'all'",
        "Requires-Dist: torch_x",
        "Requires-Dist: torch==2.11.0+mps.gabc",
    ]


# Which torch.


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("torch-2.5.1-cp312-none-macosx_11_0_arm64.whl", "is torch 2.5.1; v2.6.0 and its companions are of 2.6.0"),
        ("torch-2.6.0-cp38-cp38-macosx_13_0_arm64.whl", "is for Python 3.8; v2.6.0 is for 3.9, 3.10"),
        ("torch-2.6.0-cp313-cp313t-macosx_13_0_arm64.whl", "is for Python 3.13t"),
        ("torch-2.6.0-cp312-cp312-linux_x86_64.whl", "is for linux_x86_64; required: one for macOS on arm64"),
        ("torch-2.6.0-cp312-cp312-macosx_13_0_x86_64.whl", "is for macosx_13_0_x86_64"),
        ("torch-2.6.0-cp312-cp312-win_amd64.whl", "is for win_amd64"),
        ("torchvision-0.21.0-cp312-cp312-macosx_13_0_arm64.whl", "is a wheel of torchvision"),
        ("torch-2.6.0.whl", "Invalid wheel filename"),
    ],
)
def test_a_torch_that_does_not_fit_is_refused_by_its_name(tmp_path: Path, name: str, said: str) -> None:
    path = tmp_path / name
    zipfile.ZipFile(path, "w").close()

    with pytest.raises(UsageError) as raised:
        given_wheel(path, RECIPE, python=None, system="macos")

    assert said in str(raised.value)
    assert raised.value.hint


def test_every_reason_against_a_torch_is_said_at_once(tmp_path: Path) -> None:
    path = tmp_path / "torch-2.5.1-cp38-cp38-linux_x86_64.whl"
    path.write_bytes(b"cut off")

    with pytest.raises(UsageError) as raised:
        given_wheel(path, RECIPE, python="3.12", system="macos")

    assert all(said in str(raised.value) for said in ("2.5.1", "linux_x86_64", "Python 3.8", "not a complete zip file"))


def test_a_torch_for_another_python_than_requested_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is for Python 3.12, --python asks for 3.11"):
        given_wheel(torch_wheel(tmp_path), RECIPE, python="3.11", system="macos")


def _deliver(receipts: Path, wheel: Path, *, started: str, profile: str = "release") -> None:
    receipts.mkdir(exist_ok=True)
    outputs = [{"path": str(wheel), **fingerprint(wheel)}, {"path": f"{wheel}.receipt.json", "size": 1, "sha256": ""}]
    document = {"started": started, "outputs": outputs}
    (receipts / f"deliver_wheel-{profile}-3.12.json").write_text(json.dumps(document))


def test_the_torch_is_the_one_that_was_delivered_last_and_is_still_there(tmp_path: Path) -> None:
    older = torch_wheel(tmp_path / "a")
    newer = torch_wheel(tmp_path / "b", "torch-2.6.0+mps.gfffffff.dirty-cp312-cp312-macosx_13_0_arm64.whl")
    _deliver(tmp_path / "receipts", older, started="2026-11-20T10:00:00+00:00")
    _deliver(tmp_path / "receipts", newer, started="2026-11-21T10:00:00+00:00", profile="develop")

    def found() -> Path:
        return built_wheel(RECIPE, python="3.12", receipts=tmp_path / "receipts", wheelhouse=tmp_path / "no").path

    assert found() == newer
    newer.write_bytes(newer.read_bytes() + b"changed")
    assert found() == older


def test_without_receipts_the_wheelhouse_is_looked_at_and_two_torches_are_not_guessed_between(tmp_path: Path) -> None:
    def look() -> Path:
        return built_wheel(RECIPE, python="3.12", receipts=tmp_path / "none", wheelhouse=tmp_path / "wheelhouse").path

    with pytest.raises(UsageError, match=r"no torch of v2.6.0 for Python 3.12 has been built") as raised:
        look()
    assert "nox -s build_wheel -- v2.6.0 --python 3.12" in (raised.value.hint or "")
    for name in (MAC, "torch-2.6.0+mps.gfffffff-cp312-cp312-macosx_13_0_arm64.whl"):
        wheel = torch_wheel(tmp_path / "wheelhouse", name)
        receipt = {"recipe": {"version": "2.6.0"}, "python": "3.12"}
        wheel.with_name(f"{name}.receipt.json").write_text(json.dumps(receipt))
        if name == MAC:
            assert look() == wheel
    other = tmp_path / "wheelhouse" / "torch-2.5.1-cp312-none-macosx_11_0_arm64.whl.receipt.json"
    other.write_text(json.dumps({"recipe": {"version": "2.5.1"}, "python": "3.12"}))

    with pytest.raises(UsageError, match=r"holds 2 torch wheels"):
        look()


# Which source.


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["torchvision"], "is not NAME=PATH"),
        (["torchvision="], "is not NAME=PATH"),
        (["torchtext=/x"], "'torchtext' is not built here"),
        (["torchvision=/no/such/place"], "nothing is there"),
        (["torchvision=https://a.example/a.git", "torchvision=https://b.example/b.git"], "names torchvision two times"),
    ],
)
def test_a_source_that_cannot_be_is_refused(given: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_sources(given, ["torchvision", "torchaudio"])


def test_a_companion_that_no_source_names_comes_from_its_tag(tmp_path: Path) -> None:
    chosen = parse_sources([f"torchvision={tmp_path}"], ["torchvision", "torchaudio"])

    assert chosen["torchvision"] == SourceChoice(kind="folder", place=str(tmp_path))
    assert chosen["torchaudio"] == SourceChoice(kind="git", place="https://github.com/pytorch/audio.git")


def test_a_tree_of_another_version_or_project_is_refused(tmp_path: Path) -> None:
    tree = vision_tree(tmp_path / "vision", "0.20.1")

    with pytest.raises(SourceError, match=r"is torchvision 0\.20\.1; the recipe's companion is 0\.21\.0"):
        check_tree(tree, PROJECTS["torchvision"], wanted="0.21.0")
    with pytest.raises(SourceError, match=r"not torchaudio's source: .* \(it is torchvision's\)"):
        check_tree(tree, PROJECTS["torchaudio"], wanted="2.6.0")
    (tree / "version.txt").write_text("")
    with pytest.raises(SourceError, match="does not state its version"):
        check_tree(tree, PROJECTS["torchvision"], wanted="0.21.0")


def test_a_tag_that_still_says_alpha_is_its_release(tmp_path: Path) -> None:
    tree = vision_tree(tmp_path / "vision", "0.21.0a0")

    check_tree(tree, PROJECTS["torchvision"], wanted="0.21.0")


def test_a_tarball_is_looked_into_before_anything_is_done(tmp_path: Path) -> None:
    tarball = tmp_path / "vision.tar.gz"
    with tarfile.open(tarball, "w:gz") as archive:
        archive.add(vision_tree(tmp_path / "tree", "0.19.1"), "vision-0.19.1")
    choice = SourceChoice(kind="tarball", place=str(tarball))

    with pytest.raises(SourceError, match=r"is torchvision 0\.19\.1"):
        check_choice(choice, PROJECTS["torchvision"], wanted="0.21.0")
    tarball.write_bytes(tarball.read_bytes()[:50])
    with pytest.raises(SourceError, match="cannot be unpacked"):
        check_choice(choice, PROJECTS["torchvision"], wanted="0.21.0")


def test_what_earlier_builds_left_is_neither_copied_nor_part_of_the_digest(tmp_path: Path) -> None:
    tree = vision_tree(tmp_path / "vision")
    before = tree_digest(tree)
    for left in ("build/x.o", "dist/old.whl", "torchvision/_C.so", "torchvision.egg-info/PKG-INFO", ".mps-build-fetch"):
        (tree / left).parent.mkdir(exist_ok=True)
        (tree / left).write_text("stale")
    (tree / "tools" / "build").mkdir(parents=True)
    (tree / "tools" / "build" / "kept.py").write_text("")

    copy_tree(tree, tmp_path / "copy")

    copied = {
        path.relative_to(tmp_path / "copy").as_posix() for path in (tmp_path / "copy").rglob("*") if path.is_file()
    }
    assert copied == {"setup.py", "version.txt", "torchvision/__init__.py", "tools/build/kept.py"}
    (tree / "tools" / "build" / "kept.py").unlink()
    assert tree_digest(tree) == before
    (tree / "setup.py").write_text("changed")
    assert tree_digest(tree) != before


def test_mps_kernels_are_found_in_the_source_itself(tmp_path: Path) -> None:
    tree = vision_tree(tmp_path / "vision")
    assert not has_mps_kernels(tree, PROJECTS["torchvision"])

    kernel = tree / "torchvision" / "csrc" / "ops" / "mps" / "nms_kernel.mm"
    kernel.parent.mkdir(parents=True)
    kernel.write_text("")

    assert has_mps_kernels(tree, PROJECTS["torchvision"])


def _sources(tmp_path: Path, **changed: Any) -> Sources:
    return Sources(
        plan=plan(tmp_path, **changed),
        workspace=Workspace(root=tmp_path / "work"),
        ledger=Ledger(tmp_path / "work" / "receipts"),
        reporter=SilentReporter(),
        environ=ENVIRON,
    )


def test_a_tag_gives_its_commit_and_a_tag_that_moves_later_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    files = {"torchvision/__init__.py": "", "version.txt": "0.21.0a0", "torchvision/csrc/ops/mps/nms_kernel.mm": ""}
    first = repository(tmp_path / "vision", files)
    git(tmp_path / "vision", "tag", "v0.21.0")
    from_here = {"torchvision": SourceChoice(kind="git", place=str(tmp_path / "vision"))}

    found = _sources(tmp_path, sources=from_here).obtain("torchvision")

    assert (found.commit, found.dirty, found.has_mps_kernels) == (first, (), True)
    git(tmp_path / "vision", "commit", "-q", "--allow-empty", "-m", "second")
    git(tmp_path / "vision", "tag", "-f", "v0.21.0")
    assert _sources(tmp_path, sources=from_here, offline=True).obtain("torchvision").commit == first
    (found.root / "version.txt").write_text("0.21.0")
    with pytest.raises(SourceError, match="was changed by hand"):
        _sources(tmp_path, sources=from_here).obtain("torchvision")


def test_a_tag_that_is_not_there_and_one_that_was_never_looked_up_are_distinguished(tmp_path: Path) -> None:
    repository(tmp_path / "vision", {"version.txt": "0.21.0"})
    from_here = {"torchvision": SourceChoice(kind="git", place=str(tmp_path / "vision"))}

    with pytest.raises(SourceError, match=r"no branch or tag 'refs/tags/v0\.21\.0'") as raised:
        _sources(tmp_path, sources=from_here).obtain("torchvision")
    assert "--source torchvision=PATH" in (raised.value.hint or "")
    with pytest.raises(SourceError, match="was never looked up, and --offline"):
        _sources(tmp_path, sources=from_here, offline=True).obtain("torchvision")


def test_a_folder_tells_its_commit_and_what_was_changed_in_it(tmp_path: Path) -> None:
    commit = repository(tmp_path / "vision", {"torchvision/__init__.py": "", "version.txt": "0.21.0"})
    own = {"torchvision": SourceChoice(kind="folder", place=str(tmp_path / "vision"))}

    clean = _sources(tmp_path, sources=own).obtain("torchvision")
    (tmp_path / "vision" / "version.txt").write_text("0.21.0\n")
    changed = _sources(tmp_path, sources=own).obtain("torchvision")

    assert (clean.commit, clean.dirty) == (commit, ()) and changed.dirty == ("version.txt",)
    assert clean.digest != changed.digest


# What is built, and as what.


def test_a_companions_version_names_the_torch_it_is_built_for(tmp_path: Path) -> None:
    requested = plan(tmp_path)
    folder = replace(requested, sources={"torchvision": SourceChoice(kind="folder", place="/x")})
    official = replace(requested, torch=replace(requested.torch, version="2.6.0", local=None))

    assert requested.version("torchvision", commit="7af698794e", dirty=False) == "0.21.0+mps.g1eba9b3"
    assert official.version("torchaudio", commit="d883142", dirty=False) == "2.6.0+mps"
    dirty = folder.version("torchvision", commit="abcdef0123", dirty=True)
    assert dirty == "0.21.0+mps.g1eba9b3.gabcdef0.dirty"
    assert folder.version("torchvision", commit=None, dirty=False) == "0.21.0+mps.g1eba9b3.folder"


def test_a_companion_is_given_the_target_and_none_of_torchs_own_settings(tmp_path: Path) -> None:
    given = {variable.name: variable.value for variable in plan(tmp_path).variables("torchvision")}

    assert given["MACOSX_DEPLOYMENT_TARGET"] == "13.0" and given["_PYTHON_HOST_PLATFORM"] == "macosx-13.0-arm64"
    assert given["FORCE_MPS"] == "1" and given["TORCHVISION_USE_PNG"] == "0"
    audio = {variable.name: variable.value for variable in plan(tmp_path).variables("torchaudio")}
    assert audio["LDFLAGS"] == "-Wl,-rpath,@loader_path" and audio["BUILD_SOX"] == "0"
    assert not {"USE_MPS", "USE_DISTRIBUTED", "PYTORCH_BUILD_VERSION", "USE_OPENMP"} & given.keys()


@pytest.mark.parametrize("name", ["sample", "nightly"])
def test_a_recipe_without_companions_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} names no companions"):
        chosen_companions(find_recipe(name), ())


def test_companions_that_nobody_here_can_build_and_that_the_recipe_does_not_name_are_refused() -> None:
    vision_only = RECIPE.model_copy(update={"companions": {"torchvision": "0.21.0"}})
    strange = RECIPE.model_copy(update={"companions": {"torchtext": "0.18.0"}})

    with pytest.raises(UsageError, match="names no torchaudio"):
        chosen_companions(vision_only, ("torchaudio",))
    with pytest.raises(UsageError, match="mps-build does not know how to build torchtext"):
        chosen_companions(strange, ())


def test_every_release_names_companions_that_can_be_built() -> None:
    for recipe in all_recipes():
        if recipe.release:
            assert chosen_companions(recipe, ()) == ("torchvision", "torchaudio")


# What the wheel must be.


# What they must compute.


# A build that fails.


# The rehearsal's own parts.


# The command.
