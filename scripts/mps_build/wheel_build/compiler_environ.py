"""The variables of a build: given whole, of known origin, each with its reason."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from mps_build.common.environment import SYSTEM_PATH, Toolchain, compiler_environ
from mps_build.common.errors import UsageError
from mps_build.common.recipe.model import Recipe

_SETTING = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


def build_environ(
    recipe: Recipe,
    *,
    inherited: Mapping[str, str],
    venv: Path,
    toolchain: Toolchain,
    jobs: int,
    epoch: int,
    settings: Mapping[str, str],
    extra: Mapping[str, str],
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the compilers' whole environment, and the reason beside each variable that is not plain housekeeping.

    Later wins: the recipe's variables, the toolchain's, `extra` (the pipeline's own), `settings` (--set).
    """
    environ = compiler_environ(inherited)
    environ["PATH"] = os.pathsep.join([str(venv / "bin"), *SYSTEM_PATH, *toolchain.path])
    environ["VIRTUAL_ENV"] = str(venv)
    environ["MAX_JOBS"] = environ["CMAKE_BUILD_PARALLEL_LEVEL"] = str(jobs)
    environ["SOURCE_DATE_EPOCH"] = str(epoch)
    # Bytecode of the venv would differ from run to run, and nothing needs it.
    environ["PYTHONDONTWRITEBYTECODE"] = "1"
    reasons = {
        "MAX_JOBS": "one job per 2 GB of memory",
        "SOURCE_DATE_EPOCH": "the commit's date: same inputs, same bytes",
    }
    for variable in recipe.environment:
        environ[variable.name], reasons[variable.name] = variable.value, variable.reason
    environ |= toolchain.variables
    reasons |= toolchain.reasons
    environ |= extra
    environ |= settings
    reasons |= dict.fromkeys(settings, "given with --set")
    return environ, reasons


def comparable(environ: Mapping[str, str], venv: Path, *, profile: str = "release") -> dict[str, str]:
    """Return the variables that decide what libtorch is: not the home, the job count, or one Python's names.

    In `develop` the version passes too: it says "dirty" from the first edit on, and a commit's name after each commit.
    """
    passing = {
        "SETUPTOOLS_EXT_SUFFIX",
        "HOME",
        "TMPDIR",
        "USER",
        "LOGNAME",
        "TERM",
        "MAX_JOBS",
        "CMAKE_BUILD_PARALLEL_LEVEL",
        "GITHUB_ACTIONS",
    } | ({"PYTORCH_BUILD_VERSION"} if profile == "develop" else set())
    return {
        name: value.replace(str(venv), "VENV")
        for name, value in sorted(environ.items())
        if name not in passing and not name.startswith(("CCACHE_", "SCCACHE_", "AWS_"))
    }


def parse_settings(texts: Iterable[str]) -> dict[str, str]:
    """Return NAME=VALUE arguments as a mapping.

    Raises:
        UsageError: an argument of another form, or a value that CMake's lists or a log line would tear apart.
    """
    settings: dict[str, str] = {}
    for text in texts:
        match = _SETTING.fullmatch(text)
        if not match:
            raise UsageError(f"--set {text!r} is not NAME=VALUE", hint="for example: --set USE_DISTRIBUTED=0")
        name, value = match.groups()
        if ";" in value or "\n" in value or "\0" in value:
            raise UsageError(
                f"--set {name}: the value holds a semicolon or a line break, which CMake takes for a list's separator",
                hint="separate folders with a colon",
            )
        settings[name] = value
    return settings


def check_path(path: Path, *, what: str) -> None:
    """Refuse a folder whose name no CMake project survives.

    Raises:
        UsageError: the path holds a semicolon, a line break, or a colon (PATH is split there).
    """
    bad = next((character for character in ";:\n\r\0" if character in str(path)), None)
    if bad:
        raise UsageError(
            f"{what} {str(path)!r} holds {bad!r}: CMake and PATH split there",
            hint="set MPS_BUILD_WORK to a folder without it",
        )
