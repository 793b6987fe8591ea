"""The Python under test with Accelerate and Transformers in it: made, or found and asked what it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from packaging.utils import parse_wheel_filename

from mps_build.common.errors import BuildEnvironmentError, UsageError
from mps_build.common.json_text import parse_json
from mps_build.common.process import Command, capture

from ..target.environments import EnvironmentStore
from ..target.interpreter import Interpreter, SuiteEnviron
from ..target.resolve import Target, prepare_target
from .training_request import TrainingRequest
from .versions import Versions, choose, installed_fault, refuse_old_torch

_NEEDED = {"accelerate": ("accelerate", "scikit-learn"), "transformers": ("accelerate", "transformers")}
_ASK = """
import json
from importlib import metadata
found = {}
for name in ("accelerate", "transformers", "scikit-learn", "numpy"):
    try:
        found[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        found[name] = None
print(json.dumps(found))
"""


def prepare_training_target(request: TrainingRequest, store: EnvironmentStore, table: Versions) -> Target:
    """Return the Python that runs the workloads.

    Raises:
        UsageError: torch or Python is too old for the libraries; or what `verify_mps` refuses.
        BuildEnvironmentError: pip cannot install them, or an interpreter that is not ours lacks one.
    """
    if request.target is None:
        return _found(request, store, table)

    def libraries(wheel: Path, python: Interpreter) -> tuple[str, ...]:
        version = str(parse_wheel_filename(wheel.name)[1])
        chosen = choose(table, torch=version, python=python.short, asked=request.asked_versions)
        return chosen.requirements(request.parts)

    return prepare_target(request, store, extras=libraries)


def _found(request: TrainingRequest, store: EnvironmentStore, table: Versions) -> Target:
    if request.asked_versions:
        raise UsageError(
            "--accelerate and --transformers choose what is installed, and nothing is installed into --python",
            hint="name a wheel or a requirement as well: verify_training -- torch==2.13.0 --transformers 5.23.0",
        )
    target = prepare_target(request, store, pytest=False)
    version = target.document.get("version")
    refuse_old_torch(table, version)
    installed = _installed(target.interpreter, target.environ)
    _check_installed(request, table, target.interpreter, version, installed)
    return replace(target, document={**target.document, "libraries": dict(installed)})


def _installed(interpreter: Interpreter, environ: SuiteEnviron) -> Mapping[str, str | None]:
    answer = capture(Command(argv=(str(interpreter.executable), "-c", _ASK), environ=environ.variables))
    try:
        found: dict[str, str | None] = parse_json(answer.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError) as error:
        raise UsageError(f"{interpreter.executable}: does not say what is installed: {answer.stderr[-300:]}") from error
    return found


def _check_installed(
    request: TrainingRequest,
    table: Versions,
    interpreter: Interpreter,
    torch: str | None,
    installed: Mapping[str, str | None],
) -> None:
    """Refuse an environment that lacks a library, or has one that is too new for its torch."""
    needed = dict.fromkeys(name for part in request.parts for name in _NEEDED[part])
    missing = [name for name in needed if not installed.get(name)]
    if missing:
        wanted = dict.fromkeys(missing)
        if torch is not None:
            chosen = choose(table, torch=torch, python=interpreter.short)
            versions = {"accelerate": chosen.accelerate, "transformers": chosen.transformers}
            wanted = dict.fromkeys(f"{name}=={versions[name]}" if name in versions else name for name in missing)
        raise BuildEnvironmentError(
            f"{interpreter.executable}: has no {', '.join(missing)} (nothing is installed into it)",
            hint=f"{interpreter.executable} -m pip install {' '.join(wanted)}; or have an environment made: "
            "verify_training -- torch==2.13.0",
        )
    versions = {name: version for name in ("accelerate", "transformers") if (version := installed.get(name))}
    if "transformers" not in request.parts:
        versions.pop("transformers", None)
    if torch is not None:
        fault = installed_fault(table, torch=torch, python=interpreter.short, versions=versions)
        if fault is not None:
            raise UsageError(
                f"{interpreter.executable}: {fault}", hint="install the version that fits, or a newer torch"
            )
