"""What the environment holds is what pip lists; no answer is an error, and never an empty environment."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import shutil
import sys
import tarfile
import venv
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pip
import pytest
from mps_build.common import git
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import BuildEnvironmentError, SourceError
from mps_build.common.git import succeeds
from mps_build.common.process import Captured, Command, capture
from mps_build.common.receipts import fingerprint
from mps_build.common.recipe.catalogue import all_recipes, find_recipe
from mps_build.common.recipe.locks import Lock, lock_of
from mps_build.common.recipe.model import Libomp
from mps_build.common.reporting import SilentReporter
from mps_build.wheel_build.steps import create_environment as module
from mps_build.wheel_build.steps.create_environment import (
    create_environment,
    installed_versions,
    lock_parts,
    provide_libomp,
)

BACKEND = """
import base64, hashlib, importlib.util, pathlib, zipfile

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    found = importlib.util.find_spec("unlocked") is not None
    locked = importlib.util.find_spec("locked") is not None
    files = {
        "source.py": f"SAW_UNLOCKED, SAW_LOCKED = {found}, {locked}\\n",
        "source-1.dist-info/METADATA": "Metadata-Version: 2.1\\nName: source\\nVersion: 1\\n",
        "source-1.dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    files["source-1.dist-info/RECORD"] = "".join(f"{name},,\\n" for name in [*files, "source-1.dist-info/RECORD"])
    name = "source-1-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(wheel_directory, name), "w") as archive:
        for each, text in files.items():
            archive.writestr(each, text)
    return name
"""


def _pip(tmp_path: Path, body: str) -> Command:
    script = tmp_path / "pip"
    script.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    script.chmod(0o755)
    return Command(argv=(str(script),))


def test_the_versions_are_those_that_pip_names(tmp_path: Path) -> None:
    assert installed_versions(_pip(tmp_path, "echo ninja==1.13.0; echo cmake==4.1.2")) == {
        "cmake": "4.1.2",
        "ninja": "1.13.0",
    }


def test_a_pip_that_fails_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BuildEnvironmentError, match="disk I/O error"):
        installed_versions(_pip(tmp_path, "echo cmake==4.1.2; echo disk I/O error >&2; exit 1"))


def test_a_pip_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(command: Command, *, timeout_seconds: float) -> Captured:
        said = f"no answer within {timeout_seconds:g} seconds"
        return Captured(argv=command.argv, stdout="", stderr=said, exit=None, timed_out=True)

    monkeypatch.setattr(module, "capture", never)
    monkeypatch.setattr(git, "capture", never)

    with pytest.raises(BuildEnvironmentError, match="no answer within 300 seconds"):
        installed_versions(Command(argv=("pip", "list")))
    with pytest.raises(SourceError, match="no answer within 60 seconds"):
        succeeds(Command(argv=("git", "merge-base", "--is-ancestor", "a", "b")))


# A source distribution of a lock is built with what the lock names: nothing that has no hash is fetched and run.


def write_wheel(folder: Path, name: str) -> str:
    """Write a wheel of one module; return its sha256."""
    info, path = f"{name}-1.dist-info", folder / f"{name}-1-py3-none-any.whl"
    files = {
        f"{name}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = ""
    for each, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows += f"{each},sha256={digest},{len(text)}\n"
    with zipfile.ZipFile(path, "w") as archive:
        for each, text in {**files, f"{info}/RECORD": f"{rows}{info}/RECORD,,\n"}.items():
            archive.writestr(each, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_source(folder: Path) -> str:
    """Write a source distribution that asks for `unlocked` to be built; return its sha256."""
    project = '[build-system]\nrequires = ["unlocked", "locked"]\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    project += '[project]\nname = "source"\nversion = "1"\n'
    metadata = "Metadata-Version: 2.1\nName: source\nVersion: 1\n"
    path = folder / "source-1.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in {"pyproject.toml": project, "backend.py": BACKEND, "PKG-INFO": metadata}.items():
            info = tarfile.TarInfo(f"source-1/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(name="new_venv", scope="module")
def _new_venv(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Command], Command]:
    """Return what lets `python -m venv FOLDER` copy a venv made once, with the pip of this session.

    A new venv unpacks and compiles a pip of its own: eight seconds.
    """
    made = tmp_path_factory.mktemp("made") / "venv"
    venv.create(made, symlinks=True)
    (site,) = made.glob("lib/python*/site-packages")
    package = Path(pip.__file__).parent
    for folder in (package, *package.parent.glob("pip-*.dist-info")):
        shutil.copytree(folder, site / folder.name)

    def copied(command: Command) -> Command:
        is_new = command.argv[1:-1] == ("-m", "venv")
        return replace(command, argv=("cp", "-a", str(made), command.argv[-1])) if is_new else command

    return copied


@pytest.mark.parametrize("is_locked", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_source_is_built_with_what_the_lock_names_and_nothing_else(
    is_locked: bool, tmp_path: Path, new_venv: Callable[[Command], Command]
) -> None:
    wheels = tmp_path / "cache" / "wheels" / "lock"
    wheels.mkdir(parents=True)
    write_wheel(wheels, "unlocked")
    lines = [f"locked==1 --hash=sha256:{write_wheel(wheels, 'locked')}"] if is_locked else []
    lines += ["# no wheel for macOS arm64, Linux x86_64: built from the source distribution there"]
    lines += [f"source==1 \\\n    --hash=sha256:{write_source(wheels)}"]
    lock = Lock(name="lock", text="\n".join(lines) + "\n")

    tools = create_environment(
        interpreter=Path(sys.executable),
        lock=lock,
        destination=tmp_path / "venv",
        backend=tmp_path / "backend",
        cache=tmp_path / "cache",
        environ=fetch_environ(os.environ),
        log=tmp_path / "log",
        reporter=SilentReporter(),
        offline=True,
        wrap=new_venv,
    )

    assert "unlocked" not in tools
    argv = (str(tmp_path / "venv" / "bin" / "python"), "-c", "import source as s; print(s.SAW_UNLOCKED, s.SAW_LOCKED)")
    assert capture(Command(argv=argv)).stdout.split() == ["False", str(is_locked)]


def test_a_source_where_the_lock_promises_a_wheel_is_not_built(
    tmp_path: Path, new_venv: Callable[[Command], Command]
) -> None:
    wheels = tmp_path / "cache" / "wheels" / "lock"
    wheels.mkdir(parents=True)
    lock = Lock(name="lock", text=f"source==1 --hash=sha256:{write_source(wheels)}\n")
    with pytest.raises(BuildEnvironmentError):
        create_environment(
            interpreter=Path(sys.executable),
            lock=lock,
            destination=tmp_path / "venv",
            backend=tmp_path / "backend",
            cache=tmp_path / "cache",
            environ=fetch_environ(os.environ),
            log=tmp_path / "log",
            reporter=SilentReporter(),
            offline=True,
            wrap=new_venv,
        )


def test_every_lock_holds_what_its_sources_are_built_with() -> None:
    """PyYAML, the only one: https://github.com/yaml/pyyaml/blob/6.0.3/pyproject.toml asks for setuptools and Cython."""
    seen = 0
    for lock in (lock_of(recipe, python) for recipe in all_recipes() for python in recipe.pythons):
        parts = {name: text for name, text, _ in lock_parts(lock.text)}
        if "sources" in parts:
            seen += 1
            assert re.match(r"pyyaml==", parts["sources"]), lock.name
            assert {"setuptools", "cython", "wheel"} <= set(re.findall(r"(?m)^([\w-]+)==", parts["wheels"])), lock.name
    assert seen >= 14


# libomp by hash: the declared file or none.


def _provide(tmp_path: Path, libomp: Libomp, *, offline: bool = True) -> Path:
    return provide_libomp(
        libomp,
        python=Path(sys.executable),
        destination=tmp_path / "libomp",
        cache=tmp_path / "cache",
        environ=dict(os.environ),
        log=tmp_path / "log",
        offline=offline,
    )


def _wheel(tmp_path: Path, *names: str) -> Libomp:
    path = tmp_path / "cache" / "libomp" / "cmeel_libomp-1.0-py3-none-macosx_11_0_arm64.whl"
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(f"cmeel.prefix/{name}", name)
    return Libomp(package="cmeel-libomp", version="1.0", sha256=fingerprint(path)["sha256"], minos="11.0")


def test_library_and_header_are_taken_out_and_nothing_else(tmp_path: Path) -> None:
    libomp = _wheel(tmp_path, "lib/libomp.dylib", "lib/libgomp.dylib", "include/omp.h")

    found = sorted(str(path.relative_to(tmp_path / "libomp")) for path in _provide(tmp_path, libomp).rglob("*.*"))

    assert found == ["include/omp.h", "lib/libomp.dylib"]


def test_another_file_than_declared_is_refused_and_not_kept(tmp_path: Path) -> None:
    libomp = _wheel(tmp_path, "lib/libomp.dylib", "include/omp.h").model_copy(update={"sha256": "0" * 64})

    with pytest.raises(BuildEnvironmentError, match="the recipe declares 0000"):
        _provide(tmp_path, libomp)
    assert not list((tmp_path / "cache" / "libomp").iterdir())


def test_a_wheel_without_the_header_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BuildEnvironmentError, match=r"holds no omp\.h"):
        _provide(tmp_path, _wheel(tmp_path, "lib/libomp.dylib"))


@pytest.mark.slow
def test_the_recipes_libomp_is_to_be_had(tmp_path: Path) -> None:
    libomp = find_recipe("2.6").libomp
    assert libomp is not None

    library = _provide(tmp_path, libomp, offline=False) / "lib" / "libomp.dylib"

    assert library.read_bytes()[:4] == b"\xcf\xfa\xed\xfe"
