"""WheelFacts as a JSON document: what wheels.json of the knowledge holds, for any wheel."""

from __future__ import annotations

from typing import Any

from ..malformed import Malformed
from .contents import Contents, Metallib
from .macho import FILE_TYPES, MachO, format_version
from .model import BinaryFacts, WheelFacts
from .releases import TORCH_CPU
from .rules.metal import count_dispatch_headers
from .symbols import Exports

AT_MPS = tuple(b"__Z" + kind + b"2at3mps" for kind in (b"N", b"NK", b"TVN", b"TIN", b"TSN"))


def describe_facts(facts: WheelFacts) -> dict[str, Any]:
    """Return the facts, those of a quick audit without what only a full one reads."""
    name = facts.name
    document: dict[str, Any] = {
        "file": facts.file,
        "size": facts.size,
        "distribution": facts.distribution,
        "version": name.version if name else None,
        "build": name.build if name else None,
        "python": name.python if name else None,
        "abi": name.abi if name else None,
        "platform": name.platform if name else None,
        "wheel_tags": list(facts.wheel.get("tag", ())),
        "generator": next(iter(facts.wheel.get("generator", ())), None),
        "requires_python": next(iter(facts.metadata.get("requires-python", ())), None),
        "requires_dist": list(facts.metadata.get("requires-dist", ())),
        "git_version": facts.git_version,
        "members": len(facts.archive.members),
        "uncompressed": sum(member.size for member in facts.archive.members),
        "record_rows": len(facts.record),
        "mps_dispatch_headers": count_dispatch_headers(facts),
        "macho": {name: _binary(binary) for name, binary in sorted(facts.binaries.items())},
    }
    contents = facts.contents(TORCH_CPU)
    if contents:
        document["torch"] = _torch(contents)
    return document


def _binary(binary: BinaryFacts) -> dict[str, Any]:
    document: dict[str, Any] = {"kind": binary.kind, "size": binary.size, "mode": f"{binary.mode:#o}"}
    if binary.malformed:
        document["malformed"] = binary.malformed
    if binary.macho:
        document |= _header(binary.macho)
    if binary.contents:
        document |= _signature(binary.contents)
        document["metallibs"] = {name: _metallib(metallib) for name, metallib in binary.contents.metallibs.items()}
    return document


def _header(macho: MachO) -> dict[str, Any]:
    return {
        "cpu": macho.cpu_name,
        "type": FILE_TYPES.get(macho.file_type, str(macho.file_type)),
        "uuid": macho.uuid,
        "platform": macho.platform,
        "minos": format_version(macho.minos),
        "sdk": format_version(macho.sdk),
        "tools": [[tool, version] for tool, version in macho.tools],
        "id": macho.install_name,
        "deps": [[dependency.path, dependency.kind] for dependency in macho.dependencies],
        "rpaths": list(macho.rpaths),
        "signed": "signature" in macho.linkedit,
        "metal_sections": {
            section.name: section.size
            for section in macho.sections
            if section.segment == "__TEXT" and section.name.startswith("metal_")
        },
        "exported": macho.symbols.exported[1] if macho.symbols else 0,
        "undefined": macho.symbols.undefined[1] if macho.symbols else 0,
    }


def _signature(contents: Contents) -> dict[str, Any]:
    if contents.signature is None:
        return {}
    best = contents.signature.strongest
    return {
        "signature": {
            "identifier": best.identifier,
            "team": best.team,
            "flags": f"{best.flags:#x}",
            "ad_hoc": contents.signature.is_ad_hoc,
            "hash": best.hash_name,
            "page_size": best.page_size,
            "pages": best.page_count,
            "code_limit": best.code_limit,
            "bad_pages": contents.bad_pages,
        }
    }


def _metallib(metallib: Metallib) -> dict[str, Any]:
    header = metallib.header
    return {
        "size": metallib.section_size,
        "os": format_version(header.os_version) if header else None,
        "platform": f"{header.platform:#x}" if header else None,
        "functions": len(metallib.functions) if metallib.functions is not None else None,
        "fault": metallib.fault,
    }


def _torch(contents: Contents) -> dict[str, Any]:
    return {
        "commit": contents.commit,
        "cxx_compiler": contents.cxx_compiler,
        "cxx_flags": list(contents.cxx_flags),
        "exported_at_mps": _count(contents.exports, AT_MPS),
        "imported_kmpc": sum(name.startswith(b"___kmpc") for name in contents.undefined),
        "imported_omp": sum(name.startswith(b"_omp_") for name in contents.undefined),
        "metal_sources": contents.metal_sources,
    }


def _count(exports: Exports, prefixes: tuple[bytes, ...]) -> int | None:
    try:
        return exports.count(*prefixes)
    except Malformed:
        return None
