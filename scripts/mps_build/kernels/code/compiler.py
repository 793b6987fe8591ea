"""LLVM's part: read bitcode, optimise, and emit an object file. Only here llvmlite is imported.

llvmlite 0.50 has LLVM 22, which reads Metal's typed pointers and knows bfloat on every machine; older ones do not.
"""

from __future__ import annotations

import hashlib
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from ...common.errors import BuildEnvironmentError
from ...common.interpreters import line_that_adds
from ...inspection.limits import Malformed

OLDEST = (0, 50)
NOT_UTF8 = "the bitcode holds a name or a text that is not UTF-8"
# What code is compiled for: one of few levels, so that results and cached code are equal on most machines.
_LEVELS = {"x86_64": (("x86-64-v3", ("avx2", "fma", "f16c", "bmi2")), ("x86-64-v2", ())), "aarch64": (("generic", ()),)}
# A processor that code can be compiled for, wherever it is compiled.
Processor = Literal["x86_64", "aarch64"]
# Code generation at level 0: each kernel runs a few thousand threads, so that compiling is what takes the time
# (9 ms a kernel; at level 1 it is 22 ms, with all passes of O1 39 ms).
PASSES = "always-inline,dce,sroa,instcombine,simplifycfg"


def require_llvm() -> None:
    """Make sure that llvmlite is there before any work begins.

    Raises:
        BuildEnvironmentError: it is missing or too old.
    """
    hint = line_that_adds("llvmlite>=0.50", session="verify_kernels")
    try:
        import llvmlite
    except ImportError as error:
        raise BuildEnvironmentError(
            f"kernels are compiled by llvmlite, which is not installed ({error})", hint=hint
        ) from error
    numbers = tuple(int(part) for part in llvmlite.__version__.split(".")[:2] if part.isdigit())
    if numbers < OLDEST:
        raise BuildEnvironmentError(
            f"llvmlite {llvmlite.__version__} has an LLVM that cannot compile Metal's bitcode for this machine",
            hint=hint,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The machine that code is compiled for."""

    triple: str
    datalayout: str
    cpu: str
    machine: Any


@cache
def target_of(machine: Processor | None, level: int = 0) -> Target:
    """Return a processor under Linux, of the kind that most have; None: this machine."""
    if machine is None:
        return host_target(level)
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.set_option("", "--fast-isel=0")
    triple, cpu = f"{machine}-unknown-linux-gnu", _LEVELS[machine][0][0]
    code = llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=level, codemodel="jitdefault", jit=True)
    return Target(triple=triple, datalayout=str(code.target_data), cpu=cpu, machine=code)


@cache
def host_target(level: int = 0) -> Target:
    """Return this machine; `level` is LLVM's optimisation level of code generation (0 to 3)."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # LLVM 22's quick instruction selection at level 0 takes a wrong branch in kernels of bfloat (hermite_polynomial_h).
    llvm.set_option("", "--fast-isel=0")
    features = llvm.get_host_cpu_features()
    levels = _LEVELS.get(platform.machine().replace("arm64", "aarch64"), (("", ()),))
    cpu = next(name for name, needed in levels if all(features.get(each) for each in needed))
    triple = llvm.get_default_triple()
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, opt=level, codemodel="jitdefault", jit=True
    )
    return Target(triple=triple, datalayout=str(machine.target_data), cpu=cpu, machine=machine)


def parse_bitcode(bitcode: bytes) -> Any:
    """Return LLVM's module, verified.

    Raises:
        Malformed: LLVM cannot read it.
    """
    import llvmlite.binding as llvm

    try:
        module = llvm.parse_bitcode(bitcode)
        module.verify()
    except UnicodeDecodeError as error:  # in LLVM's message, which quotes it
        raise Malformed(NOT_UTF8) from error
    except RuntimeError as error:
        raise Malformed(f"LLVM cannot read the bitcode: {error}") from error
    return module


def read_bitcode(bitcode: bytes) -> str:
    """Return a module as text.

    Raises:
        Malformed: LLVM cannot read it.
    """
    return str(parse_bitcode(bitcode))


def parse_text(text: str) -> Any:
    """Return the module of a text, verified.

    Raises:
        Malformed: LLVM does not accept it.
    """
    import llvmlite.binding as llvm

    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise Malformed(f"LLVM does not accept the translated code: {error}") from error
    return module


def compile_module(module: Any, *, passes: str = PASSES, level: int = 0, machine: Processor | None = None) -> bytes:
    """Return an object file of a processor; None: of this machine."""
    import llvmlite.binding as llvm

    target = target_of(machine, level)
    _optimise(llvm, module, target, passes)
    emitted: bytes = target.machine.emit_object(module)
    return emitted


def optimised(text: str, passes: str) -> str:
    """Return a module after some passes, as text."""
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(text)
    _optimise(llvm, module, host_target(), passes)
    return str(module)


def _optimise(llvm: Any, module: Any, target: Target, passes: str) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    builder = llvm.create_pass_builder(target.machine, options)
    manager = builder.getModulePassManager() if passes == "O1" else _manager(llvm, passes)
    manager.run(module, builder)


def _manager(llvm: Any, passes: str) -> Any:
    manager = llvm.create_new_module_pass_manager()
    for name in passes.split(","):
        getattr(manager, _ADD[name])()
    return manager


_ADD = {
    "always-inline": "add_always_inliner_pass",
    "sroa": "add_sroa_pass",
    "instcombine": "add_instruction_combine_pass",
    "simplifycfg": "add_simplify_cfg_pass",
    "dce": "add_global_dead_code_eliminate_pass",
    "gvn": "add_new_gvn_pass",
}


@cache
def translator_version(machine: Processor | None = None) -> str:
    """Return a digest of everything between bitcode and object code: the sources, LLVM, the CPU level."""
    import llvmlite

    digest = hashlib.sha256()
    here = Path(__file__).resolve().parent
    for path in (*sorted(here.glob("*.py")), here.parent / "read" / "metadata.py"):
        digest.update(path.read_bytes())
    target = target_of(machine)
    digest.update(f"{llvmlite.__version__} {target.triple} {target.cpu} {target.datalayout}".encode())
    return digest.hexdigest()[:16]
