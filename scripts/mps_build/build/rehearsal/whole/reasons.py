"""Why a rehearsal's wheel differs from the official one: facts of how it was configured, compiled and linked."""

from __future__ import annotations

from .differences import Reason

LEFT_OUT = (
    "distributed (gloo, tensorpipe, libuv): Debian's tree has no third_party",
    "XNNPACK, QNNPACK and PyTorch's fork of it, NNPACK: the same",
    "Metal libraries: no Metal compiler here; the shaders are inside as source, as with `--allow-jit-shaders`",
    "vectors by sleef: its header in an x86-64 root declares nothing for arm64",
    "optimisation: everything is compiled at -O0",
)
_DISTRIBUTED = r"4c10d|4gloo|10tensorpipe|_uv_|_uv__|11distributed|Process[Gg]roup|_io_kit|nop\d|\dnop"
REASONS: tuple[Reason, ...] = (
    Reason(part="^selectors$", side="ours", names="^new$", text="Apple's clang turns [X new] into objc_opt_new"),
    Reason(part="^names of frameworks", side="official", names="objc_opt_new", text="the same"),
    Reason(part="^names of frameworks|^libraries", side="official", names="IOKit|_CF", text="used by tensorpipe"),
    Reason(part="^exported", side="official", names=_DISTRIBUTED, text="distributed is off"),
    Reason(part="^exported", side="official", names="_Sleef", text="vectors without sleef"),
    Reason(part="^exported", side="official", names="4onnx|10onnx_torch|6google8protobuf", text="stood in for"),
    Reason(part="^exported", side="ours", names="4onnx|6google8protobuf|_cpuinfo", text="stand-ins"),
    Reason(
        part="^exported", side="official", names="xnn|qnnp|_nnp_|XNN|pytorch_q", text="XNNPACK, QNNPACK, NNPACK are off"
    ),
    Reason(part="inline", side="ours", names=".", text="kept out of line at -O0"),
    Reason(part="libSystem", side="ours", names="^__Z", text="not inlined at -O0, by a newer libc++"),
    Reason(part="load commands", side="ours", names="CHAINED|TRIE", text="LLD's fixups for macOS 13"),
    Reason(
        part="load commands", side="official", names="DYLD_INFO|SOURCE_VERSION", text="Apple's linker, for macOS 11"
    ),
    Reason(part="minimum", side="ours", names="macOS 13.0", text="the recipe's deployment target"),
    Reason(part="minimum", side="official", names="macOS 11", text="the official wheel's target"),
    Reason(part="rpaths", side="ours", names="/build/lib$", text="of the build tree; installing replaces it"),
)
