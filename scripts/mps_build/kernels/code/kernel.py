"""From bitcode to object code, with what a launch must know of it, or why not. Runs in a closed process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...inspection.limits import Malformed
from ..read.metadata import Metadata, parse_metadata
from . import compiler
from .addresses import address_digest, inlined, narrow_addresses
from .body import body_of
from .compiled import SYMBOLS, Code, Fault, Refused
from .model import Beyond, Rejected, check, check_translated
from .rewrite import Untranslated, translate
from .simdgroups import COOPERATIVE
from .text import ModuleText, split_module

_RUNTIME = frozenset(SYMBOLS)


def compile_kernel(
    bitcode: bytes,
    *,
    injected: str | None = None,
    level: int = 0,
    passes: str | None = None,
    simulated: bool = False,
    machine: compiler.Processor | None = None,
) -> Code | Refused:
    """Return a kernel's code, or why there is none. Never raises for what the bitcode holds.

    Args:
        injected: the text of the module with a fault, to compile in its place.
        simulated: for the simulated device: with an entry for a row of threads, where they run one after another, and
            addresses rounded down as Apple's processors do.
        machine: the processor that the code is for; None: this one.
    """
    metadata, body = None, ""
    try:
        module, metadata, text = _read(bitcode, injected)
        body = body_of(text, metadata.function).digest
        check(module, text)
        target = compiler.target_of(machine, level)
        track = COOPERATIVE.search("\n".join(text.declarations)) is not None
        done = translate(
            text,
            metadata,
            datalayout=target.datalayout,
            triple=target.triple,
            track=track,
            rows=simulated,
            rounds_down=simulated,
        )
        translated = compiler.parse_text(done.text)
        check_translated(translated, _RUNTIME)
        objectcode = compiler.compile_module(translated, passes=passes or compiler.PASSES, level=level, machine=machine)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressing:
    """How a kernel makes its addresses.

    Args:
        narrow: the 32-bit arithmetic that reaches an address (code/addresses.py).
        digest: of all that decides which places it touches.
    """

    metadata: Metadata
    body: str
    narrow: list[str]
    digest: str


def addressing_of(bitcode: bytes, injected: str | None = None) -> Addressing:
    """Return how a kernel makes its addresses.

    Raises:
        Malformed, Rejected, Untranslated: it cannot be read, or holds what no Metal kernel has.
    """
    module, metadata, text = _read(bitcode, injected)
    check(module, text)
    target = compiler.host_target()
    done = translate(text, metadata, datalayout=target.datalayout, triple=target.triple, track=False)
    whole = inlined(done.text)
    narrow = narrow_addresses(whole)
    return Addressing(
        metadata=metadata,
        body=body_of(text, metadata.function).digest,
        narrow=narrow,
        digest=address_digest(whole) if narrow else "",
    )


def _read(bitcode: bytes, injected: str | None) -> tuple[Any, Metadata, ModuleText]:
    """Return LLVM's module, the metadata that the bitcode has, and the text; module and text are the injected ones."""
    module = compiler.parse_bitcode(bitcode)
    original = str(module)
    metadata = parse_metadata(original)
    if injected is not None:
        module = compiler.parse_text(injected)
    return module, metadata, split_module(original if injected is None else injected)
