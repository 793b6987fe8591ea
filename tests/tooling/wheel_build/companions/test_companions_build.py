"""The whole of build_companions on fakes: a torch that holds a list, a torchvision that suppresses in Python.

Slow: the recipe's locked environment is made by pip. Real companions are compiled by `rehearse -- v2.6.0 --companions`.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
import zipfile
from dataclasses import replace
from email.parser import HeaderParser
from pathlib import Path

import pytest
import small_wheels
from git_history import git, repository
from mps_build.commands.build_companions import build_and_deliver
from mps_build.common.console import Console
from mps_build.common.environment import Toolchain
from mps_build.common.errors import AuditRejected, CompileError, SourceError
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.common.reporting import Result
from mps_build.common.workspace import Workspace
from mps_build.wheel_build.companions.plan import CompanionPlan, SourceChoice, given_wheel

RECIPE = find_recipe("v2.6.0")
PYTHON = f"3.{sys.version_info.minor}"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux" or PYTHON not in RECIPE.pythons, reason="one of 2.6.0's Pythons, Linux"),
]

VERSION = "2.6.0+mps.gabcdef0"
TORCH = f'''
import types
__version__ = "{VERSION}"
float32 = float64 = None
schemas = []
class _Tensor:
    def __init__(self, values): self.values = values
    def tolist(self): return self.values
def tensor(values, dtype=None, device=None): return _Tensor(values)
class _C:
    @staticmethod
    def _jit_get_all_schemas(): return schemas
    @staticmethod
    def _dispatch_has_kernel_for_dispatch_key(name, key): return key == "CPU"
ops = types.SimpleNamespace(torchvision=types.SimpleNamespace())
backends = types.SimpleNamespace(mps=types.SimpleNamespace(is_built=lambda: False, is_available=lambda: False))
'''
VISION = """
import types, torch
from .version import __version__
def nms(boxes, scores, threshold):
    boxes, scores, kept = boxes.values, scores.values, []
    for i in sorted(range(len(boxes)), key=lambda i: -scores[i]):
        if all(_overlap(boxes[i], boxes[j]) <= threshold for j in kept):
            kept.append(i)
    return torch.tensor(kept)
def _overlap(a, b):
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(width, 0) * max(height, 0)
    return shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared)
ops = types.SimpleNamespace(nms=nms)
torch.ops.torchvision.nms = nms
torch.schemas.append(types.SimpleNamespace(name="torchvision::nms"))
"""
SETUP = """
import os, pathlib, subprocess, sys
import torch
from setuptools import Distribution, setup
class Compiled(Distribution):
    def has_ext_modules(self): return True
if pathlib.Path("broken").exists():
    sys.exit("vision.cpp:5:10: fatal error: 'torch/types.h' file not found")
assert torch.__version__ == os.environ["PYTORCH_VERSION"]
sha = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip() or "Unknown"
lines = [f"__version__ = {os.environ['BUILD_VERSION']!r}", f"git_version = {sha!r}", ""]
pathlib.Path("torchvision/version.py").write_text("\\n".join(lines))
if not pathlib.Path("pure").exists():
    pathlib.Path("torchvision/_C.so").write_bytes(b"\\x7fELF stands for a compiled part")
public = os.environ["PYTORCH_VERSION"].split("+")[0]
setup(name="torchvision", version=os.environ["BUILD_VERSION"], packages=["torchvision"], distclass=Compiled,
      package_data={"torchvision": ["*.so"]}, install_requires=["torch==" + public])
"""


@pytest.fixture(scope="module", name="planned")
def _planned(tmp_path_factory: pytest.TempPathFactory) -> tuple[CompanionPlan, Path]:
    """A plan for torchvision from a tag of a repository, and the folder that all of it lies in."""
    folder = tmp_path_factory.mktemp("companions")
    tree = folder / "vision"
    files = {"torchvision/__init__.py": VISION, "setup.py": SETUP, "version.txt": "0.21.0\n"}
    repository(tree, {**files, ".gitignore": "torchvision/version.py\n*.so\n"})
    git(tree, "tag", "v0.21.0")
    tag = f"cp3{sys.version_info.minor}-cp3{sys.version_info.minor}-linux_x86_64"
    name = f"torch-{VERSION}-{tag}.whl"
    wheel = small_wheels.write_wheel(folder, {"torch/__init__.py": textwrap.dedent(TORCH).encode()}, name=name)
    plan = CompanionPlan(
        recipe=RECIPE,
        torch=given_wheel(wheel, RECIPE, python=None, system="linux"),
        sources={"torchvision": SourceChoice(kind="git", place=str(tree))},
        toolchain=Toolchain(name="host"),
        jobs=1,
        wheelhouse=folder / "wheelhouse",
        for_macos=False,
        repaired=False,
        excused=frozenset({"T1", "A0"}),
    )
    return plan, folder


def _build(plan: CompanionPlan, folder: Path) -> Result:
    return build_and_deliver(plan, Workspace(root=folder / "work"), Console())


def test_a_companion_is_built_pinned_tried_and_delivered_and_a_second_run_does_nothing(
    planned: tuple[CompanionPlan, Path],
) -> None:
    plan, folder = planned

    first = _build(plan, folder).document

    wheel = Path(first["wheels"]["torchvision"])
    assert wheel.name.startswith("torchvision-0.21.0+mps.gabcdef0-cp3") and wheel.parent == plan.wheelhouse
    with zipfile.ZipFile(wheel) as archive:
        info = "torchvision-0.21.0+mps.gabcdef0.dist-info"
        demands = HeaderParser().parsestr(archive.read(f"{info}/METADATA").decode()).get_all("Requires-Dist")
        version = archive.read("torchvision/version.py").decode()
        assert f"{info}/sboms/mps-build.cdx.json" in archive.namelist()
    assert demands == [f"torch=={VERSION}"]
    assert git(folder / "vision", "rev-parse", "HEAD") in version
    assert first["tried"]["torchvision"]["cases"] == 24
    pins = (plan.wheelhouse / "constraints.txt").read_text()
    assert pins == f"torch=={VERSION}\ntorchvision==0.21.0+mps.gabcdef0\n"
    receipt = json.loads(wheel.with_name(f"{wheel.name}.receipt.json").read_text())
    assert receipt["torch"]["version"] == VERSION and receipt["audit"]["excused"] == ["A0", "T1"]

    second = _build(plan, folder).document

    assert all(step["skipped"] for step in second["steps"]), second["steps"]
    wheel.unlink()
    assert [step["step"] for step in _build(plan, folder).document["steps"] if not step["skipped"]] == ["deliver"]
    assert wheel.is_file()


def test_a_tree_of_ours_that_was_changed_by_hand_is_refused(planned: tuple[CompanionPlan, Path]) -> None:
    plan, folder = planned
    _build(plan, folder)
    ours = folder / "work" / "source" / "torchvision" / "setup.py"
    kept = ours.read_text()
    ours.write_text(kept + "# changed\n")

    with pytest.raises(SourceError, match="was changed by hand"):
        _build(plan, folder)
    ours.write_text(kept)


def _own(plan: CompanionPlan, folder: Path, name: str) -> tuple[CompanionPlan, Path]:
    """Return a plan for a copy of the tree in a folder of its own, without git."""
    tree = folder / name
    shutil.copytree(folder / "vision", tree, ignore=shutil.ignore_patterns(".git"))
    return replace(plan, sources={"torchvision": SourceChoice(kind="folder", place=str(tree))}), tree


def test_a_failing_compile_names_the_first_error_and_the_next_command(planned: tuple[CompanionPlan, Path]) -> None:
    plan, tree = _own(planned[0], planned[1], "broken-tree")
    (tree / "broken").write_text("")

    with pytest.raises(CompileError) as raised:
        _build(plan, planned[1])

    assert "'torch/types.h' file not found" in str(raised.value)
    assert raised.value.document["triage"]["first_error"]["text"]
    assert "nox -s build_companions -- v2.6.0 --only torchvision" in (raised.value.hint or "")
    assert not (tree / "build").exists() and not (tree / "torchvision" / "version.py").exists()
    (tree / "broken").unlink()
    made = _build(plan, planned[1]).document["wheels"]["torchvision"]
    assert Path(made).name.startswith("torchvision-0.21.0+mps.gabcdef0.folder-")


def test_a_companion_that_answers_wrong_is_not_delivered(planned: tuple[CompanionPlan, Path]) -> None:
    plan, tree = _own(planned[0], planned[1], "wrong-tree")
    plan = replace(plan, wheelhouse=planned[1] / "never")
    module = tree / "torchvision" / "__init__.py"
    module.write_text(module.read_text().replace("<= threshold", "<= threshold * 1.2"))

    with pytest.raises(CompileError, match="built, but do not work") as raised:
        _build(plan, planned[1])

    assert "torchvision::nms on cpu keeps" in str(raised.value)
    assert not plan.wheelhouse.exists()


def test_a_companion_without_its_compiled_part_is_rejected(planned: tuple[CompanionPlan, Path]) -> None:
    plan, tree = _own(planned[0], planned[1], "pure-tree")
    (tree / "pure").write_text("")

    with pytest.raises(AuditRejected, match=r"F1 torchvision/_C\*\.so: is not in the wheel"):
        _build(plan, planned[1])
