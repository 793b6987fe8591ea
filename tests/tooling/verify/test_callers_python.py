"""A bare `verify_mps` asks the torch of the caller's own environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.common.errors import UsageError
from mps_build.verify.target.interpreter import callers_python


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


def test_without_torch_the_error_names_what_was_asked(tmp_path: Path) -> None:
    python = _python(tmp_path / "venv", has_torch=False)

    with pytest.raises(UsageError, match="the active environment has none") as caught:
        callers_python({"VIRTUAL_ENV": str(tmp_path / "venv"), "PATH": "/nowhere"})
    assert str(python) in str(caught.value)
    assert "--python PATH" in str(caught.value.hint)
