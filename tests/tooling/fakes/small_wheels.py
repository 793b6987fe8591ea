"""Builds Mach-O files, metallibs and wheels in miniature: right in all that the audit looks at, for tests to spoil.

The layouts are written from Apple's headers (mach-o/loader.h, cs_blobs.h), not from the reader under test.
"""

from __future__ import annotations

import base64
import hashlib
import io
import struct
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mps_build.common.environment import Toolchain
from mps_build.common.recipe.catalogue import find_recipe
from mps_build.wheel_build.companions.plan import PROJECTS, CompanionPlan, SourceChoice, given_wheel

ARM64, X86_64 = 0x0100000C, 0x01000007
COMMIT = "d0f2af8b66b20da4baa50644c0cd3f887a2eae2e"
FRAMEWORKS = "/System/Library/Frameworks"
_LOADS = {"strong": 0x0C, "weak": 0x80000018}


@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """What a built Mach-O says of itself."""

    cpu: int = ARM64
    file_type: int = 6
    install_name: str | None = None
    dependencies: tuple[tuple[str, str], ...] = (("/usr/lib/libSystem.B.dylib", "strong"),)
    rpaths: tuple[str, ...] = ()
    platform: int | None = 1
    minos: tuple[int, int] = (14, 0)
    sdk: tuple[int, int] = (26, 5)
    sections: Mapping[str, bytes] = field(default_factory=dict)
    exports: tuple[bytes, ...] = ()
    undefined: tuple[bytes, ...] = ()
    objects: tuple[bytes, ...] = ()
    functions: Mapping[bytes, int] = field(default_factory=dict)
    is_signed: bool = True
    page_size: int = 4096


def macho(image: Image) -> bytes:
    """Return the file: header, __TEXT with the sections, __LINKEDIT with trie, symbols and signature."""
    text_begin = 4096
    body = bytearray(text_begin)
    placed = []
    for section, held in image.sections.items():
        placed.append((section, len(body), len(held)))
        body += held
    body += bytes(-len(body) % image.page_size)
    text_end = len(body)
    trie = _trie(image.exports)
    trie_at = len(body)
    body += trie + bytes(-len(trie) % 8)
    strings, entries = bytearray(b" \0"), b""
    for name, kind in [*((each, 0x66) for each in image.objects), *((each, 0x0F) for each in image.exports)]:
        entries += struct.pack("<IBBHQ", len(strings), kind, 0, 0, 0)
        strings += name + b"\0"
    for name, at in image.functions.items():  # local, by the byte of the first section at which each begins
        entries += struct.pack("<IBBHQ", len(strings), 0x0E, 1, 0, text_begin + at)
        strings += name + b"\0"
    for name in image.undefined:
        entries += struct.pack("<IBBHQ", len(strings), 0x01, 0, 0, 0)
        strings += name + b"\0"
    symbols_at = len(body)
    body += entries
    strings_at = len(body)
    body += strings + bytes(-len(strings) % 16)
    body += bytes(-len(body) % 16)
    signature_size = 1024 + 32 * (len(body) // image.page_size + 1) if image.is_signed else 0
    commands = [
        _segment("__TEXT", 0, text_end, placed),
        _segment("__LINKEDIT", text_end, len(body) + signature_size - text_end, []),
    ]
    if image.install_name is not None:
        commands.append(_dylib(0x0D, image.install_name))
    commands += [_dylib(_LOADS[kind], path) for path, kind in image.dependencies]
    commands += [_string(0x8000001C, 12, path) for path in image.rpaths]
    if image.platform is not None:
        commands.append(
            struct.pack(
                "<8I", 0x32, 32, image.platform, _version(image.minos), _version(image.sdk), 1, 3, _version((1267, 0))
            )
        )
    locals_count, exported_count = len(image.objects), len(image.exports)
    commands.append(struct.pack("<6I", 0x02, 24, symbols_at, len(entries) // 16, strings_at, len(strings)))
    commands.append(
        struct.pack(
            "<20I",
            0x0B,
            80,
            0,
            locals_count,
            locals_count,
            exported_count,
            locals_count + exported_count,
            len(image.undefined),
            *[0] * 12,
        )
    )
    commands.append(struct.pack("<4I", 0x80000033, 16, trie_at, len(trie)))
    if image.is_signed:
        commands.append(struct.pack("<4I", 0x1D, 16, len(body), signature_size))
    blob = b"".join(commands)
    assert len(blob) < text_begin - 32
    header = struct.pack(
        "<4sIIIIIII", b"\xcf\xfa\xed\xfe", image.cpu, 0, image.file_type, len(commands), len(blob), 0x85, 0
    )
    body[: 32 + len(blob)] = header + blob
    data = bytes(body)
    return data + signature(data, page_size=image.page_size, room=signature_size) if image.is_signed else data


def signature(data: bytes, *, page_size: int, room: int, hash_type: int = 2, extra_slots: int = 0) -> bytes:
    """Return an ad hoc signature of `data`, padded to `room` bytes."""
    new, size = {1: (hashlib.sha1, 20), 2: (hashlib.sha256, 32)}[hash_type]
    hashes = b"".join(new(data[at : at + page_size]).digest() for at in range(0, len(data), page_size))
    identifier = b"made.by.a.test\0"
    hash_at = 88 + len(identifier) + extra_slots * size
    count = len(hashes) // size
    directory = struct.pack(
        ">9I4BI",
        0xFADE0C02,
        hash_at + len(hashes),
        0x20400,
        2,
        hash_at,
        88,
        extra_slots,
        count,
        len(data),
        size,
        hash_type,
        0,
        page_size.bit_length() - 1,
        0,
    )
    directory += bytes(88 - len(directory)) + identifier + bytes(extra_slots * size) + hashes
    blob = struct.pack(">5I", 0xFADE0CC0, 20 + len(directory), 1, 0, 20) + directory
    assert len(blob) <= room
    return blob + bytes(room - len(blob))


def metallib(*, os: tuple[int, int], functions: int = 120, platform: int = 0x8001) -> bytes:
    """Return a metallib's header and list of functions, with a body of zeros."""
    records = b""
    for index in range(functions):
        name = f"kernel_{index}".encode() + b"\0"
        tags = b"NAME" + struct.pack("<H", len(name)) + name + b"TYPE" + struct.pack("<HB", 1, 2) + b"ENDT"
        records += struct.pack("<I", len(tags) + 4) + tags
    listed = struct.pack("<I", functions) + records
    size = 88 + len(listed) + 64
    header = struct.pack("<4s3H2B2H9Q", b"MTLB", platform, 2, 7, 0, 0x81, *os, size, 88, len(records), *[0] * 6)
    return header + listed + bytes(64)


def torch_files(version: str = "2.15.0", *, python: str = "312", minos: tuple[int, int] = (14, 0)) -> dict[str, bytes]:
    """Return the files of a small torch wheel that the strict profile accepts."""
    library = Image(minos=minos, rpaths=("@loader_path",))
    cpu = torch_cpu(minos=minos)
    return {
        f"torch/_C.cpython-{python}-darwin.so": macho(
            replace(
                library, file_type=8, rpaths=("@loader_path/lib",), dependencies=_loads("@rpath/libtorch_python.dylib")
            )
        ),
        "torch/bin/torch_shm_manager": macho(
            replace(library, file_type=2, rpaths=("@loader_path/../lib",), dependencies=_loads("@rpath/libshm.dylib"))
        ),
        "torch/lib/libtorch_cpu.dylib": macho(cpu),
        **{
            f"torch/lib/lib{name}.dylib": macho(replace(library, install_name=f"@rpath/lib{name}.dylib"))
            for name in ("c10", "torch", "torch_python", "shm", "torch_global_deps", "omp")
        },
        "torch/version.py": f"__version__ = '{version}'\ngit_version = '{COMMIT}'\n".encode(),
        "torch/__init__.py": b"from .version import __version__\n",
        "torch/share/cmake/Torch/TorchConfig.cmake": b"set(TORCH_FOUND TRUE)\n",
        **{f"torch/include/ATen/ops/op{index}_mps_dispatch.h": b"#pragma once\n" for index in range(200)},
    }


def torch_cpu(*, minos: tuple[int, int] = (14, 0)) -> Image:
    """Return libtorch_cpu in miniature, MPS and all."""
    frameworks = ("Metal", "MetalPerformanceShaders", "MetalPerformanceShadersGraph")
    return Image(
        install_name="@rpath/libtorch_cpu.dylib",
        rpaths=("@loader_path",),
        minos=minos,
        dependencies=(
            *((f"{FRAMEWORKS}/{name}.framework/Versions/A/{name}", "weak") for name in frameworks),
            (f"{FRAMEWORKS}/Accelerate.framework/Versions/A/Accelerate", "strong"),
            *_loads("@rpath/libc10.dylib", "@rpath/libomp.dylib"),
        ),
        sections={
            "__cstring": b"Release\0COMMIT_SHA\0" + COMMIT.encode() + b"\0 -DUSE_PTHREADPOOL -DUSE_MPS -O2\0",
            "metal_basic": metallib(os=(14, 0)),
            "metal_40": metallib(os=(26, 2)),
        },
        exports=(b"__ZTVN2at3mps12MPSGuardImplE", b"__ZN2at3mps2mmERKNS_6TensorES3_", b"_other"),
        undefined=(b"_OBJC_CLASS_$_MPSGraph", b"___kmpc_fork_call"),
    )


def write_wheel(
    folder: Path,
    files: Mapping[str, bytes],
    *,
    name: str = "torch-2.15.0-cp312-cp312-macosx_14_0_arm64.whl",
    tag: str | None = None,
    record: bytes | None = None,
    order: Sequence[str] = (),
) -> Path:
    """Write a wheel of `files`, with METADATA, WHEEL and RECORD to match its name where `files` has none."""
    distribution, version, *rest = name.removesuffix(".whl").split("-")
    info = f"{distribution}-{version}.dist-info"
    whole = {
        **files,
        f"{info}/METADATA": files.get(
            f"{info}/METADATA", f"Metadata-Version: 2.4\nName: {distribution}\nVersion: {version}\n\n".encode()
        ),
        f"{info}/WHEEL": files.get(
            f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: a test\nTag: {tag or '-'.join(rest[-3:])}\n".encode()
        ),
    }
    whole[f"{info}/RECORD"] = record if record is not None else record_of(whole, info)
    path = folder / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member in (*order, *(each for each in whole if each not in order)):
            add_member(archive, member, whole[member])
    return path


def add_member(archive: zipfile.ZipFile, member: str, data: bytes, *, mode: int | None = None) -> None:
    """Add one member, executable where a torch wheel has it so."""
    info = zipfile.ZipInfo(member, (2026, 1, 1, 0, 0, 0))
    info.compress_type = archive.compression
    info.external_attr = (mode or (0o100755 if "/bin/" in member else 0o100644)) << 16
    info.create_system = 3
    archive.writestr(info, data, compresslevel=1)  # hundreds of megabytes of nearly nothing, in some


def record_of(files: Mapping[str, bytes], info: str) -> bytes:
    """Return RECORD for these files."""
    rows = io.StringIO()
    for member, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.write(f"{member},sha256={digest},{len(data)}\n")
    rows.write(f"{info}/RECORD,,\n")
    return rows.getvalue().encode()


def _loads(*paths: str) -> tuple[tuple[str, str], ...]:
    return tuple((path, "strong") for path in paths)


def _version(parts: tuple[int, int]) -> int:
    return parts[0] << 16 | parts[1] << 8


def _segment(name: str, offset: int, size: int, sections: Iterable[tuple[str, int, int]]) -> bytes:
    packed = b"".join(
        struct.pack("<16s16s2Q8I", each.encode(), name.encode(), at, length, at, 0, 0, 0, 0, 0, 0, 0)
        for each, at, length in sections
    )
    head = struct.pack(
        "<2I16s4Q4I", 0x19, 72 + len(packed), name.encode(), offset, size, offset, size, 5, 5, len(packed) // 80, 0
    )
    return head + packed


def _dylib(number: int, path: str) -> bytes:
    return _string(number, 24, path)


def _string(number: int, begin: int, text: str) -> bytes:
    data = text.encode() + b"\0"
    size = begin + len(data) + (-(begin + len(data)) % 8)
    return (struct.pack("<3I", number, size, begin) + bytes(begin - 12) + data).ljust(size, b"\0")


def _trie(names: Sequence[bytes]) -> bytes:
    """Return a trie of one level: every name is an edge of the root. Offsets are padded to three bytes."""
    if not names:
        return b""
    root = 2 + sum(len(name) + 1 + 3 for name in names)
    edges, leaves = b"", b""
    for name in names:
        at = root + len(leaves)
        edges += name + b"\0" + bytes((at & 0x7F | 0x80, at >> 7 & 0x7F | 0x80, at >> 14 & 0x7F))
        leaves += b"\2\0\0\0"
    return bytes((0, len(names))) + edges + leaves


RECIPE = find_recipe("v2.6.0")


MAC = "torch-2.6.0+mps.g1eba9b3-cp312-cp312-macosx_13_0_arm64.whl"


def torch_wheel(folder: Path, name: str = MAC) -> Path:
    """Write a wheel of nothing but metadata, sound enough to be read."""
    folder.mkdir(parents=True, exist_ok=True)
    distribution, version, *_ = name.split("-")
    with zipfile.ZipFile(folder / name, "w") as archive:
        text = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        if distribution != "torch":
            text += "Requires-Dist: torch==2.6.0+mps.g1eba9b3\n"
        archive.writestr(f"{distribution}-{version}.dist-info/METADATA", text)
    return folder / name


def vision_tree(folder: Path, version: str = "0.21.0") -> Path:
    (folder / "torchvision").mkdir(parents=True)
    (folder / "torchvision" / "__init__.py").write_text("")
    (folder / "version.txt").write_text(f"{version}\n")
    (folder / "setup.py").write_text("")
    return folder


def plan(tmp_path: Path, **changed: Any) -> CompanionPlan:
    torch = given_wheel(torch_wheel(tmp_path / "torch"), RECIPE, python=None, system="macos")
    given: dict[str, Any] = {
        "recipe": RECIPE,
        "torch": torch,
        "sources": {name: SourceChoice(kind="git", place=PROJECTS[name].repository) for name in PROJECTS},
        "toolchain": Toolchain(name="xcode"),
        "jobs": 1,
        "wheelhouse": tmp_path / "wheelhouse",
    }
    return CompanionPlan(**{**given, **changed})
