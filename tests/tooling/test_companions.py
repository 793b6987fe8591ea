"""Companions: which torch, which source, what is refused, what the wheels pin, and that wrong answers are seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small_wheels
from git_history import ENVIRON, git, repository
from mps_build.audit import Expectation, audit_wheel
from mps_build.audit.releases import TORCH_LIBRARIES
from mps_build.cli import main
from mps_build.companion_building.delivery import matching_set
from mps_build.companion_building.plan import CompanionPlan, chosen_companions
from mps_build.companion_building.sources import Sources
from mps_build.companions import smoke
from mps_build.companions.metadata import pin_torch
from mps_build.companions.projects import PROJECTS
from mps_build.companions.source import (
    SourceChoice,
    check_choice,
    check_tree,
    copy_tree,
    has_mps_kernels,
    parse_sources,
    tree_digest,
)
from mps_build.companions.torch_wheel import built_wheel, given_wheel
from mps_build.compile_failure import explained
from mps_build.environ import Toolchain
from mps_build.errors import CompileError, DiskFull, SourceError, UsageError
from mps_build.process import SilentReporter
from mps_build.receipts import Ledger, fingerprint
from mps_build.recipes import all_recipes, find_recipe
from mps_build.rehearsal.companion_parts import complete_torch
from mps_build.rehearsal.elf import Loads, faults_of
from mps_build.triage import explain
from mps_build.workspace import Workspace
from recorded_macs import recorded_mac

RECIPE = find_recipe("v2.6.0")
MAC = "torch-2.6.0+mps.g1eba9b3-cp312-cp312-macosx_13_0_arm64.whl"


def torch_wheel(folder: Path, name: str = MAC) -> Path:
    """Write a wheel of nothing but metadata, sound enough to be read."""
    folder.mkdir(parents=True, exist_ok=True)
    distribution, version, *_ = name.split("-")
    with zipfile.ZipFile(folder / name, "w") as archive:
        text = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        if distribution != "torch":
            text += "Requires-Dist: torch==2.6.0+mps.g1eba9b3\n"
        archive.writestr(f"{distribution}-{version}.dist-info/METADATA", text)
    return folder / name


def vision_tree(folder: Path, version: str = "0.21.0") -> Path:
    (folder / "torchvision").mkdir(parents=True)
    (folder / "torchvision" / "__init__.py").write_text("")
    (folder / "version.txt").write_text(f"{version}\n")
    (folder / "setup.py").write_text("")
    return folder


def plan(tmp_path: Path, **changed: Any) -> CompanionPlan:
    torch = given_wheel(torch_wheel(tmp_path / "torch"), RECIPE, python=None, system="macos")
    given: dict[str, Any] = {
        "recipe": RECIPE,
        "torch": torch,
        "sources": {name: SourceChoice(kind="git", place=PROJECTS[name].repository) for name in PROJECTS},
        "toolchain": Toolchain(name="xcode"),
        "jobs": 1,
        "wheelhouse": tmp_path / "wheelhouse",
    }
    return CompanionPlan(**{**given, **changed})


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
        ("torch-2.6.0-cp312-cp312-linux_x86_64.whl", "is for linux_x86_64; wanted is one for macOS on arm64"),
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

    assert all(said in str(raised.value) for said in ("2.5.1", "linux_x86_64", "Python 3.8", "no zip file"))


def test_a_torch_for_another_python_than_asked_for_is_refused(tmp_path: Path) -> None:
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
        return built_wheel(RECIPE, python="3.12", receipts=tmp_path / "none", wheelhouse=tmp_path / "house").path

    with pytest.raises(UsageError, match=r"no torch of v2.6.0 for Python 3.12 is built yet") as raised:
        look()
    assert "nox -s build_wheel -- v2.6.0 --python 3.12" in (raised.value.hint or "")
    for name in (MAC, "torch-2.6.0+mps.gfffffff-cp312-cp312-macosx_13_0_arm64.whl"):
        wheel = torch_wheel(tmp_path / "house", name)
        receipt = {"recipe": {"version": "2.6.0"}, "python": "3.12"}
        wheel.with_name(f"{name}.receipt.json").write_text(json.dumps(receipt))
        if name == MAC:
            assert look() == wheel
    other = tmp_path / "house" / "torch-2.5.1-cp312-none-macosx_11_0_arm64.whl.receipt.json"
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
        (["torchvision=https://a.example/a.git", "torchvision=https://b.example/b.git"], "names torchvision twice"),
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
    with pytest.raises(SourceError, match="does not say which version"):
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


def test_a_tag_that_is_not_there_and_one_that_was_never_looked_up_are_told_apart(tmp_path: Path) -> None:
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
    asked = plan(tmp_path)
    folder = replace(asked, sources={"torchvision": SourceChoice(kind="folder", place="/x")})
    official = replace(asked, torch=replace(asked.torch, version="2.6.0", local=None))

    assert asked.version("torchvision", commit="7af698794e", dirty=False) == "0.21.0+mps.g1eba9b3"
    assert official.version("torchaudio", commit="d883142", dirty=False) == "2.6.0+mps"
    dirty = folder.version("torchvision", commit="abcdef0123", dirty=True)
    assert dirty == "0.21.0+mps.g1eba9b3.gabcdef0.dirty"
    assert folder.version("torchvision", commit=None, dirty=False) == "0.21.0+mps.g1eba9b3.folder"


def test_a_companion_is_told_the_target_and_none_of_torchs_own_settings(tmp_path: Path) -> None:
    told = {variable.name: variable.value for variable in plan(tmp_path).variables("torchvision")}

    assert told["MACOSX_DEPLOYMENT_TARGET"] == "13.0" and told["_PYTHON_HOST_PLATFORM"] == "macosx-13.0-arm64"
    assert told["FORCE_MPS"] == "1" and told["TORCHVISION_USE_PNG"] == "0"
    audio = {variable.name: variable.value for variable in plan(tmp_path).variables("torchaudio")}
    assert audio["LDFLAGS"] == "-Wl,-rpath,@loader_path" and audio["BUILD_SOX"] == "0"
    assert not {"USE_MPS", "USE_DISTRIBUTED", "PYTORCH_BUILD_VERSION", "USE_OPENMP"} & told.keys()


@pytest.mark.parametrize("name", ["sample", "nightly"])
def test_a_recipe_without_companions_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name} names no companions"):
        chosen_companions(find_recipe(name), ())


def test_companions_that_nobody_here_can_build_and_that_the_recipe_does_not_name_are_refused() -> None:
    vision_only = RECIPE.model_copy(update={"companions": {"torchvision": "0.21.0"}})
    strange = RECIPE.model_copy(update={"companions": {"torchtext": "0.18.0"}})

    with pytest.raises(UsageError, match="names no torchaudio"):
        chosen_companions(vision_only, ("torchaudio",))
    with pytest.raises(UsageError, match="nobody here knows how to build torchtext"):
        chosen_companions(strange, ())


def test_every_release_names_companions_that_can_be_built() -> None:
    for recipe in all_recipes():
        if recipe.release:
            assert chosen_companions(recipe, ()) == ("torchvision", "torchaudio")


# What the wheel must be.


def _companion(folder: Path, **changed: Any) -> Path:
    name = changed.pop("name", "torchvision-0.21.0+mps.g1-cp312-cp312-macosx_13_0_arm64.whl")
    demand = changed.pop("demand", "torch==2.6.0+mps.g1")
    extra = changed.pop("extra", {})
    image = small_wheels.Image(
        file_type=8,
        minos=(13, 0),
        dependencies=tuple(
            (path, "strong") for path in changed.pop("loads", ("@rpath/libtorch_cpu.dylib", "@rpath/libc10.dylib"))
        ),
        **changed,
    )
    info = "torchvision-0.21.0+mps.g1.dist-info"
    headers = ["Metadata-Version: 2.1", "Name: torchvision", "Version: 0.21.0+mps.g1", "Requires-Dist: numpy"]
    headers += [f"Requires-Dist: {demand}"] if demand else []
    files = {
        "torchvision/__init__.py": b"",
        "torchvision/_C.so": small_wheels.macho(image),
        f"{info}/METADATA": "\n".join([*headers, "", ""]).encode(),
        **extra,
    }
    return small_wheels.write_wheel(folder, files, name=name)


def _errors(wheel: Path) -> list[str]:
    expectation = Expectation(
        distribution="torchvision",
        deployment_target="13.0",
        metal_sections={},
        external_libraries=TORCH_LIBRARIES,
        requires=("torch==2.6.0+mps.g1",),
    )
    found = audit_wheel(wheel, profile="strict", expectation=expectation)
    return [f"{finding.rule} {finding.evidence}" for finding in found.findings if finding.level == "error"]


def test_a_companion_that_leaves_torch_outside_is_accepted(tmp_path: Path) -> None:
    assert _errors(_companion(tmp_path)) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"demand": "torch==2.6.0"}, "N5 Requires-Dist: torch==2.6.0; wanted torch==2.6.0+mps.g1"),
        ({"demand": ""}, "N5 Requires-Dist: nothing of torch"),
        ({"extra": {"torchvision/.dylibs/libc10.dylib": b""}}, "P7 is brought along"),
        ({"loads": ("/Users/me/venv/torch/lib/libtorch_cpu.dylib",)}, "P4 loads /Users/me/venv"),
        ({"loads": ("@rpath/libpng16.dylib",)}, "P5 loads @rpath/libpng16.dylib"),
        ({"rpaths": ("/Users/me/venv/lib/torch/lib",)}, "P1 LC_RPATH /Users/me/venv"),
    ],
)
def test_a_companion_that_mixes_torches_or_needs_the_builders_disk_is_rejected(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    assert any(error.startswith(said) for error in _errors(_companion(tmp_path, **changed))), said


def test_a_wheel_without_its_compiled_part_is_named_by_the_pattern_that_nothing_fits() -> None:
    assert PROJECTS["torchvision"].missing_extensions(["torchvision/__init__.py"]) == ("torchvision/_C*.so",)
    assert not PROJECTS["torchvision"].missing_extensions(["torchvision/_C_stable.so"])
    assert not PROJECTS["torchaudio"].missing_extensions(["torchaudio/lib/libtorchaudio.so"])


def test_the_pins_hold_this_torch_and_every_companion_that_fits_it_and_no_other(tmp_path: Path) -> None:
    asked = plan(tmp_path)
    house = asked.wheelhouse
    fresh = torch_wheel(house, "torchvision-0.21.0+mps.g1eba9b3-cp312-cp312-macosx_13_0_arm64.whl")
    torch_wheel(house, "torchaudio-2.6.0+mps.g1eba9b3-cp312-cp312-macosx_13_0_arm64.whl")
    torch_wheel(house, "torchaudio-2.6.0+mps.g1eba9b3-cp311-cp311-macosx_13_0_arm64.whl")
    (house / "torchaudio-2.5.0-cp312-cp312-macosx_13_0_arm64.whl").write_bytes(b"damaged")

    matched = matching_set(asked, [fresh])

    assert matched.constraints() == (
        "torch==2.6.0+mps.g1eba9b3\ntorchvision==0.21.0+mps.g1eba9b3\ntorchaudio==2.6.0+mps.g1eba9b3\n"
    )


# What they must compute.


def test_a_right_suppression_passes_and_each_planted_fault_is_seen() -> None:
    def plain(boxes: list[smoke.Box], scores: list[float], threshold: float) -> list[int]:
        return smoke.kept_boxes(boxes, scores, threshold)

    def unsorted(boxes: list[smoke.Box], scores: list[float], threshold: float) -> list[int]:
        return sorted(plain(boxes, scores, threshold))

    def lax(boxes: list[smoke.Box], scores: list[float], threshold: float) -> list[int]:
        return plain(boxes, scores, threshold * 1.1)

    def all_of_them(boxes: list[smoke.Box], scores: list[float], threshold: float) -> list[int]:
        return plain(boxes, scores, 1.0)

    assert smoke.check_nms(plain, where="cpu") == 12
    for fault in (unsorted, lax, all_of_them):
        with pytest.raises(SystemExit, match="torchvision::nms on cpu keeps"):
            smoke.check_nms(fault, where="cpu")


def test_suppression_by_hand() -> None:
    boxes = [(0.0, 0.0, 10.0, 10.0), (0.0, 0.0, 10.0, 9.0), (20.0, 20.0, 30.0, 30.0)]

    assert smoke.overlap(boxes[0], boxes[1]) == 0.9 and smoke.overlap(boxes[0], boxes[2]) == 0.0
    assert smoke.kept_boxes(boxes, [0.5, 0.9, 0.1], 0.7) == [1, 2]
    assert smoke.kept_boxes(boxes, [0.5, 0.9, 0.1], 0.95) == [1, 0, 2]


def test_a_right_filter_passes_and_each_planted_fault_is_seen() -> None:
    assert smoke.filtered([1.0, 0.0, 0.0], [1.0, -0.5], [2.0, 0.0]) == [2.0, 1.0, 0.5]
    assert smoke.check_filter(smoke.filtered, where="filter") == 0.0
    with pytest.raises(SystemExit, match="differs from the plain filter"):
        smoke.check_filter(lambda samples, a, b: smoke.filtered(samples, [*a[:-1], 0.0], b), where="filter")
    with pytest.raises(SystemExit, match="differs from the plain filter by nan"):
        smoke.check_filter(lambda samples, a, b: [float("nan")] * len(samples), where="filter")
    with pytest.raises(SystemExit, match="answers 299 samples"):
        smoke.check_filter(lambda samples, a, b: smoke.filtered(samples, a, b)[1:], where="filter")


# A build that fails.


def test_a_failed_build_is_told_with_its_cause_and_a_disk_that_a_compiler_met_full_as_such(tmp_path: Path) -> None:
    log = tmp_path / "compile.log"
    log.write_text("building\nvision.cpp:5:10: fatal error: 'torch/types.h' file not found\n")
    error = CompileError("the build failed (exit 1)", hint="see the log")

    told = explained(error, log, release=RECIPE.release, hint="next: mend it", document={"recipe": "v2.6.0"})

    assert "fatal error: 'torch/types.h' file not found" in str(told) and told.hint == "next: mend it"
    assert told.document["recipe"] == "v2.6.0" and told.document["triage"]["first_error"]["line"] == 2
    log.write_text("fatal error: error writing x.o: No space left on device\n")
    assert isinstance(explained(error, log, release=None), DiskFull)
    assert explained(error, tmp_path / "no.log", release=None) is error


@pytest.mark.parametrize(
    ("after", "first"),
    [
        ("a.cpp:1:2: error: no type named 'X'\n", "a.cpp:1:2: error: no type named 'X'"),
        ("FAILED: a.o\nninja: build stopped: subcommand failed.\n", "FAILED: a.o"),
        ("", "fatal: not a git repository"),
    ],
)
def test_a_question_to_git_that_found_no_repository_is_not_the_first_error_unless_it_is_the_only_one(
    after: str, first: str
) -> None:
    found = explain(f"fatal: not a git repository (or any of the parent directories): .git\n{after}").first_error

    assert found is not None and found.text.startswith(first)


# The rehearsal's own parts.


def test_a_linux_companion_may_load_torch_and_the_system_and_nothing_else() -> None:
    members = ["torchaudio/lib/libtorchaudio.so", "torchaudio/lib/_torchaudio.so"]
    right = {
        members[0]: Loads(needed=("libc10.so.2.6", "libtorch_cpu.so.2.6", "libstdc++.so.6", "libc.so.6"), search=()),
        members[1]: Loads(
            needed=("libtorchaudio.so", "libtorch_python.so", "ld-linux-x86-64.so.2"), search=("$ORIGIN",)
        ),
    }

    assert faults_of(members, right) == ()
    assert faults_of(members, {members[0]: Loads(needed=("libc.so.6",), search=())}) == (
        "no library of it loads torch's",
    )
    strange = faults_of(
        members, {**right, "x.so": Loads(needed=("libpng16.so.16",), search=("/build/venv/torch/lib",))}
    )
    assert strange == (
        "x.so: loads libpng16.so.16, which is neither torch's nor the system's",
        "x.so: searches /build/venv/torch/lib",
    )
    assert faults_of([*members, "torchaudio/lib/libtorch_cpu.so"], right) == (
        "torchaudio/lib/libtorch_cpu.so: is torch's own library",
    )


def test_a_split_built_torch_is_completed_and_what_it_brought_stays(tmp_path: Path) -> None:
    headers, site = tmp_path / "headers", tmp_path / "site"
    for place, text in ((headers, "Debian's"), (site / "torch" / "include", "the wheel's")):
        (place / "torch").mkdir(parents=True)
        (place / "torch" / "library.h").write_text(text)
    (headers / "torch" / "types.h").write_text("Debian's")
    (site / "torch" / "lib").mkdir()
    (site / "torch" / "lib" / "libc10.so.2.6").write_text("")

    for _ in range(2):
        complete_torch(site, headers)

    torch = site / "torch"
    assert (torch / "include" / "torch" / "library.h").read_text() == "the wheel's"
    assert (torch / "include" / "torch" / "types.h").read_text() == "Debian's"
    assert (torch / "lib" / "libc10.so").resolve() == (torch / "lib" / "libc10.so.2.6")
    assert "add_library" in (torch / "share" / "cmake" / "Torch" / "TorchConfig.cmake").read_text()


# The verb.


@pytest.mark.skipif(sys.platform == "darwin", reason="a Mac may build it")
def test_a_host_that_cannot_build_the_recipe_says_every_reason_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))

    code = main("build_companions", ["v2.6.0", "--json", str(tmp_path / "answer.json")])

    document = json.loads((tmp_path / "answer.json").read_text())
    assert code == 3 and document["cause"] == "host"
    assert {"not_macos", "xcode_missing", "metal_compiler_missing"} <= set(document["blockers"])
    assert "this host cannot build v2.6.0" in capsys.readouterr().err
    assert not (tmp_path / "work").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["sample"], 2, "sample names no companions"),
        (["v2.6.0", "--only", "torchtext"], 2, "invalid choice"),
        (["v2.6.0", "--python", "3.7"], 2, "is not for Python 3.7"),
        (["v2.6.0", "--jobs", "0"], 2, "no number of compilers"),
        (["v2.6.0", "--set", "X"], 2, "is not NAME=VALUE"),
        (["v2.6.0", "--torch", "nowhere.whl"], 2, "no such file"),
        (["v9.9"], 2, "no recipe"),
    ],
)
def test_wrong_arguments_are_told_before_the_host_is_looked_at(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("build_companions", arguments) == code

    assert said in capsys.readouterr().err


def test_a_dry_run_on_a_recorded_mac_tells_what_would_be_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    mac = recorded_mac(tmp_path, "m3max-64gb-15.3-all-well")
    arguments = ["v2.6.0", "--torch", str(torch_wheel(tmp_path)), "--json", str(tmp_path / "answer.json")]

    code = main("build_companions", [*arguments, "--dry-run", "--host", str(mac)])

    document = json.loads((tmp_path / "answer.json").read_text())
    assert code == 0, document
    assert capsys.readouterr().out.startswith("recorded on 2026-11-01")
    assert [(each["name"], each["version"]) for each in document["companions"]] == [
        ("torchvision", "0.21.0+mps.g1eba9b3"),
        ("torchaudio", "2.6.0+mps.g1eba9b3"),
    ]
    assert document["companions"][0]["environment"]["FORCE_MPS"] == "1"
    assert not (tmp_path / "work").exists()
    assert main("build_companions", [*arguments, "--host", str(mac)]) == 2
    assert "only with --dry-run" in capsys.readouterr().err


def test_the_rehearsal_takes_a_torch_only_with_companions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("rehearse", ["v2.6.0", "--torch", "x.whl"]) == 2
    assert "add --companions" in capsys.readouterr().err


def test_the_smoke_script_is_told_apart_from_a_torch_that_is_missing(tmp_path: Path) -> None:
    script = Path(smoke.__file__)
    argv = [sys.executable, "-I", "-S", str(script), str(tmp_path / "result.json"), "torchvision"]

    ended = subprocess.run(argv, capture_output=True, text=True, check=False, env={"PATH": os.environ["PATH"]})

    assert ended.returncode != 0 and "No module named 'torch'" in ended.stderr
    assert not (tmp_path / "result.json").exists()
