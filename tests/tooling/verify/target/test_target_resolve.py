"""The Python under test: what cannot be used is refused by name, and what is not ours stays as it is."""

from __future__ import annotations

import dataclasses
import os
import py_compile
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from mps_build.common.errors import BuildEnvironmentError, UsageError
from mps_build.common.reporting import SilentReporter
from mps_build.verify import VerifyRequest
from mps_build.verify.target import resolve as target
from mps_build.verify.target.environments import EnvironmentStore
from mps_build.verify.target.interpreter import (
    Interpreter,
    callers_python,
    describe_interpreter,
    listing,
    machine_of_program,
    suite_environ,
    the_one_torch,
)
from mps_build.verify.target.wheel import check_fit, fetch_wheel, name_wheel

ENVIRON = {"PATH": os.environ["PATH"]}
PLATFORMS = {"mac": "macosx-14.0-arm64", "mac_universal": "macosx-11-universal2", "linux": "linux-x86_64"}


def add_torch(folder: Path, version: str | None) -> None:
    (folder / "torch").mkdir(parents=True, exist_ok=True)
    (folder / "torch" / "__init__.py").write_text("")
    if version:
        metadata = folder / f"torch-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")


def python_with(path: Path, *folders: Path) -> Path:
    """Make an interpreter that sees these folders, as an environment's own launcher would."""
    lines = os.pathsep.join(str(folder) for folder in folders)
    path.write_text(f'#!/bin/sh\nPYTHONPATH={lines} exec {sys.executable} "$@"\n')
    path.chmod(0o755)
    return path


def interpreter(system: str = "mac", short: str = "3.11") -> Interpreter:
    return Interpreter(
        executable=Path("/python"),
        version=f"{short}.1",
        short=short,
        implementation="CPython",
        machine="x86_64" if system == "linux" else "arm64",
        system="Linux" if system == "linux" else "Darwin",
        platform=PLATFORMS[system],
        folders=(),
        torches=(),
    )


def wheel(tmp_path: Path, name: str) -> Path:
    with zipfile.ZipFile(tmp_path / name, "w") as file:
        file.writestr("torch/__init__.py", "")
    return tmp_path / name


def test_the_one_torch_is_found_with_its_version(tmp_path: Path) -> None:
    add_torch(tmp_path / "site", "2.13.0")

    found = describe_interpreter(python_with(tmp_path / "python", tmp_path / "site"), environ=ENVIRON)

    assert the_one_torch(found) == (tmp_path / "site" / "torch", "2.13.0")


def test_an_interpreter_without_torch_is_refused(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    found = describe_interpreter(python_with(tmp_path / "python", tmp_path / "site"), environ=ENVIRON)

    with pytest.raises(UsageError, match="has no torch"):
        the_one_torch(found)


def test_two_torches_on_the_path_are_refused_with_both_places(tmp_path: Path) -> None:
    add_torch(tmp_path / "one", "2.13.0")
    add_torch(tmp_path / "two", None)
    found = describe_interpreter(python_with(tmp_path / "python", tmp_path / "one", tmp_path / "two"), environ=ENVIRON)

    with pytest.raises(UsageError) as caught:
        the_one_torch(found)

    assert "2.13.0 in" in str(caught.value) and "of unknown version in" in str(caught.value)


def test_one_torch_with_two_versions_on_record_is_refused(tmp_path: Path) -> None:
    add_torch(tmp_path / "site", "2.13.0")
    add_torch(tmp_path / "site", "2.12.0")
    found = describe_interpreter(python_with(tmp_path / "python", tmp_path / "site"), environ=ENVIRON)

    with pytest.raises(UsageError, match=r"2\.1\d\.0 and 2\.1\d\.0"):
        the_one_torch(found)


def test_a_record_of_a_torch_that_is_gone_does_not_count(tmp_path: Path) -> None:
    add_torch(tmp_path / "site", "2.13.0")
    (tmp_path / "site" / "torch" / "__init__.py").unlink()
    (tmp_path / "site" / "torch").rmdir()
    found = describe_interpreter(python_with(tmp_path / "python", tmp_path / "site"), environ=ENVIRON)

    assert found.torches == ()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file"),
        (b"", "does not answer as a Python"),
        (b"#!/bin/sh\necho hello\n", "does not answer as a Python: hello"),
        (b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xb7\x00" + bytes(44), "it is for aarch64 (Linux)"),
    ],
)
def test_what_is_no_python_of_this_machine_is_refused(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "python"
    if content is not None:
        path.write_bytes(content)
        path.chmod(0o755)

    with pytest.raises(UsageError) as caught:
        describe_interpreter(path, environ=ENVIRON)

    assert words in str(caught.value)


def test_an_environments_folder_stands_for_its_python(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    python_with(tmp_path / "bin" / "python", tmp_path)

    assert describe_interpreter(tmp_path, environ=ENVIRON).executable == tmp_path / "bin" / "python"
    with pytest.raises(UsageError, match="folder without bin/python"):
        describe_interpreter(tmp_path / "bin", environ=ENVIRON)


def test_a_thin_program_of_a_mac_is_named() -> None:
    assert machine_of_program(bytes.fromhex("cffaedfe0c000001")) == "arm64 (macOS)"
    assert machine_of_program(bytes.fromhex("cffaedfe07000001")) == "x86_64 (macOS)"
    assert machine_of_program(b"#!/bin/sh") is None


def test_a_listing_sees_a_new_file_and_a_changed_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    here = Interpreter(
        **{name: getattr(interpreter(), name) for name in Interpreter.__slots__} | {"folders": (tmp_path,)}
    )
    before = listing(here)

    assert listing(here).changed_since(before) == ()
    (tmp_path / "b").write_text("2")
    (tmp_path / "a").write_text("11")

    assert listing(here).changed_since(before) == (str(tmp_path / "a"), str(tmp_path / "b"))


@pytest.mark.parametrize(
    ("name", "system", "short", "words"),
    [
        ("torch-2.13.0-cp311-cp311-macosx_14_0_arm64.whl", "mac", "3.11", None),
        ("torch-2.13.0-cp311-none-macosx_11_0_arm64.whl", "mac_universal", "3.11", None),
        ("torch-2.13.0-cp311-cp311-macosx_11_0_universal2.whl", "mac", "3.11", None),
        (
            "torch-2.13.0-cp311-cp311-macosx_14_0_arm64.whl",
            "linux",
            "3.11",
            "is for macosx_14_0_arm64; this Python is for",
        ),
        ("torch-2.13.0-cp311-cp311-macosx_14_0_x86_64.whl", "mac", "3.11", "is for macosx_14_0_x86_64"),
        ("torch-2.13.0-cp311-cp311-win_amd64.whl", "mac", "3.11", "is for win_amd64"),
        ("torch-2.13.0-cp311-cp311-macosx_14_0_arm64.whl", "mac", "3.12", "is for Python 3.11;"),
        ("torch-2.13.0-cp313-cp313t-macosx_14_0_arm64.whl", "mac", "3.13", "is for Python 3.13t;"),
        ("torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl", "linux", "3.11", None),
        ("torch-2.13.0-cp310-abi3-macosx_14_0_arm64.whl", "mac", "3.12", None),
        ("torch-2.13.0-py3-none-any.whl", "linux", "3.14", None),
    ],
)
def test_a_wheel_fits_its_platform_and_its_python(
    tmp_path: Path, name: str, system: str, short: str, words: str | None
) -> None:
    named = name_wheel(wheel(tmp_path, name))

    if words is None:
        check_fit(named, interpreter(system, short))
    else:
        with pytest.raises(UsageError) as caught:
            check_fit(named, interpreter(system, short))
        assert words in str(caught.value)


def test_what_is_no_wheel_of_torch_is_refused(tmp_path: Path) -> None:
    (tmp_path / "torch-2.13.0-cp311-cp311-macosx_14_0_arm64.whl").write_bytes(b"PK cut off")

    for name, words in (
        ("torch-2.13.0-cp311-cp311-macosx_14_0_arm64.whl", "is not a complete zip file"),
        ("torch-nothing.whl", "torch-nothing.whl"),
        ("torch-1.0-py3-none-any.whl", "no such file"),
    ):
        if name.startswith("torch-nothing"):
            wheel(tmp_path, name)
        with pytest.raises(UsageError) as caught:
            name_wheel(tmp_path / name)
        assert words in str(caught.value)
    with pytest.raises(UsageError, match="is a wheel of numpy"):
        name_wheel(wheel(tmp_path, "numpy-2.0-py3-none-any.whl"))


@pytest.mark.parametrize("text", ["nonsense==", "numpy==2", "torch @"])
def test_what_is_no_requirement_of_torch_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        VerifyRequest(target=text).requirement  # noqa: B018


@pytest.mark.parametrize("fault", ["fault.py", ":fault", "nowhere.py:fault"])
def test_a_fault_that_cannot_be_loaded_is_refused_before_anything_is_made(fault: str) -> None:
    with pytest.raises(UsageError, match="--inject"):
        VerifyRequest(fault=fault).check_fault()


def test_nothing_that_changes_results_reaches_the_suite() -> None:
    made = suite_environ(
        {
            "PATH": "/bin",
            "PYTORCH_ENABLE_MPS_FALLBACK": "1",
            "PYTORCH_MPS_FAST_MATH": "1",
            "DYLD_INSERT_LIBRARIES": "x",
            "PYTHONPATH": "/mine",
            "PYTEST_ADDOPTS": "-x",
            "OMP_NUM_THREADS": "2",
        }
    )

    assert {"PYTORCH_ENABLE_MPS_FALLBACK", "PYTORCH_MPS_FAST_MATH", "DYLD_INSERT_LIBRARIES"} == set(made.removed)
    assert dict(made.kept) == {"OMP_NUM_THREADS": "2"}
    assert not {"PYTHONPATH", "PYTEST_ADDOPTS", *made.removed} & set(made.variables)


@pytest.mark.parametrize(("own", "stands_in"), [("8.4.2", True), ("6.2.5", False), (None, False)])
def test_without_an_index_the_interpreters_own_pytest_will_do_if_it_is_new_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str | None, stands_in: bool
) -> None:
    def unreachable(interpreter: Interpreter, store: EnvironmentStore, **_: object) -> Path:
        raise BuildEnvironmentError("no index")

    monkeypatch.setattr(target, "make_overlay", unreachable)
    store = EnvironmentStore(cache=tmp_path, environ=ENVIRON, log=tmp_path / "log", reporter=SilentReporter())
    add_torch(tmp_path / "site", "2.13.0")
    if own:
        metadata = tmp_path / "site" / f"pytest-{own}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pytest\nVersion: {own}\n")
    else:
        bare = dataclasses.replace(interpreter(), torches=((Path(), "1"),))
        monkeypatch.setattr(target, "describe_interpreter", lambda *_, **__: bare)
    request = VerifyRequest(python=str(python_with(tmp_path / "python", tmp_path / "site")))

    if stands_in:
        assert target.prepare_target(request, store).document["own_pytest"] is True
    else:
        with pytest.raises(BuildEnvironmentError, match="no index"):
            target.prepare_target(request, store)


@pytest.mark.parametrize("compiled", [False, True])
def test_what_uv_left_uncompiled_is_compiled_once_and_not_in_the_users_environment(
    tmp_path: Path, compiled: bool
) -> None:
    """Each of --quick's processes compiled all of torch: 3 s of 5."""
    store = EnvironmentStore(cache=tmp_path / "cache", environ=ENVIRON, log=tmp_path / "log", reporter=SilentReporter())
    add_torch(site := tmp_path / "site", "2.13.0")
    (site / "torch" / "__init__.py").write_text("import torch.other")
    (site / "torch" / "other.py").write_text("")
    if compiled:
        py_compile.compile(str(site / "torch" / "__init__.py"))
    request = VerifyRequest(python=str(python_with(tmp_path / "python", site)))

    found = target.prepare_target(request, store, pytest=False)
    command = (str(found.interpreter.executable), "-c", "import torch.other")
    subprocess.run(command, env=found.environ.variables, check=True)

    kept = {path.name.partition(".")[0] for path in (tmp_path / "cache" / "bytecode").rglob("*.pyc")}
    assert {"__init__", "other"} <= kept if not compiled else not kept
    assert found.changes() == ()
    assert len(list(site.rglob("*.pyc"))) == compiled


def test_an_exact_requirement_finds_the_wheel_that_it_got_before(tmp_path: Path) -> None:
    store = EnvironmentStore(
        cache=tmp_path, environ=ENVIRON, log=tmp_path / "log", reporter=SilentReporter(), offline=True
    )
    wheels = tmp_path / "wheels" / "3.11-arm64"
    wheels.mkdir(parents=True)
    for version in ("2.13.0+cpu", "2.13.1", "2.14.0.dev20260901"):
        wheel(wheels, f"torch-{version}-cp311-cp311-linux_x86_64.whl")

    def fetched(requirement: str) -> str:
        return fetch_wheel(requirement, interpreter(), store).name.split("-")[1]

    assert fetched("torch==2.13.0") == "2.13.0+cpu"
    assert fetched("torch == 2.14.0.dev20260901") == "2.14.0.dev20260901"
    with pytest.raises(BuildEnvironmentError, match="--offline does not allow fetching it"):
        fetched("torch==2.14.0")
    with pytest.raises(BuildEnvironmentError, match="--offline does not allow fetching it"):
        fetched("torch>=2.13")


def _python(folder: Path, *, has_torch: bool) -> Path:
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\nexit {0 if has_torch else 1}\n", encoding="utf-8")
    python.chmod(0o755)
    return python


def test_the_active_environment_comes_first_and_the_first_with_torch_is_taken(tmp_path: Path) -> None:
    venv, conda, plain = (_python(tmp_path / name, has_torch=True) for name in ("venv", "conda", "plain"))
    environ = {
        "VIRTUAL_ENV": str(tmp_path / "venv"),
        "CONDA_PREFIX": str(tmp_path / "conda"),
        "PATH": str(plain.parent),
    }

    assert callers_python(environ) == venv
    venv.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    assert callers_python(environ) == conda
    assert callers_python({"PATH": str(plain.parent)}) == plain


def test_the_environment_of_noxs_session_is_not_the_callers(tmp_path: Path) -> None:
    _python(tmp_path / "session", has_torch=True)
    mine = _python(tmp_path / "mine", has_torch=True)
    environ = {
        "VIRTUAL_ENV": str(tmp_path / "session"),
        "PATH": str(tmp_path / "session" / "bin"),
        "MPS_BUILD_CALLER_VIRTUAL_ENV": "",
        "MPS_BUILD_CALLER_CONDA_PREFIX": "",
        "MPS_BUILD_CALLER_PATH": str(mine.parent),
    }

    assert callers_python(environ) == mine


def test_without_torch_the_error_names_where_it_was_searched(tmp_path: Path) -> None:
    python = _python(tmp_path / "venv", has_torch=False)

    with pytest.raises(UsageError, match="the active environment has none") as caught:
        callers_python({"VIRTUAL_ENV": str(tmp_path / "venv"), "PATH": "/nowhere"})
    assert str(python) in str(caught.value)
    assert "--python PATH" in str(caught.value.hint)
