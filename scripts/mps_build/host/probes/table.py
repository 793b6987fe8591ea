"""The table of probes: every command that we ask a host, why, how long it may take, and what it may reveal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..macos.xcode import PROOF_MARK

# Compiles three lines of Metal at the two language standards that PyTorch's own probe asks for, in a folder of its own.
METAL_PROOF = (
    "d=$(mktemp -d) || exit 1; trap 'rm -rf \"$d\"' EXIT; "
    "printf '%s\\n' '#include <metal_stdlib>' 'using namespace metal;' "
    "'kernel void probe(device float *p, uint i [[thread_position_in_grid]]) { p[i] = 1; }' > \"$d/probe.metal\"; "
    "for v in 3.1 4.0; do "
    'xcrun --sdk macosx metal "-std=metal$v" -c "$d/probe.metal" -o "$d/probe.air" '
    f'&& echo "{PROOF_MARK} metal$v"; done; true'
)

# Names only: a value may be a secret. The allow-list of the build keeps all of these out; a build by hand would not.
LEAKS = (
    "for n in CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH OBJC_INCLUDE_PATH LIBRARY_PATH CPPFLAGS CFLAGS CXXFLAGS LDFLAGS "
    "CONDA_PREFIX SDKROOT MACOSX_DEPLOYMENT_TARGET DEVELOPER_DIR CMAKE_PREFIX_PATH CC CXX; "
    'do eval "v=\\${$n-}"; [ -n "$v" ] && echo "set: $n"; done; '
    "env | sed -n 's/^\\(DISTUTILS_[A-Za-z0-9_]*\\)=.*/set: \\1/p; "
    "s/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*;.*/semicolon: \\1/p'; echo 'variables: all listed'"
)

_DARWIN, _LINUX = ("Darwin",), ("Linux",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One command, and what it is for. `standard` ones are queried each time, the others only for a recording.

    What `decides` is an input of configure: without an answer nothing is built.
    """

    name: str
    argv: tuple[str, ...]
    why: str
    reveals: str = "nothing"
    seconds: float = 5.0
    systems: tuple[str, ...] = (*_DARWIN, *_LINUX)
    standard: bool = True
    decides: bool = False


def _mac(
    name: str,
    *argv: str,
    why: str,
    reveals: str = "nothing",
    seconds: float = 5.0,
    standard: bool = True,
    decides: bool = False,
) -> Probe:
    return Probe(
        name=name,
        argv=argv,
        why=why,
        reveals=reveals,
        seconds=seconds,
        systems=_DARWIN,
        standard=standard,
        decides=decides,
    )


PROBES: tuple[Probe, ...] = (
    Probe(name="kernel", argv=("uname", "-a"), why="machine or guest, Apple silicon, Rosetta", reveals="host name"),
    Probe(name="disk", argv=("df", "-k", "."), why="free space in the work folder", reveals="name of the volume"),
    Probe(name="python", argv=("python3", "--version"), why="the Python that runs us"),
    Probe(
        name="python_machine",
        argv=("python3", "-c", "import platform; print(platform.machine())"),
        why="an x86_64 Python on Apple silicon is translated",
    ),
    Probe(name="git", argv=("git", "--version"), why="sources come by git; /usr/bin/git dies with a broken Xcode"),
    Probe(name="ccache", argv=("ccache", "--version"), why="--cache ccache needs it"),
    Probe(name="sccache", argv=("sccache", "--version"), why="--cache sccache needs it"),
    Probe(
        name="variables",
        argv=("sh", "-c", LEAKS),
        why="variables that change a build made by hand",
        reveals="names of variables, never values",
    ),
    Probe(name="meminfo", argv=("cat", "/proc/meminfo"), why="memory decides the job count", systems=_LINUX),
    Probe(name="nproc", argv=("nproc",), why="cores decide the job count", systems=_LINUX),
    _mac("macos", "sw_vers", why="the version of macOS, as printed to a tool of the system"),
    _mac(
        "cpu",
        *("sysctl", "hw.memsize", "hw.cputype", "hw.physicalcpu", "hw.model", "machdep.cpu.brand_string"),
        why="chip, memory, cores, Rosetta",
    ),
    _mac("translated", "sysctl", "-in", "sysctl.proc_translated", why="Rosetta"),
    _mac("hypervisor", "sysctl", "-n", "kern.hv_vmm_present", why="a virtual machine proves nothing of a GPU"),
    _mac(
        "hardware",
        "system_profiler",
        "SPHardwareDataType",
        why="model and firmware name a virtual machine",
        reveals="serial number, UUIDs",
        seconds=8.0,
    ),
    _mac(
        "displays",
        "system_profiler",
        "SPDisplaysDataType",
        why="the GPU's cores and its Metal",
        reveals="names of displays",
        seconds=8.0,
    ),
    _mac(
        "mac_ver",
        "python3",
        "-c",
        "import platform; print(platform.mac_ver())",
        why="a Python built with an old SDK sees 10.16 or 16.0",
    ),
    _mac("volumes", "df", "-h", why="space on the Data volume", reveals="names of volumes"),
    _mac("thermal", "pmset", "-g", "therm", why="throttled, timings mean nothing"),
    _mac(
        "thermal_pressure",
        *("notifyutil", "-g", "com.apple.system.thermalpressurelevel"),
        why="on Apple silicon pmset records nothing, however hot it is",
    ),
    _mac("battery", "pmset", "-g", "batt", why="timings on battery differ"),
    _mac("low_power", "sh", "-c", "pmset -g | grep lowpowermode", why="timings in low power mode differ"),
    _mac("session", "launchctl", "managername", why="without a session on the screen MPS may find no GPU"),
    _mac(
        "developer_dir",
        "xcode-select",
        "-p",
        why="which developer directory is chosen",
        reveals="a path",
        decides=True,
    ),
    _mac("xcode", "xcodebuild", "-version", why="the chosen Xcode", seconds=10.0, decides=True),
    _mac("sdk_version", "xcrun", "--sdk", "macosx", "--show-sdk-version", why="the SDK of the build", decides=True),
    _mac(
        "metal",
        *("xcrun", "--sdk", "macosx", "metal", "--version"),
        why="the Metal compiler's version",
        seconds=10.0,
        decides=True,
    ),
    _mac(
        "metal_proof",
        *("sh", "-c", METAL_PROOF),
        why="only compiling proves the Metal compiler",
        seconds=12.0,
        decides=True,
    ),
    _mac(
        "clang",
        *("/usr/bin/clang", "--version"),
        why="clang may fail where xcodebuild works",
        seconds=10.0,
        decides=True,
    ),
    _mac("first_launch", "xcodebuild", "-checkFirstLaunchStatus", why="Xcode's frameworks installed", seconds=10.0),
    _mac(
        "xcode_paths",
        "mdfind",
        "kMDItemCFBundleIdentifier == 'com.apple.dt.Xcode'",
        why="every Xcode on this Mac",
        reveals="paths of applications",
        seconds=2.0,
        decides=True,
    ),
    _mac(
        "applications",
        "sh",
        "-c",
        "ls -d /Applications/Xcode*.app 2>/dev/null",
        why="the same where Spotlight is off",
        reveals="names of applications",
    ),
    _mac(
        "headers",
        "sh",
        "-c",
        "ls -d /opt/homebrew/include /usr/local/include /opt/local/include 2>/dev/null",
        why="headers that a compiler may take in the SDK's place",
    ),
    _mac("receipt", "pkgutil", "--pkg-info=com.apple.pkg.XcodeSystemResources", why="must be as new as Xcode"),
    # For a recording only: what a parser's writer wants to see, and no run needs.
    _mac(
        "product_version",
        "cat",
        "/System/Library/CoreServices/SystemVersion.plist",
        why="sw_vers' source",
        reveals="a build identifier",
        standard=False,
    ),
    _mac(
        "sdk_path",
        "xcrun",
        "--sdk",
        "macosx",
        "--show-sdk-path",
        why="whose SDK it is",
        reveals="a path",
        standard=False,
    ),
    _mac("sdk_build", "xcrun", "--sdk", "macosx", "--show-sdk-build-version", why="the SDK's build", standard=False),
    _mac("metal_path", "xcrun", "-f", "metal", why="a tool or a shim", reveals="a path", standard=False),
    _mac(
        "component",
        "xcodebuild",
        "-showComponent",
        "MetalToolchain",
        why="the component's build and state",
        seconds=10.0,
        standard=False,
    ),
    _mac(
        "clt_receipt",
        "pkgutil",
        "--pkg-info=com.apple.pkg.CLTools_Executables",
        why="the Command Line Tools",
        standard=False,
    ),
    _mac("linker", "ld", "-v", why="which linker", standard=False),
    _mac(
        "gpu_registry",
        "sh",
        "-c",
        "ioreg -p IOService -n AppleARMPE -r -l | grep core-count",
        why="cores where system_profiler is silent",
        standard=False,
    ),
    _mac(
        "volume",
        "diskutil",
        "info",
        "/",
        why="file system, case sensitivity",
        reveals="UUIDs, name of the volume",
        standard=False,
    ),
    _mac(
        "integrity", "csrutil", "status", why="protections that a sandbox or an injected library meets", standard=False
    ),
    _mac("memory", "vm_stat", why="page size, free pages", standard=False),
)


def probes_for(system: str, *, everything: bool = False) -> tuple[Probe, ...]:
    """Return the probes to ask on a system: the standard ones, or all for a recording."""
    return tuple(probe for probe in PROBES if system in probe.systems and (everything or probe.standard))


def probes_of_xcodes(paths: Iterable[str]) -> tuple[Probe, ...]:
    """Return what each further Xcode says of itself, chosen by DEVELOPER_DIR for that one call alone."""
    return tuple(_under(path, "xcode", "xcodebuild", "-version", seconds=10.0) for path in paths)


def proofs_of_xcodes(paths: Iterable[str]) -> tuple[Probe, ...]:
    """Return what proves what each further Xcode can do."""
    return tuple(
        probe
        for path in paths
        for probe in (
            _under(path, "sdk_version", "xcrun", "--sdk", "macosx", "--show-sdk-version", seconds=10.0),
            _under(path, "metal", "xcrun", "--sdk", "macosx", "metal", "--version", seconds=10.0),
            _under(path, "metal_proof", "sh", "-c", METAL_PROOF, seconds=12.0),
        )
    )


def _under(path: str, name: str, *argv: str, seconds: float) -> Probe:
    chosen = ("env", f"DEVELOPER_DIR={path}/Contents/Developer")
    return _mac(
        f"{name} of {path}",
        *chosen,
        *argv,
        why="which Xcode suits",
        reveals="a path",
        seconds=seconds,
        decides=True,
    )


def decides(argv: Sequence[str]) -> bool:
    """Say whether a probe's answer is an input of configure: of the chosen Xcode, or of another one."""
    words = tuple(argv[2:]) if argv[0] == "env" else tuple(argv)
    return any(probe.decides and probe.argv == words for probe in PROBES)


def argv_key(argv: Sequence[str]) -> tuple[str, ...]:
    """Return what makes two probes the same probe."""
    return tuple(str(word) for word in argv)
