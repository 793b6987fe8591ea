"""A program with an `mps` device: what it needs, its environment, and how it is started. What others may call."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mps_build.common.errors import OwnFault, UsageError
from mps_build.common.files import write_whole
from mps_build.common.process import Command, capture, run_in_foreground
from mps_build.common.reporting import Reporter

from .builder.build import Built, build, held, simulation_folder
from .builder.root import Root, torch_variables
from .builder.source import debian_tests, tree_to_build
from .builder.torch_tree import is_debian_tree
from .kept import drop_damaged_libraries
from .libraries import plugin_folder
from .releases import Release, built_release, find_release, has_debian_torch

_PYTHON = Path(__file__).resolve().parent / "python"
_SOURCE, _OMP = _PYTHON / "metal_source.py", _PYTHON / "omp.h"
_PROGRAM_OF_CXX = """#!/bin/sh
# Written by mps_build: the C++ compiler of a simulated torch.
exec {clang} --driver-mode=g++ --sysroot={root} --ld-path={root}/usr/lib/llvm-19/bin/ld.lld \\
  -idirafter {root}/programs/include "$@" -fopenmp=libgomp
"""
# Of the session's own environment and of the caller's interpreter: a program's Python is another one.
_NOT_PASSED = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "CONDA_PREFIX", "LD_PRELOAD")
Torch = Literal["debian", "built"]
_MACOS = re.compile(r"(\d{2})(\.\d{1,2})?")
# MPS needs 12.3; a version of two parts says the second as well, one of one part is its first.
_OLDEST_MACOS, _NEWEST_MACOS = (12, 3), 26


def check_macos(text: str) -> None:
    """Refuse what is not a version of macOS that any MPS runs on.

    Raises:
        UsageError: naming what may be said.
    """
    found = _MACOS.fullmatch(text)
    version = (int(found[1]), int((found[2] or ".0")[1:])) if found else (0, 0)
    if not version >= _OLDEST_MACOS or version[0] > _NEWEST_MACOS:
        oldest = ".".join(map(str, _OLDEST_MACOS))
        raise UsageError(f"--macos {text}: is not a version from {oldest} to {_NEWEST_MACOS}", hint="such as 14.4")


def choose_release(version: str, *, source: Path | None = None, torch: Torch | None = None) -> Release:
    """Return what is known of a release, or what its tree says of it where Linux's torch is built from that.

    Args:
        source: the user's tree. torch: whose torch stands below; None: Debian's where there is one.

    Raises:
        UsageError: a torch is to be built from no tree.
        SourceError: it cannot be simulated so, or the tree is of another release or not whole.
    """
    is_built = torch == "built" or (torch is None and source is not None and not has_debian_torch(version))
    if not is_built:
        return find_release(version)
    if source is None:
        raise UsageError(
            "--torch built needs the tree that it is built from",
            hint=f"nox -s simulate -- v{version} --torch built --source ~/pytorch",
        )
    tree = tree_to_build(version, source)
    return built_release(version, tree, is_debian=is_debian_tree(tree.root))


def provide(
    version: str,
    *,
    source: Path | None = None,
    torch: Torch | None = None,
    rebuild: bool = False,
    offline: bool = False,
    trust: bool = False,
    jobs: int,
    reporter: Reporter,
) -> Built:
    """Return the simulation of a release, built only as far as it is not there yet.

    Args:
        source: a tree of the release; None: Debian's. torch: Linux's own; None: Debian's where there is one.
        rebuild: start from no object of the back end. offline: build nothing.
        trust: run the kernels of a wheel of which the index gives no hash.

    Raises:
        UsageError, SourceError: the release cannot be simulated, or the tree is of another.
        HostError, BuildEnvironmentError, PatchError, CompileError: it cannot be built here.
    """
    release = choose_release(version, source=source, torch=torch)
    for folder in (simulation_folder(), source):
        check_line(folder)
    drop_damaged_libraries(_compiled_sources(), reporter)
    return build(release, source=source, rebuild=rebuild, offline=offline, trust=trust, jobs=jobs, reporter=reporter)


def upstream_tests(version: str, *, reporter: Reporter) -> Path:
    """Return the folder of a release's own tests, PyTorch's `test`; pytest's settings lie beside it.

    Raises:
        SourceError: they could not be had.
    """
    home = simulation_folder()
    with held(home / "lock", reporter) as watched:
        tests = debian_tests(find_release(version), home, log=home / "logs" / "tests.log", reporter=watched)
    return tests / "test"


def simulated_environ(
    built: Built,
    *,
    macos: str,
    environ: Mapping[str, str],
    timing: int | None = None,
    libraries: Path | None = None,
) -> dict[str, str]:
    """Return the environment of a program whose `python` has an `mps` device, made from the caller's.

    Args:
        timing: draws when each commit and in which order its threads run; None: at once, in the plain order.
        libraries: an environment whose `python` it is (`libraries.py`); None: the root's own.
    """
    kept = {name: value for name, value in environ.items() if name not in _NOT_PASSED}
    # nox puts its own environment first; the caller's path is handed on beside it.
    path = environ.get("MPS_BUILD_CALLER_PATH") or environ.get("PATH", os.defpath)
    (cache := _compiled_sources()).mkdir(parents=True, exist_ok=True)
    ours_first = [str(built.folder), *filter(None, [environ.get("LD_LIBRARY_PATH")])]
    return {
        # A part of Debian's torch (UCX) answers a crash with 40 lines of its own, and hides what ours says.
        "UCX_HANDLE_ERRORS": "none",
        # The user's own packages are for another Python than the root's.
        "PYTHONNOUSERSITE": "1",
        **{name: value for name, value in kept.items() if not name.startswith("MPS_BUILD_CALLER_")},
        "PATH": os.pathsep.join((*([str(libraries / "bin")] if libraries else []), str(_programs(built.root)), path)),
        "LD_LIBRARY_PATH": os.pathsep.join(ours_first),
        **torch_variables(built.site),
        "CXX": environ.get("CXX") or str(_programs(built.root) / "c++"),
        "MPS_BUILD_MODULES": str(plugin_folder()),
        "MPS_BUILD_MACOS": macos,
        "MPS_BUILD_KERNELS": str(built.kernels),
        "MPS_BUILD_PYTHON": str(built.root.python),
        "MPS_BUILD_METAL_SOURCE": str(_SOURCE),
        "MPS_BUILD_METAL_CACHE": str(cache),
        **({} if timing is None else {"MPS_BUILD_TIMING": str(timing)}),
    }


def run_program(argv: Sequence[str], *, environ: Mapping[str, str]) -> int:
    """Run a program of a simulated environment where the caller stands; return its exit status, as a shell gives it."""
    return run_in_foreground(Command(argv=tuple(argv), environ=environ))


def program_argv(built: Built, argv: Sequence[str], *, libraries: Path | None = None) -> tuple[str, ...]:
    """Return a program's arguments with `python` and `python3` as the simulated interpreter."""
    name, *rest = argv
    own = {"python", "python3", built.root.python.name}
    python = libraries / "bin/python" if libraries else built.root.python
    return (str(python) if name in own else name, *rest)


def check_line(path: Path | None) -> None:
    """Refuse a path that is more than one line: lists of paths are read line by line.

    Raises:
        UsageError: naming it.
    """
    if path is not None and not set("\n\r").isdisjoint(str(path)):
        raise UsageError(
            f"{str(path)!r} holds a line break", hint="give the folder another name (or set MPS_BUILD_CACHE)"
        )


def _compiled_sources() -> Path:
    """Return where Metal source text that a program compiled is kept."""
    return simulation_folder() / "metal" / _digest(_PYTHON)


def _programs(root: Root) -> Path:
    """Return the folder in which `python` and `python3` are the interpreter that has torch, and `c++` its compiler.

    torch.compile starts a C++ compiler (CXX). OpenMP's pragmas are ignored: clang's own OpenMP is no part of the root.
    """
    folder = root.path / "programs"
    folder.mkdir(exist_ok=True)
    text = _PROGRAM_OF_CXX.format(root=shlex.quote(str(root.path)), clang=shlex.quote(str(root.clang)))
    for path, words, mode in (
        (folder / "c++", text, 0o755),
        (folder / "include/omp.h", _OMP.read_text("utf-8"), 0o644),
    ):
        if not path.is_file() or path.read_text(encoding="utf-8") != words:
            write_whole(path, words, mode=mode)
    for name in ("python", "python3", root.python.name):
        link = folder / name
        if not link.is_symlink():
            beside = folder / f".{name}.{os.getpid()}"
            beside.symlink_to(root.python)
            beside.replace(link)
    return folder


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


# Read from the library by the interpreter that loads it: which classes have which methods, what torch registers.
_ASK = """
import ctypes, json, sys
import torch
library = ctypes.CDLL("libmps_simulated.so")
library.sim_selectors.restype = ctypes.c_char_p
needed, implemented = json.loads(library.sim_selectors())
names = torch._C._dispatch_get_registrations_for_dispatch_key("MPS")
print(json.dumps({"needed": needed, "implemented": implemented, "registrations": len(names)}))
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Counts; `missing` names the selectors that no class has."""

    needed: int
    missing: tuple[str, ...]
    registrations: int

    @property
    def implemented(self) -> int:
        """How many of the needed selectors some class has."""
        return self.needed - len(self.missing)


def measure(built: Built, *, macos: str) -> Coverage:
    """Return what a built simulation covers.

    Raises:
        OwnFault: its library does not load.
    """
    environ = simulated_environ(built, macos=macos, environ=os.environ)
    argv = (str(built.root.python), "-c", _ASK)
    answer = capture(Command(argv=argv, environ=environ), timeout_seconds=300)
    if not answer.ok:
        said = (answer.stderr.strip().splitlines() or [f"exit {answer.exit}"])[-1]
        raise OwnFault(
            f"the simulated device does not load: {said}", hint=f"try: {built.root.python} -c 'import torch'"
        )
    found: dict[str, Any] = json.loads(answer.stdout)
    missing = sorted(set(found["needed"]) - set(found["implemented"]))
    return Coverage(needed=len(found["needed"]), missing=tuple(missing), registrations=found["registrations"])
