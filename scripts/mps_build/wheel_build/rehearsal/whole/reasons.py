"""Why a rehearsal's wheel differs from the official one: facts of how it was configured, compiled and linked.

Each rule names a part, a side and names; the first that fits a name is its reason. No rule touches registrations,
dispatch headers, classes or selectors but for the one that says what Apple's clang makes of `[X new]`.
"""

from __future__ import annotations

from .differences import Reason, Side

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


def _rule(part: str, side: Side, names: str, text: str) -> Reason:
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
    _rule("^exported", "ours", "4onnx|6google8protobuf|_cpuinfo", "stand-ins"),
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
    _rule("torch's own", "ours", "4onnx|6google8protobuf", "stand-ins; onnx has Debian's namespace"),
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
