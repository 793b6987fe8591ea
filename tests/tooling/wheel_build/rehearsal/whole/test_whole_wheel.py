"""A whole rehearsal from pack on, on a small tree: setup.py, delocate, bill of materials, audit; again after an edit.

What stands in for the Debian root is this host: its Python, LLVM's tools, zig.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from macs import llvm_tools
from mps_build.common.console import Console
from mps_build.common.errors import AuditRejected
from mps_build.common.process import Command
from mps_build.common.receipts import Receipt
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.wheel_build.artifacts import SourceTree
from mps_build.wheel_build.rehearsal.session import Prepared, Rehearsal
from mps_build.wheel_build.rehearsal.whole.objects import Wanted
from mps_build.wheel_build.rehearsal.whole.toolchain import write_darwin_python, write_mac_tools
from mps_build.wheel_build.rehearsal.whole.wheel import Rehearsed, finish_whole, pack_whole

HERE = f"{sys.version_info[0]}.{sys.version_info[1]}"
TOOLS = llvm_tools()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.zig,
    pytest.mark.skipif(sys.platform != "linux" or TOOLS is None, reason="needs Linux with LLVM's tools"),
]
SETUP = """\
import os
from setuptools import Distribution, setup
class Binary(Distribution):
    def has_ext_modules(self):
        return True
setup(name="thing", version=os.environ["PYTORCH_BUILD_VERSION"], packages=["thing"],
      package_data={"thing": ["lib/*.dylib"]}, distclass=Binary)
"""
VERSION = "1.0+rehearsal.linux"
WANTED = Wanted(libraries={"onnx": ("_a", "_b")}, unknown=())


@pytest.fixture(name="rehearsal")
def _rehearsal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rehearsal:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    recipe = find_recipe("v2.6.0")
    contents = recipe.wheel.model_copy(
        update={
            "distribution": "thing",
            "metal_sections": {},
            "openmp": False,
            "members": ("thing/lib/libthing.dylib",),
        }
    )
    console = Console()
    made = Rehearsal(recipe.model_copy(update={"wheel": contents}), mode="darwin-wheel", jobs=1, console=console)
    made.workspace.root.mkdir(parents=True)
    return made


@pytest.fixture(name="ready")
def _ready(tmp_path: Path, rehearsal: Rehearsal) -> Prepared:
    tree, tools, venv = tmp_path / "tree", tmp_path / "tools", tmp_path / f"rehearsal-{HERE}"
    for name, text in {"setup.py": SETUP, "thing/__init__.py": "x = 1\n"}.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text, encoding="utf-8")
    _link(tree, 7)
    (tmp_path / "llvm").mkdir()
    (tmp_path / "llvm" / "llvm-otool").symlink_to((TOOLS or {})["otool"])
    write_mac_tools(tools, llvm=tmp_path / "llvm", macos="14.5")
    for name in ("lipo", "install_name_tool"):
        (tools / name).symlink_to((TOOLS or {})[name])
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    pip = [str(venv / "bin/python"), "-m", "pip", "install", "-q", "build", "setuptools>=70.1", "wheel"]
    subprocess.run(pip, check=True, timeout=300)
    darwin = write_darwin_python(
        tmp_path / "python", tools=tools, target="13.0", darwin="22.0.0", system=tmp_path / "System", macos="14.5"
    )
    environ = {**os.environ, **darwin, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(tmp_path / "python")}
    return Prepared(
        recipe=rehearsal.recipe,
        tree=SourceTree(root=tree, commit=None, origin="a test", submodules={}, epoch=10**9),
        python=venv / "bin" / "python",
        environ={**environ, "PYTORCH_BUILD_VERSION": VERSION},
        tools={},
        digest="",
        wrap=_in_root,
    )


def _in_root(command: Command) -> Command:
    """Bring a command to where the Debian root's Python would be: it is ours."""
    is_roots = command.argv[0].startswith("/usr/bin/python")
    return replace(command, argv=(sys.executable, *command.argv[1:])) if is_roots else command


def _link(tree: Path, answer: int) -> None:
    """Make the library with zig, as a Mac's: its id and the deployment target in it."""
    library = tree / "thing" / "lib" / "libthing.dylib"
    library.parent.mkdir(parents=True, exist_ok=True)
    (tree / "outer.c").write_text(f"int outer(void) {{ return {answer}; }}\n", encoding="utf-8")
    argv = [
        sys.executable,
        "-m",
        "ziglang",
        "cc",
        "-target",
        "aarch64-macos.13.0",
        "-shared",
        "-O1",
        str(tree / "outer.c"),
    ]
    argv += ["-o", str(library), f"-Wl,-install_name,@rpath/{library.name}", "-Wl,-headerpad_max_install_names"]
    subprocess.run(argv, check=True, timeout=300)


def _run(rehearsal: Rehearsal, ready: Prepared, state: str) -> tuple[Receipt, Rehearsed]:
    libraries = tuple(sorted((ready.tree.root / "thing" / "lib").glob("*.dylib")))
    packed = pack_whole(rehearsal, ready, state=state, libraries=libraries)
    return packed, finish_whole(rehearsal, ready, packed, WANTED)


def _members(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def test_a_small_tree_goes_from_setup_py_to_an_audited_wheel_and_again_after_an_edit(
    rehearsal: Rehearsal, ready: Prepared, capsys: pytest.CaptureFixture[str]
) -> None:
    _, first = _run(rehearsal, ready, "one")
    members = _members(first.wheel.path)

    assert first.wheel.path.parent == rehearsal.workspace.root / "wheel", "never in a wheelhouse"
    assert first.wheel.path.name.startswith(f"thing-{VERSION}-") and "macosx_13_0_arm64" in first.wheel.path.name
    assert first.audit["verdict"] == "accepted", first.audit["findings"]
    bill = json.loads(next(data for name, data in members.items() if name.endswith("mps-build.cdx.json")))
    assert "never loaded" in json.dumps(bill) and "fake" in json.dumps(bill)
    receipt = json.loads(first.receipt.read_text(encoding="utf-8"))
    assert receipt["wheel"]["sha256"] == first.wheel.sha256 and "rehearsal" in receipt["rehearsal"]

    packed, again = _run(rehearsal, ready, "one")
    assert packed.skipped and again.wheel.sha256 == first.wheel.sha256

    _link(ready.tree.root, 8)
    packed, edited = _run(rehearsal, ready, "two")
    other = _members(edited.wheel.path)
    assert not packed.skipped and other.keys() == members.keys()
    assert {name for name in other if other[name] != members[name]} >= {"thing/lib/libthing.dylib"}
    assert other["thing/__init__.py"] == members["thing/__init__.py"]
    assert "repacked: 1 of" in capsys.readouterr().out


def test_a_wheel_that_lacks_what_the_recipe_names_is_rejected_and_kept(rehearsal: Rehearsal, ready: Prepared) -> None:
    contents = rehearsal.recipe.wheel.model_copy(update={"members": ("thing/lib/libother.dylib",)})
    rehearsal.recipe = rehearsal.recipe.model_copy(update={"wheel": contents})

    with pytest.raises(AuditRejected, match=r"libother\.dylib"):
        _run(rehearsal, replace(ready, recipe=rehearsal.recipe), "one")

    assert list((rehearsal.workspace.root / "finished").glob("*.whl"))
    assert not (rehearsal.workspace.root / "wheel").exists()
