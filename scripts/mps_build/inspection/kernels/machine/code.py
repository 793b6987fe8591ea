"""Compiled kernels: object code with what a launch must know of it, loaded on demand. Runs in a closed process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from ...audit.macho import Malformed
from ..code import compiler
from ..code.addresses import inlined, narrow_addresses
from ..code.body import body_of
from ..code.model import Beyond, Rejected, check, check_translated
from ..code.rewrite import ENTRY, Untranslated, Variable, translate
from ..code.simdgroups import COOPERATIVE
from ..code.text import split_module
from ..metadata import Metadata, parse_metadata
from .runtime import SYMBOLS, address_of

Plant = Callable[[str], str]
_RUNTIME = frozenset(SYMBOLS)
Fault = Literal["refused", "not_compiled", "beyond"]


class Code:
    """One compiled kernel."""

    __slots__ = ("_engine", "_entry", "body", "is_cooperative", "metadata", "objectcode", "variables")

    def __init__(
        self, *, metadata: Metadata, body: str, variables: tuple[Variable, ...], is_cooperative: bool, objectcode: bytes
    ) -> None:
        self.metadata, self.body, self.variables = metadata, body, variables
        self.is_cooperative, self.objectcode = is_cooperative, objectcode
        self._engine: Any = None
        self._entry = 0

    def entry(self) -> int:
        """Return where the code begins in memory; it is loaded at first use, in a closed process alone."""
        if not self._entry:
            self._engine, self._entry = _load(self.objectcode)
        return self._entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A kernel that is not compiled, and why; what was read of it before stands.

    Args:
        fault: it holds what no Metal kernel has (refused), cannot be read or translated (not_compiled), or needs
            operations that are known and not run here (beyond: tensor operations of Metal 4).
    """

    reason: str
    fault: Fault = "not_compiled"
    metadata: Metadata | None = None
    body: str = ""


def compile_kernel(
    bitcode: bytes, *, planted: str | None = None, level: int = 0, passes: str | None = None
) -> Code | Refused:
    """Return a kernel's code, or why there is none. Never raises for what the bitcode holds.

    Args:
        planted: the text of the module with a fault, to compile in its place.
    """
    metadata, body = None, ""
    try:
        module = compiler.parse_bitcode(bitcode)
        original = str(module)
        metadata = parse_metadata(original)
        if planted is not None:
            module = compiler.parse_text(planted)
        text = split_module(original if planted is None else planted)
        body = body_of(text, metadata.function).digest
        check(module, text)
        target = compiler.host_target(level)
        track = COOPERATIVE.search("\n".join(text.declarations)) is not None
        done = translate(text, metadata, datalayout=target.datalayout, triple=target.triple, track=track)
        translated = compiler.parse_text(done.text)
        check_translated(translated, _RUNTIME)
        objectcode = compiler.compile_module(translated, passes=passes or compiler.PASSES, level=level)
    except (Malformed, Rejected, Untranslated) as error:
        fault: Fault = "beyond" if isinstance(error, Beyond) else "not_compiled"
        if isinstance(error, Rejected) and fault != "beyond":
            fault = "refused"
        return Refused(reason=str(error), fault=fault, metadata=metadata, body=body)
    return Code(
        metadata=metadata,
        body=body,
        variables=done.variables,
        is_cooperative=done.is_cooperative,
        objectcode=objectcode,
    )


def narrow_parts(bitcode: bytes, planted: str | None = None) -> list[str]:
    """Return the 32-bit arithmetic that reaches an address of a kernel (code/addresses.py)."""
    original = compiler.read_bitcode(bitcode)
    target = compiler.host_target()
    done = translate(
        split_module(original if planted is None else planted),
        parse_metadata(original),
        datalayout=target.datalayout,
        triple=target.triple,
        track=False,
    )
    return narrow_addresses(inlined(done.text))


def _load(objectcode: bytes) -> tuple[Any, int]:
    import llvmlite.binding as llvm

    # An engine takes its target machine over, and frees it: one for each.
    compiler.host_target()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=0, codemodel="jitdefault", jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(objectcode))
    engine.finalize_object()
    return engine, int(engine.get_function_address(ENTRY))


def publish_runtime(library: Any) -> None:
    """Let compiled code find the runtime's functions, and those that a compiler makes up."""
    import llvmlite.binding as llvm

    for name, function in SYMBOLS.items():
        llvm.add_symbol(name, address_of(library, function))
