"""The Python that holds the torch under test: made for a wheel or a requirement, or found and left as it is."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import Version

from mps_build.common.environment import fetch_environ
from mps_build.common.errors import BuildEnvironmentError
from mps_build.common.interpreters import find_interpreter
from mps_build.common.records.device_record import WheelFile

from ..request import VerifyRequest
from .environments import OLDEST_PYTEST, EnvironmentStore, make_environment, make_overlay
from .interpreter import (
    Interpreter,
    Listing,
    SuiteEnviron,
    describe_interpreter,
    lacks_bytecode,
    listing,
    suite_environ,
    the_one_torch,
)
from .wheel import audited_kind, check_fit, fetch_wheel, full_requirements, name_wheel, sha256_of

Extras = Callable[[Path, Interpreter], tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The interpreter that holds the torch under test, and how it came about."""

    interpreter: Interpreter
    environ: SuiteEnviron
    document: Mapping[str, Any]
    wheel: WheelFile | None = None
    before: Listing | None = None

    def changes(self) -> tuple[str, ...] | None:
        """Return what changed in a Python that is not ours since we first saw it; None for one that we made."""
        return None if self.before is None else listing(self.interpreter).changed_since(self.before)


def wanted_version(request: VerifyRequest) -> str | None:
    """Return the version under test if the arguments alone tell it."""
    if request.is_wheel:
        return name_wheel(Path(request.target or "").absolute()).version
    return request.exact_version


def prepare_target(
    request: VerifyRequest, store: EnvironmentStore, *, extras: Extras | None = None, pytest: bool = True
) -> Target:
    """Return the Python under test, ready to run the suite.

    Args:
        extras: what else goes into a venv that is made, by the wheel and its Python.
        pytest: whether an interpreter that is not ours needs one beside it.

    Raises:
        UsageError: no such wheel, requirement or interpreter, or one that cannot be used here.
        BuildEnvironmentError: pip cannot install it.
    """
    if request.target is None:
        return _foreign_python(request, store, pytest=pytest)
    python = _chosen_python(request.python)
    if request.is_wheel:
        wheel = name_wheel(Path(request.target).absolute())
        check_fit(wheel, python)
        path = wheel.path
    else:
        path = fetch_wheel(request.requirement, python, store)
    sha256 = sha256_of(path)
    wanted = extras(path, python) if extras else full_requirements(path) if request.full else ()
    made = make_environment(path, sha256, python, store, extras=wanted)
    environ = suite_environ(os.environ)
    return Target(
        interpreter=describe_interpreter(made, environ=environ.variables),
        environ=environ,
        document={**request.named_target(), "wheel": path.name},
        wheel=WheelFile(file=path.name, sha256=sha256, kind=audited_kind(path)),
    )


def _foreign_python(request: VerifyRequest, store: EnvironmentStore, *, pytest: bool) -> Target:
    environ = suite_environ(os.environ)
    interpreter = describe_interpreter(Path(request.python or sys.executable), environ=environ.variables)
    folder, version = the_one_torch(interpreter)
    sys.dont_write_bytecode = True  # it may be the Python that runs us: our own late imports must not write into it
    before = listing(interpreter)
    overlay = _overlay(interpreter, store) if pytest else None
    bytecode = store.cache / "bytecode" if lacks_bytecode(interpreter, folder) else None
    return Target(
        interpreter=interpreter,
        environ=suite_environ(os.environ, overlay=overlay, bytecode=bytecode),
        document={**request.named_target(), "torch": str(folder), "version": version, "own_pytest": overlay is None},
        before=before,
    )


def _overlay(interpreter: Interpreter, store: EnvironmentStore) -> Path | None:
    """Return the folder with pytest; None where none can be fetched and the interpreter has one that will do."""
    try:
        return make_overlay(interpreter, store)
    except BuildEnvironmentError:
        if interpreter.pytest is None or Version(interpreter.pytest) < OLDEST_PYTEST:
            raise
        store.reporter.line(f"pytest could not be fetched: the environment's own {interpreter.pytest} runs the suite")
        return None


def _chosen_python(wanted: str | None) -> Interpreter:
    environ = fetch_environ(os.environ)
    if wanted is None:
        return describe_interpreter(Path(sys.executable), environ=environ)
    if re.fullmatch(r"3\.\d+t?", wanted):
        return describe_interpreter(find_interpreter(wanted, environ=environ), environ=environ)
    return describe_interpreter(Path(wanted), environ=environ)
