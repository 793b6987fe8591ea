"""Compiled kernels: object code with what a launch must know of it, kept in a cache, loaded on demand."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...audit.macho import Malformed
from ..code import compiler
from ..code.addresses import inlined, narrow_addresses
from ..code.body import body_of
from ..code.rewrite import ENTRY, Variable, translate
from ..code.safety import Beyond, Rejected, check
from ..code.simdgroups import COOPERATIVE
from ..code.text import split_module
from ..metadata import Argument, Field, Metadata, parse_metadata
from .runtime import SYMBOLS, address_of

Plant = Callable[[str], str]


class Code:
    """One compiled kernel."""

    __slots__ = ("_engine", "_entry", "body", "is_cooperative", "metadata", "objectcode", "variables", "was_planted")

    def __init__(
        self, *, metadata: Metadata, body: str, variables: tuple[Variable, ...], is_cooperative: bool, objectcode: bytes
    ) -> None:
        self.metadata, self.body, self.variables = metadata, body, variables
        self.is_cooperative, self.objectcode = is_cooperative, objectcode
        self.was_planted = False
        self._engine: Any = None
        self._entry = 0

    def entry(self) -> int:
        """Return where the code begins in memory; it is loaded at first use."""
        if not self._entry:
            self._engine, self._entry = _load(self.objectcode)
        return self._entry


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A kernel that is not compiled, and why; what was read of it before stands.

    Args:
        is_beyond: it needs operations that are known and not run here (tensor operations of Metal 4).
    """

    reason: str
    is_beyond: bool = False
    metadata: Metadata | None = None
    body: str = ""


def compile_kernel(
    bitcode: bytes, *, plant: Plant | None = None, level: int = 0, passes: str | None = None
) -> Code | Refused:
    """Return a kernel's code, or why there is none. Never raises for what the bitcode holds."""
    metadata, body = None, ""
    try:
        text = original = compiler.read_bitcode(bitcode)
        if plant is not None:
            text = plant(text)
        metadata = parse_metadata(original)
        module = split_module(text)
        body = body_of(module, metadata.function).digest
        check(module)
        target = compiler.host_target(level)
        track = COOPERATIVE.search("\n".join(module.declarations)) is not None
        done = translate(module, metadata, datalayout=target.datalayout, triple=target.triple, track=track)
        objectcode = compiler.compile_text(done.text, passes=passes or compiler.PASSES, level=level)
    except (Malformed, Rejected) as error:
        return Refused(reason=str(error), metadata=metadata, body=body, is_beyond=isinstance(error, Beyond))
    code = Code(
        metadata=metadata,
        body=body,
        variables=done.variables,
        is_cooperative=done.is_cooperative,
        objectcode=objectcode,
    )
    code.was_planted = text != original
    return code


def narrow_parts(bitcode: bytes, plant: Plant | None = None) -> list[str]:
    """Return the 32-bit arithmetic that reaches an address of a kernel (code/addresses.py)."""
    text = compiler.read_bitcode(bitcode)
    if plant is not None:
        text = plant(text)
    target = compiler.host_target()
    done = translate(
        split_module(text), parse_metadata(text), datalayout=target.datalayout, triple=target.triple, track=False
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


class Store:
    """Compiled kernels on disk, one file each, by bitcode, translator and machine."""

    def __init__(self, folder: Path, version: str) -> None:
        self._folder, self._version = folder, version

    def path(self, bitcode: bytes) -> Path:
        """Return where the compiled code of a kernel is kept: by digest of compiler version and bitcode."""
        key = hashlib.sha256(self._version.encode() + bitcode).hexdigest()[:40]
        return self._folder / key[:2] / key[2:]

    def load(self, bitcode: bytes) -> Code | Refused | None:
        """Return what was compiled before, or None."""
        try:
            data = self.path(bitcode).read_bytes()
            size = int.from_bytes(data[:4], "little")
            head = json.loads(data[4 : 4 + size])
        except (OSError, ValueError):
            return None
        metadata = _metadata(head["metadata"]) if head["metadata"] else None
        if head["reason"] or metadata is None:
            return Refused(reason=head["reason"], metadata=metadata, body=head["body"], is_beyond=head["beyond"])
        return Code(
            metadata=metadata,
            body=head["body"],
            variables=tuple(Variable(address=a, size=s, is_zero=z) for a, s, z in head["variables"]),
            is_cooperative=head["cooperative"],
            objectcode=data[4 + size :],
        )

    def save(self, bitcode: bytes, code: Code | Refused) -> None:
        """Keep a kernel; written beside and renamed, so that two runs may do it at once."""
        is_code = isinstance(code, Code)
        head = {
            "metadata": asdict(code.metadata) if code.metadata else None,
            "body": code.body,
            "reason": "" if isinstance(code, Code) else code.reason,
            "beyond": isinstance(code, Refused) and code.is_beyond,
            "variables": [[v.address, v.size, v.is_zero] for v in code.variables] if isinstance(code, Code) else [],
            "cooperative": code.is_cooperative if isinstance(code, Code) else False,
        }
        text = json.dumps(head, separators=(",", ":")).encode()
        path = self.path(bitcode)
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        objectcode = code.objectcode if isinstance(code, Code) and is_code else b""
        beside.write_bytes(len(text).to_bytes(4, "little") + text + objectcode)
        beside.replace(path)


def _metadata(head: dict[str, Any]) -> Metadata:
    arguments = tuple(Argument(**{**each, "fields": _fields(each["fields"])}) for each in head["arguments"])
    return Metadata(
        function=head["function"],
        arguments=arguments,
        max_threads=head["max_threads"],
        arrays=tuple(head["arrays"]),
        types=tuple(head["types"]),
    )


def _fields(rows: list[dict[str, Any]]) -> tuple[Field, ...]:
    return tuple(Field(**{**row, "fields": _fields(row["fields"])}) for row in rows)
