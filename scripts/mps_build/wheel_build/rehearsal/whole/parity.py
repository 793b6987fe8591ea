"""The wheel made here and the official one, part by part: what the machine code, the headers and the files hold."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from mps_build.common.errors import UsageError
from mps_build.common.wheels.wheel_file import UnsoundWheel, open_wheel
from mps_build.inspection.audit.macho import format_version
from mps_build.inspection.audit.releases import TORCH_CPU
from mps_build.inspection.audit.symbols import Library, LinkedNames, read_library, read_linked_names
from mps_build.inspection.coverage.rules import classify
from mps_build.inspection.coverage.wheel import Compiled, facts_of_wheel
from mps_build.inspection.limits import Malformed

_CLASS = "_OBJC_CLASS_$_"
_MOST_BYTES = 1 << 30  # of one library; libtorch_cpu has 200 MB
_TAG = re.compile(r"B(?P<size>\d{1,2})")
_VERSIONED = re.compile(r"\.cpython-3\d+t?-darwin|(?<=^torch-)[^/]+(?=\.dist-info/)")
_SYSTEM = ("/usr/lib/libSystem.B.dylib", "/usr/lib/libc++.1.dylib")
SideName = Literal["ours", "official"]
UNEXPLAINED = "not explained"
_MOST_NAMES = 40
LEFT_OUT = (
    "distributed (gloo, tensorpipe, libuv) and kineto: Debian's tree has no third_party",
    "XNNPACK, QNNPACK and PyTorch's fork of it, NNPACK: the same",
    "Metal libraries: no Metal compiler here; the shaders are inside as source, as with `--allow-jit-shaders`",
    "vectors by sleef: its header in an x86-64 root declares nothing for arm64",
    "optimisation: everything is compiled at -O0",
)
_DISTRIBUTED = (
    r"4c10d|4gloo|10tensorpipe|_uv_|_uv__|11distributed|Process[Gg]roup|_io_kit|nop\d|\dnop|ParamComms|RRef|DDP"
)
_QUANTIZED = (
    r"(?i)xnn|qnnp|_nnp_|_pthreadpool_|_NoPThreadPool|nnc_prepacked|_create_\w+2d_|_create_fully_|_pack_(qs8|weights)"
)
# XNNPACK's own helpers, whose names do not say so.
_QUANTIZED_PLAIN = r"_propagate_rank$|_resize_\w+_elementwise_output|_murmur_hash3$"
_KINETO = r"(?i)kineto|_InitializeInjection$|_hasTestEnvVar$"


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One wheel as the comparison sees it."""

    files: frozenset[str]
    binaries: Mapping[str, LinkedNames]
    library: Library
    cpu: bytes
    dispatch_headers: frozenset[str]
    operators: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeParity:
    """All parts, and whether the shaders inside are the tree's."""

    official: str
    parts: tuple[Compared, ...]
    shaders: Mapping[str, bool]

    def part(self, name: str) -> Compared:
        """Return a part by its name ("registrations", "selectors").

        Raises:
            StopIteration: there is no such part.
        """
        return next(each for each in self.parts if each.part == name)

    @property
    def unexplained(self) -> int:
        """How many differences have no reason."""
        return sum(
            len(names) for each in self.parts for (_, text), names in each.differing.items() if text == UNEXPLAINED
        )

    def document(self) -> dict[str, Any]:
        """Return the comparison as JSON: the official wheel, what is unexplained, each part."""
        return {
            "official": self.official,
            "unexplained": self.unexplained,
            "parts": [each.document() for each in self.parts],
            "shader_sources": {"in_the_tree": len(self.shaders), "inside": sum(self.shaders.values())},
        }


def whole_parity(ours: Path, official: Path, shaders: Mapping[str, str]) -> WholeParity:
    """Return how two wheels of one release differ.

    Args:
        shaders: Metal source files of the tree, name -> text.

    Raises:
        UsageError: a wheel cannot be read.
    """
    left, right = (
        replace(side, operators=operators_of(wheel, side.library))
        for wheel, side in ((ours, read_side(ours)), (official, read_side(official)))
    )
    return _parity(left, right, official, shaders)


def library_parity(ours: Path, official: Path, shaders: Mapping[str, str]) -> WholeParity:
    """Return how one libtorch_cpu differs from the official wheel's; files and other libraries are left aside.

    Raises:
        UsageError: one of them cannot be read.
    """
    try:
        cpu = ours.read_bytes()
        left = Side(
            files=frozenset(),
            binaries={TORCH_CPU: read_linked_names(cpu)},
            library=read_library(cpu),
            cpu=cpu,
            dispatch_headers=frozenset(),
        )
    except (OSError, Malformed) as error:
        raise UsageError(f"{ours}: cannot be compared: {error}", hint="link it again: remove it") from error
    right = read_side(official)
    alone = replace(
        right, files=frozenset(), binaries={TORCH_CPU: right.binaries[TORCH_CPU]}, dispatch_headers=frozenset()
    )
    return _parity(left, alone, official, shaders)


def _parity(left: Side, right: Side, official: Path, shaders: Mapping[str, str]) -> WholeParity:
    parts = (part for part in compare_sides(left, right) if part.ours or part.official)
    return WholeParity(
        official=official.name,
        parts=tuple(parts),
        shaders={name: text.strip().encode() in left.cpu for name, text in shaders.items()},
    )


def read_side(wheel: Path) -> Side:
    """Return what is compared of one wheel.

    Raises:
        UsageError: it cannot be read, or has no libtorch_cpu.
    """
    binaries: dict[str, LinkedNames] = {}
    try:
        with open_wheel(wheel) as members:
            names = [name for name in members.names if not name.endswith("/")]
            cpu = members.read(TORCH_CPU, most_bytes=_MOST_BYTES)
            for name in names:
                if name.endswith((".dylib", ".so")) or name.startswith("torch/bin/"):
                    data = cpu if name == TORCH_CPU else members.read(name, most_bytes=_MOST_BYTES)
                    if data[:4] == b"\xcf\xfa\xed\xfe":
                        binaries[_plain(name)] = read_linked_names(data)
    except (OSError, UnsoundWheel, Malformed) as error:
        raise UsageError(f"{wheel}: cannot be compared: {error}", hint=f"nox -s audit_wheel -- {wheel}") from error
    return Side(
        files=frozenset(map(_plain, names)),
        binaries=binaries,
        library=read_library(cpu),
        cpu=cpu,
        dispatch_headers=frozenset(name.rpartition("/")[2] for name in names if name.endswith("_mps_dispatch.h")),
    )


def compare_sides(ours: Side, official: Side) -> Iterator[Compared]:
    """Yield every part, the most telling first."""

    def part(name: str, left: Iterable[str], right: Iterable[str]) -> Compared:
        return compared(name, left, right, REASONS)

    yield part("MPS registrations", _registered(ours), _registered(official))
    yield part("MPS kernels that fall back to the CPU", _falling_back(ours), _falling_back(official))
    yield part("MPS dispatch headers", ours.dispatch_headers, official.dispatch_headers)
    yield part("operators and what they do on MPS (op_coverage)", ours.operators, official.operators)
    yield part("selectors", _selectors(ours), _selectors(official))
    yield part("Objective-C classes", _classes(ours), _classes(official))
    yield part("names of frameworks, with library and weak mark", _frameworks(ours), _frameworks(official))
    yield part("names of libSystem and libc++", _system(ours), _system(official))
    yield part("names of torch's own libraries", _internal(ours), _internal(official))
    yield part("libraries loaded", _loads(ours), _loads(official))
    yield part("rpaths", _rpaths(ours), _rpaths(official))
    yield part("ids", _ids(ours), _ids(official))
    yield part("minimum macOS and SDK", _versions(ours), _versions(official))
    yield part("load commands", _commands(ours), _commands(official))
    yield part("exported names, inline ones aside", _exports(ours, weak=False), _exports(official, weak=False))
    yield part("exported inline names", _exports(ours, weak=True), _exports(official, weak=True))
    yield part("files", ours.files, official.files)


def untagged(name: str) -> str:
    """Return a mangled name without ABI tags: libc++ marks its inline functions with its own version.

    >>> untagged("__ZNSt3__1plB9nie220108Ev"), untagged("__ZNSt3__1plB7v160006Ev"), untagged("__ZN3fooBar")
    ('__ZNSt3__1plEv', '__ZNSt3__1plEv', '__ZN3fooBar')
    """
    kept, at = [], 0
    while match := _TAG.search(name, at):
        end = match.end() + int(match["size"])
        tag = name[match.end() : end]
        if len(tag) == int(match["size"]) and re.fullmatch(r"[a-z]{1,4}\d{5,6}", tag):
            kept.append(name[at : match.start()])
            at = end
        else:
            kept.append(name[at : match.end()])
            at = match.end()
    return "".join([*kept, name[at:]])


def _plain(name: str) -> str:
    return _VERSIONED.sub("", name)


def _registered(side: Side) -> set[str]:
    functions = side.library.registered.get("MPS", ())
    return {each.operator for function in functions for each in function}


def _falling_back(side: Side) -> set[str]:
    functions = side.library.registered.get("MPS", ())
    return {each.operator for function in functions for each in function if each.falls_back}


def _cpu(side: Side) -> LinkedNames:
    return side.binaries[TORCH_CPU]


def _selectors(side: Side) -> set[str]:
    return {name for binary in side.binaries.values() for name in binary.selectors}


def _classes(side: Side) -> set[str]:
    return {each.name.removeprefix(_CLASS) for each in _cpu(side).imports if each.name.startswith(_CLASS)}


def _frameworks(side: Side) -> set[str]:
    return {
        f"{each.name} {_library(each.library)}{' weak' if each.is_weak else ''}"
        for each in _cpu(side).imports
        if ".framework/" in each.library or "libobjc" in each.library
    }


def _system(side: Side) -> set[str]:
    return {
        untagged(each.name) for binary in side.binaries.values() for each in binary.imports if each.library in _SYSTEM
    }


def _internal(side: Side) -> set[str]:
    return {
        f"{member}: {untagged(each.name)} {_library(each.library)}"
        for member, binary in side.binaries.items()
        for each in binary.imports
        if each.library.startswith("@") or not each.library.startswith("/")
    }


def _loads(side: Side) -> set[str]:
    return {
        f"{member}: {each.path} {each.kind}"
        for member, binary in side.binaries.items()
        for each in binary.macho.dependencies
    }


def _rpaths(side: Side) -> set[str]:
    return {f"{member}: {path}" for member, binary in side.binaries.items() for path in binary.macho.rpaths}


def _ids(side: Side) -> set[str]:
    return {
        f"{member}: {binary.macho.install_name}"
        for member, binary in side.binaries.items()
        if binary.macho.install_name
    }


def _versions(side: Side) -> set[str]:
    return {
        f"{member}: macOS {format_version(binary.macho.minos)}, SDK {format_version(binary.macho.sdk)}"
        for member, binary in side.binaries.items()
    }


def _commands(side: Side) -> set[str]:
    return {f"{member}: {command}" for member, binary in side.binaries.items() for command in binary.commands}


def _exports(side: Side, *, weak: bool) -> set[str]:
    return {
        f"{member.rpartition('/')[2]}: {untagged(name)}"
        for member, binary in side.binaries.items()
        for name, is_weak in binary.exports.items()
        if is_weak is weak
    }


def _library(path: str) -> str:
    return path.rpartition("/")[2]


# Two sets side by side, each difference with its reason or without one. Pure.


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why names of one side are missing from the other: the part and the names as regular expressions."""

    part: str
    side: SideName
    names: str
    text: str

    def fits(self, part: str, side: SideName, name: str) -> bool:
        """Return whether this reason explains a name that only one side ("ours", "official") has in a part."""
        return side == self.side and bool(re.search(self.part, part)) and bool(re.search(self.names, name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One part: how many entries each side has, how many both have, and the rest by reason.

    Attributes:
        differing: (side, reason) -> names.
    """

    part: str
    ours: int
    official: int
    both: int
    differing: Mapping[tuple[SideName, str], tuple[str, ...]]

    @property
    def is_equal(self) -> bool:
        """True if neither side has a name that the other lacks."""
        return not self.differing

    @property
    def is_explained(self) -> bool:
        """True if each difference has a known reason."""
        return all(reason != UNEXPLAINED for _, reason in self.differing)

    @property
    def share(self) -> float:
        """The share of the official wheel's names that ours has, 0 to 1."""
        return self.both / self.official if self.official else 1.0

    def document(self) -> dict[str, Any]:
        """Return the part as JSON: the counts, and the first names of each difference."""
        return {
            "part": self.part,
            "ours": self.ours,
            "official": self.official,
            "both": self.both,
            "equal": self.is_equal,
            "explained": self.is_explained,
            "differences": [
                {"only": side, "reason": reason, "count": len(names), "names": list(names[:_MOST_NAMES])}
                for (side, reason), names in sorted(self.differing.items())
            ],
        }


def compared(part: str, ours: Iterable[str], official: Iterable[str], reasons: Sequence[Reason]) -> Compared:
    """Return one part, every difference with the first reason that fits it.

    >>> done = compared("files", ["a", "b"], ["a", "protoc"], [])
    >>> done.both, dict(done.differing)
    (1, {('ours', 'not explained'): ('b',), ('official', 'not explained'): ('protoc',)})
    """
    left, right = set(ours), set(official)
    found: dict[tuple[SideName, str], list[str]] = defaultdict(list)
    sides: tuple[tuple[SideName, set[str]], ...] = (("ours", left - right), ("official", right - left))
    for side, names in sides:
        usable = [reason for reason in reasons if reason.side == side and re.search(reason.part, part)]
        for name in sorted(names):
            text = next((reason.text for reason in usable if reason.fits(part, side, name)), UNEXPLAINED)
            found[side, text].append(name)
    return Compared(
        part=part,
        ours=len(left),
        official=len(right),
        both=len(left & right),
        differing={key: tuple(names) for key, names in found.items()},
    )


# Why a rehearsal's wheel differs from the official one: facts of how it was configured, compiled and linked.
#
# Each rule names a part, a side and names; the first that fits a name is its reason. No rule touches registrations,
# dispatch headers, classes or selectors but for the one that says what Apple's clang makes of `[X new]`.


def _rule(part: str, side: SideName, names: str, text: str) -> Reason:
    return Reason(part=part, side=side, names=names, text=text)


_SYSTEM_HEADERS = (
    r"^torch/include/(pybind11/|kineto/|tensorpipe/|clog|cpuinfo|experiments-config|fp16|fxdiv|nnpack|psimd|pthreadpool"
    r"|qnnpack_func|sleef|xnnpack)"
)
_OMP = "libomp is the declared one, another build than the official wheel's"
_DELOCATE = "delocate names the wheel's own libraries by their place, and removes rpaths that nothing needs then"
_PROTOC = "protobuf is the system's"

REASONS: tuple[Reason, ...] = (
    _rule("^selectors$", "ours", "^new$", "Apple's clang turns [X new] into objc_opt_new"),
    _rule("^names of frameworks", "official", "objc_opt_new", "Apple's clang turns [X new] into objc_opt_new"),
    _rule("^names of frameworks|^libraries", "official", "IOKit|_k?CF", "used by tensorpipe, which is off"),
    # Whole files, before the names in them.
    _rule("^(exported|libraries|rpaths|load|minimum)", "official", r"^(torch/bin/)?protoc\b", _PROTOC),
    _rule("^(exported|rpaths|load|minimum)", "official", r"^(torch/lib/)?libomp\.dylib:", _OMP),
    _rule("^(exported|rpaths|load|minimum)", "ours", r"^(torch/lib/)?libomp\.dylib:", _OMP),
    _rule("^exported", "official", _DISTRIBUTED, "distributed is off"),
    _rule("^exported", "official", _KINETO, "kineto is off"),
    _rule("^exported", "official", "_Sleef", "vectors without sleef"),
    _rule("^exported", "official", "4onnx|10onnx_torch|6google8protobuf|onnx_2f|_cpuinfo", "stood in for"),
    _rule("^exported", "ours", "4onnx|6google8protobuf|_cpuinfo", "fakes"),
    _rule("^exported", "official", f"{_QUANTIZED}|{_QUANTIZED_PLAIN}", "XNNPACK, QNNPACK, NNPACK are off"),
    _rule("^exported", "official", "3fmt|8nlohmann", "taken from its headers, in Debian's version"),
    _rule(
        "^exported inline",
        "official",
        "8TypeMeta15addTypeMetaData",
        "of a type of std, which zig's libc++ does not export",
    ),
    _rule("^exported inline", "ours", ".", "kept out of line at -O0"),
    _rule(
        "^exported names", "ours", "2at6native", "declared for export by the wide header, though not by its own file"
    ),
    _rule("libSystem", "ours", "^__availability|^_logbf?$", "called by our runtime, in the place of Apple's"),
    _rule("libSystem", "ours", "^__Z", "not inlined at -O0, by a newer libc++"),
    _rule("libSystem", "ours", "^_", "called at -O0, where the optimiser has an instruction or other code for it"),
    _rule(
        "libSystem", "official", "^__Z", "no object here calls it: our newer libc++ has it inline, or its caller is off"
    ),
    _rule(
        "libSystem",
        "official",
        r"^___(sincosf?_stret|exp10|\w+_chk|chkstk_darwin|stack_chk_\w+)$|^_memset_pattern",
        "no object here calls it: made by the optimiser or by Apple's hardening",
    ),
    _rule(
        "libSystem",
        "official",
        ".",
        "no object here calls it: libuv, gloo, tensorpipe, kineto, XNNPACK do, which are off",
    ),
    _rule("torch's own", "official", ".", "no object here calls it: what does is off, or was inlined there"),
    _rule("torch's own", "ours", ": __ZTV", "constructors that name it are out of line at -O0"),
    _rule("torch's own", "ours", "4onnx|6google8protobuf", "fakes; onnx has Debian's namespace"),
    _rule("torch's own", "ours", ".", "called out of line at -O0"),
    _rule("^libraries|^rpaths", "official", r": @rpath/|: @loader_path$", _DELOCATE),
    _rule("^libraries", "ours", r": @loader_path/", _DELOCATE),
    _rule("^load commands", "official", "LC_RPATH", _DELOCATE),
    _rule("^rpaths", "official", ": /Users/", "a folder of the official build's machine"),
    _rule("^rpaths", "ours", "/build/lib$", "of the build tree; installing replaces it"),
    _rule("^load commands", "ours", "CHAINED|TRIE", "LLD's fixups for macOS 13"),
    _rule("^load commands", "official", "DYLD_INFO|SOURCE_VERSION", "Apple's linker, for macOS 11"),
    _rule("^minimum", "ours", "macOS 13.0", "the recipe's deployment target"),
    _rule("^minimum", "official", "macOS 11", "the official wheel's target"),
    _rule(
        "^files$", "official", f"{_SYSTEM_HEADERS}|^torch/share/cmake/Tensorpipe", "its library is off or the system's"
    ),
    _rule("^files$", "official", "^torch/bin/protoc", _PROTOC),
    _rule("^files$", "official", "^torch-.dist-info/(LICENSE|NOTICE)$", "a newer setuptools has a folder for licences"),
    _rule("^files$", "ours", "^torch-.dist-info/licenses/", "a newer setuptools has a folder for licences"),
    _rule("^files$", "ours", "/sboms/mps-build", "the bill of materials of every wheel of ours"),
    _rule("^files$", "official", "Targets-release.cmake$", "named for the build type"),
    _rule("^files$", "ours", "Targets-minsizerel.cmake$", "named for the build type"),
)


# What each operator does on MPS in a wheel, as op_coverage says it: by headers, torchgen and machine code.


def operators_of(wheel: Path, library: Library) -> frozenset[str]:
    """Return "operator: status" for each of a wheel's operators.

    Args:
        library: what its libtorch_cpu registers.

    Raises:
        UsageError: the wheel cannot be read.
        MpsNotBuilt: it has no operator for MPS.
    """
    registered = {
        key: tuple((each.operator, each.falls_back) for function in functions for each in function)
        for key, functions in library.registered.items()
    }
    facts = facts_of_wheel(wheel, Compiled(registered=registered, kernels=library.kernels))
    return frozenset(f"{row.name}: {row.status}" for row in classify(facts))
