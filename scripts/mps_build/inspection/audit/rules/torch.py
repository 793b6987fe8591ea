"""F, O, B and G: a torch wheel has its libraries, OpenMP, Accelerate, and was built from the commit it names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..model import WheelFacts
from ..releases import TORCH_CPU, Wanted
from .binaries import is_openmp
from .rule import Hit, rule

_LIBRARIES = tuple(
    f"torch/lib/lib{name}.dylib" for name in ("torch_cpu", "c10", "torch", "torch_python", "shm", "torch_global_deps")
)
_MANAGER = "torch/bin/torch_shm_manager"
_COMMIT = re.compile(r"[0-9a-f]{40}")
_ACCELERATE = "/System/Library/Frameworks/Accelerate.framework/"


@rule("F1")
def required_files_are_there(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """the wheel must hold what it is for"""
    required = (*_LIBRARIES, _MANAGER) if wanted.is_torch else ()
    for member in (*required, *wanted.members):
        if member not in facts.modes:
            yield Hit(member, "is not in the wheel")
    if wanted.is_torch:
        if not any(re.fullmatch(r"torch/_C\..*\.so", name) for name in facts.modes):
            yield Hit("torch/_C.*.so", "is not in the wheel")
        if _MANAGER in facts.modes and not facts.modes[_MANAGER] & 0o111:
            yield Hit(_MANAGER, f"mode {facts.modes[_MANAGER] & 0o7777:#o} is not executable")


@rule("O1", torch_only=True)
def openmp_is_used(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """without OpenMP the CPU part of torch runs on one core"""
    macho = facts.macho(TORCH_CPU)
    if not wanted.openmp or macho is None:
        return
    if not any(is_openmp(dependency.path) for dependency in macho.dependencies):
        yield Hit(TORCH_CPU, "loads no libomp.dylib")
    if not any(is_openmp(member) for member in facts.modes):
        yield Hit(None, "no libomp.dylib in the wheel")
    contents = facts.contents(TORCH_CPU)
    if contents and not any(name.startswith((b"___kmpc", b"_omp_")) for name in contents.undefined):
        yield Hit(TORCH_CPU, "imports nothing of OpenMP (___kmpc_*, _omp_*)")


@rule("B1", torch_only=True)
def accelerate_is_linked(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """matrix products on the CPU go through Accelerate"""
    macho = facts.macho(TORCH_CPU)
    if macho is None:
        return
    kinds = [dependency.kind for dependency in macho.dependencies if dependency.path.startswith(_ACCELERATE)]
    if "strong" not in kinds:
        yield Hit(TORCH_CPU, f"loads Accelerate {kinds[0]}" if kinds else "does not load Accelerate")


@rule("G2")
def commit_is_the_one_asked_for(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """the wheel must be built from the commit that it names and that was asked for"""
    git_version = facts.git_version
    where = f"{facts.distribution}/version.py"
    if wanted.is_torch and not _COMMIT.fullmatch(git_version or ""):
        yield Hit(where, f"git_version is {git_version!r}, not a commit")
    elif wanted.commit and git_version is not None and git_version != wanted.commit:
        yield Hit(where, f"git_version {git_version}; asked for {wanted.commit}")
    elif wanted.commit and git_version is None:
        yield Hit(where, f"gives no git_version; asked for {wanted.commit}")
    contents = facts.contents(TORCH_CPU)
    if wanted.is_torch and contents and wanted.release >= (2, 6) and contents.commit != git_version:
        yield Hit(TORCH_CPU, f"COMMIT_SHA {contents.commit or 'is not there'}; {where} says {git_version}")


RULES = (required_files_are_there, openmp_is_used, accelerate_is_linked, commit_is_the_one_asked_for)
