"""--editable: an edited file is compiled, nothing is packed, and the tree is imported where it lies. Both eras.

The slow tests build for this machine, with its own compiler; what they prove is the steps, not PyTorch.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from mps_build import cli
from mps_build.common.console import Console
from mps_build.common.environment import Toolchain
from mps_build.common.errors import CompileError, UsageError
from mps_build.common.process import Command, capture
from mps_build.common.recipe.catalogue import find_recipe, recipes_root
from mps_build.common.recipe.embedded_source import materialise
from mps_build.common.recipe.model import Gate
from mps_build.common.reporting import SilentReporter
from mps_build.common.workspace import Workspace
from mps_build.wheel_build.backend import build_folder
from mps_build.wheel_build.build_request import BuildRequest, CompilerRequest, SourceRequest, WheelRequest
from mps_build.wheel_build.editable import EditableBuild, build_editable, create_runtime, first_command, import_it
from mps_build.wheel_build.options import BuildOptions
from mps_build.wheel_build.pipeline import Pipeline
from mps_build.wheel_build.rebuild_editable import (
    Editable,
    Remembered,
    editable_of,
    rebuild,
    recall,
    remember,
    stale_copies,
    stale_sources,
)
from mps_build.wheel_build.steps.configure import configure, configure_command, write_overrides

FIXTURE = Path(__file__).parents[1] / "fixtures" / "setup_py_era"
OURS = f"{sys.version_info[0]}.{sys.version_info[1]}"
needs_compiler = pytest.mark.skipif(not shutil.which("c++"), reason="no compiler for this machine")


def _arguments(**given: Any) -> BuildOptions:
    return replace(BuildOptions(recipe="v2.6.0", editable=True), **given)


def _editable(root: Path) -> Editable:
    """An editable build that stands, as far as `recall` looks."""
    build, python = root / "build", root / "bin" / "python"
    for file in (build / "build.ninja", python):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    remake = Command(argv=("ninja", "install"), cwd=root, environ={"A": "1"})
    extensions = Command(argv=("python", "setup.py"), cwd=root, environ={"A": "1", "B": "2"})
    return Editable(root=root, build=build, python=python, remake=remake, install=None, extensions=extensions)


@pytest.fixture(name="remembered")
def _remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Remembered:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    (tmp_path / "lock.txt").write_text("cmake", encoding="utf-8")
    workspace = Workspace(root=tmp_path / "work" / "v2.6.0")
    found = Remembered(workspace=workspace, editable=_editable(tmp_path / "tree"), module="torch", recipe="v2.6.0")
    remember(_arguments(), found, watched=(tmp_path / "lock.txt", tmp_path / "none.plist"))
    return found


def test_the_same_arguments_find_the_build_again(remembered: Remembered) -> None:
    assert recall(_arguments()) == remembered
    assert editable_of(remembered.editable.document()) == remembered.editable


def test_other_arguments_do_not(remembered: Remembered) -> None:
    assert recall(_arguments(settings=["USE_KINETO=1"])) is None
    assert recall(_arguments(jobs=1)) == remembered


def test_a_changed_lock_or_another_xcode_goes_the_whole_way(remembered: Remembered, tmp_path: Path) -> None:
    (tmp_path / "none.plist").write_text("now there", encoding="utf-8")
    assert recall(_arguments()) is None
    (tmp_path / "none.plist").unlink()
    (tmp_path / "lock.txt").write_text("cmake==4", encoding="utf-8")

    assert recall(_arguments()) is None


def test_a_build_folder_that_is_gone_goes_the_whole_way(remembered: Remembered) -> None:
    (remembered.editable.build / "build.ninja").unlink()

    assert recall(_arguments()) is None


def test_what_setuptools_compiled_and_copied_is_seen_to_be_old(tmp_path: Path) -> None:
    root, build = tmp_path, tmp_path / "build"
    files = {
        "stub.c": root / "torch" / "csrc" / "stub.c",
        "stub.o": build / "temp.linux-cpython-313" / "torch" / "csrc" / "stub.o",
        "functorch.so": root / "functorch" / "functorch.so",
        "made": build / "lib.linux-cpython-313" / "functorch" / "_C.so",
        "placed": root / "functorch" / "_C.so",
    }
    for second, file in enumerate(files.values()):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (1000 + second, 1000 + second))
    assert (stale_sources(root, build), stale_copies(root, build)) == ((), ())

    os.utime(files["stub.c"], (2000, 2000))
    os.utime(files["functorch.so"], (2000, 2000))

    assert stale_sources(root, build) == ("torch/csrc/stub.c",)
    assert stale_copies(root, build) == ((files["functorch.so"], files["placed"]),)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sample", "--editable", "--profile", "release"], "cannot be a release"),
        (["sample", "--editable", "--python", "3.11,3.12"], "one Python at a time"),
        pytest.param(
            ["sample", "--editable"],
            "cannot be imported",
            marks=pytest.mark.skipif(sys.platform == "darwin", reason="a Mac builds it for itself"),
        ),
    ],
)
def test_what_cannot_be_edited_in_place_is_said_before_anything_is_made(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))

    assert cli.main("build_wheel", arguments) == UsageError.exit_code

    assert said in capsys.readouterr().err
    assert not (tmp_path / "work" / "sample").exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """One built tree, and how to ask it."""

    editable: Editable
    log: Path
    module: str

    def rebuild(self) -> int:
        return rebuild(self.editable, log=self.log, reporter=SilentReporter())

    def ask(self, expression: str) -> str:
        script = f"import {self.module} as it; print({expression})"
        answer = capture(Command(argv=(str(self.editable.python), "-I", "-c", script), cwd=self.log.parent))
        assert answer.ok, answer.stderr
        return answer.stdout.strip()


@pytest.fixture(name="setup_py", scope="module")
def _setup_py(tmp_path_factory: pytest.TempPathFactory) -> Era:
    """The fixture with the old contract, built in place."""
    work = tmp_path_factory.mktemp("setup_py")
    source = Path(shutil.copytree(FIXTURE, work / "source"))
    venv = work / "venv"
    assert capture(Command(argv=(sys.executable, "-m", "venv", str(venv))), timeout_seconds=300).ok
    needed = ("setuptools<80", "wheel", "cmake>=3.24", "ninja", "build")
    installed = capture(Command(argv=(str(venv / "bin" / "pip"), "install", "-q", *needed)), timeout_seconds=600)
    assert installed.ok, installed.stderr
    path = os.pathsep.join([str(venv / "bin"), os.environ["PATH"]])
    environ = {"PATH": path, "LC_ALL": "C", "USE_MPS": "1", "USE_OPENMP": "0"}
    python, build = venv / "bin" / "python", build_folder("setuptools", source=source, build=work / "build")
    overrides = write_overrides(work / "overrides.cmake", expect_mps=False)
    command = configure_command(
        "setuptools", python=python, source=source, build=build, environ=environ, overrides=overrides
    )
    configure(command, build=build, log=work / "configure.log", reporter=SilentReporter(), new_python=False)
    first = first_command(
        "setuptools",
        python=python,
        source=source,
        build=build,
        output=work / "wheel",
        environ=environ,
        overrides=overrides,
    )
    create_runtime(
        "setuptools",
        interpreter=Path(sys.executable),
        destination=work / "runtime",
        builder=first,
        numpy=None,
        cache=work / "cache",
        environ=environ,
        log=work / "log",
        reporter=SilentReporter(),
    )
    editable = build_editable(
        "setuptools",
        first,
        build=build,
        output=work / "wheel",
        venv=work / "runtime",
        jobs=2,
        log=work / "log",
        reporter=SilentReporter(),
    )
    return Era(editable=editable, log=work / "rebuild.log", module="old_sample")


@pytest.fixture(name="scikit", scope="module")
def _scikit(tmp_path_factory: pytest.TempPathFactory) -> Era:
    """The sample, built whole by the pipeline for this machine, as a Mac builds a release from 2.14 on."""
    work = tmp_path_factory.mktemp("scikit")
    recipe = find_recipe("sample")
    embedded = materialise(recipes_root() / "sample", work / "embedded", expected=recipe.commit)
    own = tuple(each for each in recipe.environment if each.name == "USE_MPS")
    recipe = recipe.model_copy(
        update={"environment": own, "gate": Gate(use_mps=False, cxx_standard="20", openmp=False)}
    )
    request = BuildRequest(
        recipe=recipe,
        pythons=(OURS,),
        profile="develop",
        source=SourceRequest(recipe=recipe, origin="git", repository=str(embedded.url), commit=embedded.commit),
        compilers=CompilerRequest(toolchain=Toolchain(name="host"), cross=False, jobs=2),
        wheel=WheelRequest(gate=recipe.gate, contents=recipe.wheel, folder=work / "wheelhouse"),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPS_BUILD_WORK", str(work / "work"))
        arguments = _arguments()
        workspace = Workspace(root=work / "work" / "sample")
        built = EditableBuild(Pipeline(request, workspace=workspace, console=Console()))
        found, _, place = built.make(arguments)
        assert recall(arguments) == found
    assert Path(place).is_relative_to(workspace.source)
    return Era(editable=found.editable, log=work / "rebuild.log", module="mps_build_sample")


@pytest.mark.slow
@needs_compiler
def test_setup_py_era_an_edit_is_imported_after_what_depends_on_it_was_compiled(setup_py: Era) -> None:
    root, core = setup_py.editable.root, setup_py.editable.root / "csrc" / "core.cpp"
    assert (setup_py.ask("it.answer()"), setup_py.rebuild()) == ("42", 1)  # ninja's own `install`, nothing else
    stub = next(root.glob("build/temp.*/**/binding.o")).stat().st_mtime_ns

    time.sleep(1.1)  # CMake's `install` takes a library of the same second for the same
    core.write_text(core.read_text(encoding="utf-8").replace("return", "return 1000 +"), encoding="utf-8")

    assert setup_py.rebuild() == 3  # one object, its library, install
    assert setup_py.ask("it.answer()") == "1042"
    assert next(root.glob("build/temp.*/**/binding.o")).stat().st_mtime_ns == stub
    assert not list(root.rglob("*.whl"))


@pytest.mark.slow
@needs_compiler
def test_setup_py_era_a_file_that_setuptools_compiles_is_not_forgotten(setup_py: Era) -> None:
    binding = setup_py.editable.root / "csrc" / "binding.c"
    before_edit = binding.read_text(encoding="utf-8")
    binding.write_text(before_edit.replace("The generated number.", "Edited."), encoding="utf-8")

    setup_py.rebuild()

    assert setup_py.ask("it.answer.__doc__") == "Edited."


@pytest.mark.slow
@needs_compiler
def test_an_edit_that_does_not_compile_is_an_error_and_the_old_build_stays(setup_py: Era) -> None:
    core = setup_py.editable.root / "csrc" / "core.cpp"
    before_edit, before = core.read_text(encoding="utf-8"), setup_py.ask("it.answer()")
    core.write_text(before_edit + "\nnonsense\n", encoding="utf-8")

    with pytest.raises(CompileError):
        setup_py.rebuild()

    assert setup_py.ask("it.answer()") == before
    core.write_text(before_edit, encoding="utf-8")
    setup_py.rebuild()


@pytest.mark.slow
@needs_compiler
def test_scikit_build_core_era_an_edit_is_imported_after_what_depends_on_it_was_compiled(scikit: Era) -> None:
    editable = scikit.editable
    core = editable.root / "csrc" / "core.cpp"
    assert scikit.ask("it.apply('double', 3.0)") == "6.0"
    binding = next(editable.build.rglob("binding.c.o")).stat().st_mtime_ns
    time.sleep(1.1)  # as above

    core.write_text(
        core.read_text(encoding="utf-8").replace("candidate.function(values[index])", "1000 + values[index]"),
        encoding="utf-8",
    )

    assert scikit.rebuild() == 3  # one object, its library, and the binding linked to that
    assert scikit.ask("it.apply('double', 3.0)") == "1003.0"
    assert next(editable.build.rglob("binding.c.o")).stat().st_mtime_ns == binding


@pytest.mark.slow
@needs_compiler
def test_python_files_are_imported_from_the_tree_without_any_build(scikit: Era) -> None:
    module = scikit.editable.root / "mps_build_sample" / "__init__.py"
    module.write_text(module.read_text(encoding="utf-8") + "\nedited = True\n", encoding="utf-8")

    assert scikit.ask("it.edited") == "True"


@pytest.mark.slow
@needs_compiler
def test_a_copy_from_elsewhere_is_not_taken_for_the_tree(setup_py: Era, tmp_path: Path) -> None:
    other = Editable(
        root=tmp_path,
        build=setup_py.editable.build,
        python=setup_py.editable.python,
        remake=setup_py.editable.remake,
        install=None,
        extensions=None,
    )

    with pytest.raises(CompileError, match="was imported from"):
        import_it(other, "old_sample", environ=dict(os.environ))
