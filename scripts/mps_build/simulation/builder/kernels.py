"""The official wheel's Metal kernels as machine code, linked for fixed places: what the software Metal loads.

The only module here that knows how `verify_kernels` reads and compiles them. They run in torch's process, so they are
taken from the one wheel whose digest is known, or for a release that is not from the one that the index's digest fits;
its bitcode is read, checked and translated in a closed process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...common.errors import RefusedForSafety, SourceError
from ...common.files import write_whole
from ...common.receipts import fingerprint
from ...common.reporting import Reporter
from ...common.wheels.download import fetch_wheel
from ...common.wheels.pip_call import EXECUTED, LIMITS, Limits
from ...common.workspace import cache_folder
from ...kernels.code.compiled import ENTRY, LIBRARY_CALLS, ROW, SYMBOLS, Code
from ...kernels.code.compiler import translator_version
from ...kernels.execution.closed import Reader
from ...kernels.execution.servers import servers
from ...kernels.machine.link import Image
from ...kernels.read.library import KERNEL_TYPE, Library
from ...kernels.read.wheel import read_libraries
from ..releases import Release

# kernels.cpp fills these places with jumps to the functions, and reads what `packed` writes.
_FORMAT, _CALLS, _CALL_BYTES = "mps-build-kernels-2", 0x5900_0000_0000, 16
_CODE, _PAGE = 0x5B00_0000_0000, 4096
_NAMES: Mapping[str, str] = {**SYMBOLS, **{name: name for name in LIBRARY_CALLS}}
# The runtime's functions, in the order of their places.
CALLED = tuple(_NAMES.values())


def compile_kernels(
    release: Release, folder: Path, *, log: Path, reporter: Reporter, limits: Limits = EXECUTED
) -> Path:
    """Return the folder with a file of kernels for each Metal library of the release's wheel; made only once.

    It is empty where the release brings all of its kernels as text, and where the index has no wheel of a release that
    is built from a tree: such a tree may be of no release at all.

    Args:
        limits: of pip, where no digest of the wheel is known.

    Raises:
        UsageError, SourceError: the known wheel could not be had.
        RefusedForSafety: it is not the one that is known; or none is known, and the index gives no hash of it.
    """
    wheel = release.wheel
    if wheel is None:
        return _none(release, folder)
    version = hashlib.sha256(f"{_FORMAT} {wheel.sha256} {translator_version()}".encode()).hexdigest()[:12]
    home = folder / f"{release.version}-{version}"
    if home.is_dir():
        return home
    requirement, cache = f"torch=={release.version}", cache_folder() / "wheels"
    try:
        held = LIMITS if wheel.sha256 is not None else limits
        fetched = fetch_wheel(requirement, python=wheel.python, cache=cache, log=log, reporter=reporter, limits=held)
    except SourceError as error:
        if wheel.sha256 is not None:
            raise
        reporter.line(f"no Metal kernels but those that are text: {error}")
        return _none(release, folder)
    digest = fingerprint(fetched.path)["sha256"]
    if wheel.sha256 not in (None, digest):
        raise RefusedForSafety(
            f"{fetched.path.name} is not the official wheel: its sha256 is {digest}",
            hint="its kernels would run in torch's process; remove it, then run the same command again",
        )
    libraries = read_libraries(fetched.path)
    with servers(cache_folder() / "kernels", None, {}) as started:
        made = {library.name: packed(dict(_codes(library, started.reader, reporter))) for library in libraries}
    beside = home.with_name(f".{home.name}")
    for name, data in made.items():
        write_whole(beside / f"{name}.kernels", data)
    beside.rename(home)
    return home


def _none(release: Release, folder: Path) -> Path:
    (none := folder / f"{release.version}-none").mkdir(parents=True, exist_ok=True)
    return none


def _codes(library: Library, path: Path, reporter: Reporter) -> Iterator[tuple[str, Code]]:
    """Yield the kernels of a library that can be compiled; one that cannot is as if it were not there."""
    kernels = [each for each in library.functions if each.kind == KERNEL_TYPE and not each.fault]
    reporter.started(f"Compile the kernels of {library.name}", total=len(kernels), unit="kernels")
    with Reader(path) as reader:
        for done, each in enumerate(kernels, 1):
            code = reader.compile(library.bitcode(each), simulated=True)
            if isinstance(code, Code):
                yield each.name, code
            else:
                reporter.line(f"{each.name} is left out: {code.reason}")
            reporter.advanced(done, total=len(kernels), note=each.name)
    reporter.done()


def packed(codes: Mapping[str, Code]) -> bytes:
    """Return kernels as one file: a line with the format and two sizes, an index as text, and the code. Pure."""
    lines, code, base = [" ".join(CALLED)], bytearray(), _CODE
    for name, each in codes.items():
        line, data = linked(each, base, at=len(code))
        lines.append(f"{name} {line}")
        code += data
        base += -(-len(data) // _PAGE) * _PAGE
    index = ("\n".join(lines) + "\n").encode()
    return f"{_FORMAT} {len(index)} {len(code)}\n".encode() + index + bytes(code)


def linked(code: Code, base: int, *, at: int = 0) -> tuple[str, bytes]:
    """Return a kernel's line without its name, and its bytes for the address `base`.

    The line says where it lies, how it is launched, its buffers, its threadgroup variables.

    Args:
        at: where its bytes lie in a file.

    Raises:
        Malformed: it is not an object file of a kernel.
    """
    calls = {name: _CALLS + number * _CALL_BYTES for number, name in enumerate(_NAMES)}
    image = Image(code.objectcode)
    data, entry = image.linked(base, calls, ENTRY)
    row = image.offset(ROW)
    buffers = [each for each in code.metadata.arguments if each.slot is not None]
    most = min(code.metadata.max_threads or 1024, 1024)
    fields: list[object] = [
        base,
        entry,
        0 if row is None else base + row,
        at,
        len(data),
        int(code.is_cooperative),
        most,
    ]
    fields += [len(code.metadata.arguments), len(buffers)]
    for each in buffers:
        fields += [each.index, each.slot, each.space, -1 if each.size is None else each.size]
    fields.append(len(code.variables))
    for variable in code.variables:
        fields += [variable.address, variable.size, int(variable.is_zero)]
    return " ".join(map(str, fields)), data
