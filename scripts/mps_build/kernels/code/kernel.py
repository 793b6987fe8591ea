"""From bitcode to object code, with what a launch must know of it, or why not. Runs in a closed process."""

from __future__ import annotations

from ...inspection.malformed import Malformed
from ..read.metadata import parse_metadata
from . import compiler
from .addresses import inlined, narrow_addresses
from .body import body_of
from .compiled import Code, Fault, Refused
from .model import Beyond, Rejected, check, check_translated
from .rewrite import Untranslated, translate
from .runtime import SYMBOLS
from .simdgroups import COOPERATIVE
from .text import split_module

_RUNTIME = frozenset(SYMBOLS)


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
    except UnicodeDecodeError:  # llvmlite decodes each name that it is asked for
        return Refused(reason=compiler.NOT_UTF8, fault="refused", metadata=metadata, body=body)
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
