"""The Python of a build, among fakes of Homebrew's, conda's and pyenv's; the line that adds a package to ours."""

from __future__ import annotations

import json
import os
import shlex
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from mps_build.common import interpreters
from mps_build.common.errors import BuildEnvironmentError
from mps_build.common.interpreters import adding, find_interpreter, find_python, line_that_adds, search_interpreter
from processes import LONGEST_SECONDS

WANTED = "3.14"  # not ours, so that ours never fits


def _python(path: Path, **reported: Any) -> Path:
    """Write a program that answers our question as a Python would."""
    answer = {
        "executable": str(path),
        "base": str(path),
        "real": os.path.realpath(path),
        "short": WANTED,
        "version": f"{WANTED}.1",
        "implementation": "CPython",
        "machine": "arm64",
        "system": "darwin",
        **reported,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{json.dumps(answer)}\nEND\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture(name="environ")
def _environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Two folders on PATH and a pyenv of our own; nothing of this machine."""
    monkeypatch.setattr(interpreters, "_HOMEBREW", (tmp_path / "opt" / "homebrew" / "bin",))
    monkeypatch.setattr(interpreters, "_PYTHON_ORG", tmp_path / "Versions")
    path = os.pathsep.join([str(tmp_path / "conda"), str(tmp_path / "local"), "/bin"])
    return {"PATH": path, "PYENV_ROOT": str(tmp_path / "pyenv")}


def test_an_x86_64_python_is_passed_over_and_named(tmp_path: Path, environ: dict[str, str]) -> None:
    intel = _python(tmp_path / "conda" / f"python{WANTED}", machine="x86_64")
    pypy = _python(tmp_path / "local" / f"python{WANTED}", implementation="PyPy")
    native = _python(tmp_path / "opt" / "homebrew" / "bin" / f"python{WANTED}")

    search = search_interpreter(WANTED, environ=environ)

    assert search.found is not None and search.found.executable == native
    assert search.skipped == {
        str(intel): "runs as x86_64: under Rosetta it builds nothing for arm64",
        str(pypy): "is PyPy; wheels are built for CPython",
    }


def test_where_none_fits_each_that_was_looked_at_is_named(tmp_path: Path, environ: dict[str, str]) -> None:
    _python(tmp_path / "conda" / f"python{WANTED}", machine="x86_64")
    broken = tmp_path / "pyenv" / "versions" / f"{WANTED}.0" / "bin" / "python"
    _python(broken).write_text("#!/bin/sh\necho 'dyld: Library not loaded' >&2\nexit 134\n", encoding="utf-8")

    with pytest.raises(BuildEnvironmentError) as caught:
        find_python(WANTED, environ=environ)

    assert "runs as x86_64" in str(caught.value)
    assert f"{broken}: does not run: dyld: Library not loaded" in str(caught.value)
    assert f"uv python install {WANTED}" in str(caught.value.hint)


def test_pyenvs_newest_patch_release_comes_first(tmp_path: Path, environ: dict[str, str]) -> None:
    for patch in ("9", "10"):
        _python(tmp_path / "pyenv" / "versions" / f"{WANTED}.{patch}" / "bin" / "python")

    assert f"{WANTED}.10" in str(find_interpreter(WANTED, environ=environ))


def test_a_python_that_was_upgraded_in_place_is_another_one(tmp_path: Path, environ: dict[str, str]) -> None:
    link = tmp_path / "opt" / "homebrew" / "bin" / f"python{WANTED}"
    link.parent.mkdir(parents=True)

    def upgraded(patch: str) -> dict[str, str]:
        cellar = tmp_path / "Cellar" / f"{WANTED}.{patch}" / f"python{WANTED}"
        _python(cellar, executable=str(link), base=str(link), real=str(cellar), version=f"{WANTED}.{patch}")
        link.unlink(missing_ok=True)
        link.symlink_to(cellar)
        return find_python(WANTED, environ=environ).identity()

    first, second = upgraded("1"), upgraded("2")

    assert first["path"] == second["path"] == str(link)
    assert first != second


def test_ours_in_a_venv_is_the_same_as_what_the_venv_was_made_from(environ: dict[str, str]) -> None:
    ours = f"{sys.version_info[0]}.{sys.version_info[1]}"

    found = find_python(ours, environ=environ)

    assert found.executable == Path(sys.executable)
    assert found.base == Path(getattr(sys, "_base_executable", sys.executable))
    assert found.real == found.base.resolve()


def test_a_python_that_does_not_answer_stops_the_search(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreters, "_FIRST_SECONDS", 0.2)
    monkeypatch.setattr(interpreters, "_AGAIN_SECONDS", 0.4)
    slow = _python(tmp_path / "conda" / f"python{WANTED}")
    _python(tmp_path / "opt" / "homebrew" / "bin" / f"python{WANTED}")
    text = slow.read_text(encoding="utf-8")
    slow.write_text(text.replace("\n", "\nsleep 9\n", 1), encoding="utf-8")

    with pytest.raises(BuildEnvironmentError, match="no answer within"):
        find_python(WANTED, environ=environ)

    monkeypatch.setattr(interpreters, "_AGAIN_SECONDS", LONGEST_SECONDS)
    slow.write_text(text.replace("\n", "\nsleep 0.3\n", 1), encoding="utf-8")
    assert find_interpreter(WANTED, environ=environ) == slow


SOURCE = "git+https://example.org/mps-build"


@pytest.mark.parametrize(
    ("folder", "file", "line"),
    [
        ("tools/mps-build", "uv-receipt.toml", f"uv tool install --force --with 'ziglang>=0.17' {SOURCE}"),
        ("venvs/mps-build", "pipx_metadata.json", "pipx inject mps-build 'ziglang>=0.17'"),
        ("uv/archive-v0/x3Y", "pyvenv.cfg", f"uvx --with 'ziglang>=0.17' --from {SOURCE} mps-build"),
        ("my env", "pyvenv.cfg", "'{prefix}/bin/python' -m pip install 'ziglang>=0.17'"),
    ],
)
def test_each_kind_of_environment_has_its_own_line(tmp_path: Path, folder: str, file: str, line: str) -> None:
    prefix = tmp_path / folder
    prefix.mkdir(parents=True)
    (prefix / file).touch()

    said = adding("ziglang>=0.17", prefix=prefix, source=SOURCE)

    assert said == line.format(prefix=prefix)
    assert "ziglang>=0.17" in shlex.split(said)


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        ({"url": "https://example.org/mps-build", "vcs_info": {"vcs": "git"}}, SOURCE),
        ({"url": "file:///home/me/mps-build", "dir_info": {}}, "/home/me/mps-build"),
        (None, "mps-build"),
    ],
)
def test_the_source_is_the_one_that_it_came_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, origin: dict[str, object] | None, source: str
) -> None:
    class Found(metadata.Distribution):
        def read_text(self, filename: str) -> str | None:
            return json.dumps(origin) if origin else None

        def locate_file(self, path: object) -> Path:
            raise AssertionError

    monkeypatch.setattr(interpreters, "in_checkout", lambda: False)
    monkeypatch.setattr(metadata, "distribution", lambda name: Found())
    (tmp_path / "uv-receipt.toml").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))

    assert line_that_adds("pillow", session="x") == f"`uv tool install --force --with pillow {source}`"


def test_a_clone_has_its_session() -> None:
    assert line_that_adds("llvmlite>=0.50", session="verify_kernels") == "`nox -s verify_kernels` installs it by itself"
