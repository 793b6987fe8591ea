"""libSystem, libc++ and the compiler's runtime for the linker: names out of zig's own package and cache, and ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from mps_build.common.errors import BuildEnvironmentError
from mps_build.common.files import write_whole
from mps_build.common.process import Command, capture

from ...objc import Stubs, write_stubs
from ..chroot import Chroot
from ..darwin import run_in_root
from ..darwin_sdk import ACCELERATE_PROBES
from ..session import Rehearsal
from ..zig import PROBE
from .library_names import exported_names, parse_defined
from .toolchain import WholeToolchain

_ARCHIVES = ("libc++.a", "libc++abi.a")
RUNTIME = Path(__file__).with_name("runtime.c")
_MACHO_64 = b"\xcf\xfa\xed\xfe"


def write_system_stubs(
    rehearsal: Rehearsal, chroot: Chroot, whole: WholeToolchain, *, zig: Path, cache: Path
) -> tuple[Path, ...]:
    """Write the text stubs of macOS's libraries and compile the runtime; return the files.

    Every name of zig's libSystem.tbd is in the stub (LLD cannot read zig's own file, which names newer processors);
    libc++'s are those that zig's libc++ defines.

    Raises:
        BuildEnvironmentError: zig made no archive for this target, or its libSystem.tbd cannot be read.
    """
    system = zig.parent / "lib/libc/darwin/libSystem.tbd"
    try:
        names = exported_names(system.read_text(encoding="utf-8"))
    except OSError as error:
        raise BuildEnvironmentError(
            f"zig's list of libSystem: {error}", hint="remove ziglang from the cache"
        ) from error
    probe = whole.sdk.folder / "probe.cpp"
    write_whole(probe, PROBE)
    # Compiled and linked by zig in one call, so that it makes its archives.
    run_in_root(rehearsal, chroot, (str(whole.sdk.tools / "c++"), "-shared", str(probe), "-o", f"{probe}.dylib"))
    found = {name: _newest(cache, name) for name in _ARCHIVES}
    listed = _list(chroot, whole.llvm, (found["libc++.a"], found["libc++abi.a"]))
    more = {"libSystem.B": names, "libc++.1": listed}
    stubs = write_linker_stubs(whole.sdk.sdk, release=rehearsal.recipe.version, more=more)
    system_stub = stubs.libraries / "libSystem.tbd"
    for alias in ("libm", "libpthread", "libdl", "libc"):
        write_whole(stubs.libraries / f"{alias}.tbd", system_stub.read_text(encoding="utf-8"))
    source, compiled = whole.runtime.with_suffix(".c"), whole.runtime.with_suffix(".o")
    write_whole(source, RUNTIME.read_bytes())
    whole.runtime.unlink(missing_ok=True)
    for tool, *words in (("cc", "-c", "-O1", "-o", compiled, source), ("ar", "rcs", whole.runtime, compiled)):
        run_in_root(rehearsal, chroot, (str(whole.sdk.tools / str(tool)), *map(str, words)))
    return (whole.runtime, *sorted(whole.sdk.sdk.rglob("*.tbd")))


def write_linker_stubs(sdk: Path, *, release: str, more: Mapping[str, Iterable[str]]) -> Stubs:
    """Write the stub SDK's libraries: configure finds BLAS and LAPACK in them, and the linker torch's imports.

    Frameworks and libobjc know what the official wheel imports, Accelerate what configure probes for as well: another
    name stops the link.

    Args:
        more: names of the libraries that compiled code calls by itself, as `write_stubs` takes them.
    """
    return write_stubs(sdk, release=release, extra={**more, "Accelerate": ACCELERATE_PROBES})


def _newest(cache: Path, name: str) -> Path:
    """Return the archive of that name that zig made last for a Mac."""
    archives = sorted(cache.glob(f"o/*/{name}"), key=lambda path: path.stat().st_mtime, reverse=True)
    for archive in archives:
        if _MACHO_64 in archive.read_bytes()[: 1 << 20]:
            return archive
    raise BuildEnvironmentError(
        f"zig left no {name} for macOS in {cache}", hint=f"remove {cache} and run the same command again"
    )


def _list(chroot: Chroot, llvm: Path, archives: tuple[Path, ...]) -> frozenset[str]:
    argv = (str(llvm / "llvm-nm"), "--defined-only", "--extern-only", "--format=just-symbols", *map(str, archives))
    answer = capture(chroot.inside(Command(argv=argv)), timeout_seconds=120)
    if not answer.ok:
        raise BuildEnvironmentError(f"llvm-nm cannot read zig's libc++: {answer.stderr.strip()}")
    return parse_defined(answer.stdout)
