"""A source distribution of a lock is built with what the lock names: nothing that has no hash is fetched and run."""

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
from mps_build.common.environment import fetch_environ
from mps_build.common.errors import BuildEnvironmentError
from mps_build.common.process import Command as Program
from mps_build.common.process import capture
from mps_build.common.recipe.catalogue import all_recipes
from mps_build.common.recipe.locks import Lock, lock_of
from mps_build.common.reporter import SilentReporter
from mps_build.wheel_build.steps.create_environment import create_environment, lock_parts

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
def _new_venv(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Program], Program]:
    """Return what lets `python -m venv FOLDER` copy a venv made once, with the pip of this session.

    A new venv unpacks and compiles a pip of its own: eight seconds.
    """
    made = tmp_path_factory.mktemp("made") / "venv"
    venv.create(made, symlinks=True)
    (site,) = made.glob("lib/python*/site-packages")
    package = Path(pip.__file__).parent
    for folder in (package, *package.parent.glob("pip-*.dist-info")):
        shutil.copytree(folder, site / folder.name)

    def copied(command: Program) -> Program:
        is_new = command.argv[1:-1] == ("-m", "venv")
        return replace(command, argv=("cp", "-a", str(made), command.argv[-1])) if is_new else command

    return copied


@pytest.mark.parametrize("is_locked", [True, False])
def test_a_source_is_built_with_what_the_lock_names_and_nothing_else(
    is_locked: bool, tmp_path: Path, new_venv: Callable[[Program], Program]
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
    assert capture(Program(argv=argv)).stdout.split() == ["False", str(is_locked)]


def test_a_source_where_the_lock_promises_a_wheel_is_not_built(
    tmp_path: Path, new_venv: Callable[[Program], Program]
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
