"""What a Linux wheel's libraries load, from `readelf -d`: the audit reads Mach-O alone."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.errors import AuditRejected, BuildEnvironmentError
from mps_build.common.process import Command, capture
from mps_build.common.workspace import remove_tree

_SYSTEM = re.compile(r"(libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|ld-linux[\w-]*)\.so(\.\d+)*")
_TORCH = re.compile(r"lib(c10|torch|torch_cpu|torch_python|shm)\.so(\.[\d.]+)?")
_ENTRY = re.compile(r"\((NEEDED|RPATH|RUNPATH)\)[^\[]*\[(.*)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loads:
    """What one library asks the loader for."""

    needed: tuple[str, ...]
    search: tuple[str, ...]


def parse_dynamic(text: str) -> Loads:
    """Return what `readelf -d` tells.

    >>> parse_dynamic(" 0x1 (NEEDED)   Shared library: [libc10.so.2.6]\\n 0x1d (RUNPATH)  Library runpath: [$ORIGIN]")
    Loads(needed=('libc10.so.2.6',), search=('$ORIGIN',))
    """
    entries = _ENTRY.findall(text)
    search = [path for kind, value in entries if kind != "NEEDED" for path in value.split(":")]
    return Loads(needed=tuple(value for kind, value in entries if kind == "NEEDED"), search=tuple(search))


def faults_of(members: Iterable[str], loads: Mapping[str, Loads]) -> tuple[str, ...]:
    """Return what is wrong with a companion's libraries: torch brought along, or something loaded from elsewhere."""
    own = {posixpath.basename(member) for member in members}
    faults = [f"{member}: is torch's own library" for member in members if _TORCH.fullmatch(posixpath.basename(member))]
    for member, each in loads.items():
        known = [name for name in each.needed if name in own or _SYSTEM.fullmatch(name) or _TORCH.fullmatch(name)]
        strange = [name for name in each.needed if name not in known]
        faults += [f"{member}: loads {name}, which is neither torch's nor the system's" for name in strange]
        faults += [f"{member}: searches {path}" for path in each.search if not path.startswith("$ORIGIN")]
    if not any(_TORCH.fullmatch(name) for each in loads.values() for name in each.needed):
        faults.append("no library of it loads torch's")
    return tuple(faults)


def check_libraries(wheel: Path, *, scratch: Path, wrap: Callable[[Command], Command]) -> dict[str, Loads]:
    """Return what each library of a Linux wheel loads.

    Raises:
        AuditRejected: a library loads what is neither torch's nor the system's, or torch was brought along.
        BuildEnvironmentError: readelf does not answer.
    """
    remove_tree(scratch)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        libraries = [name for name in names if re.search(r"\.so(\.\d+)*$", name)]
        archive.extractall(scratch, members=libraries)
    loads = {}
    for name in libraries:
        answer = capture(wrap(Command(argv=("readelf", "-d", "-W", str(scratch / name)))))
        if not answer.ok:
            raise BuildEnvironmentError(f"readelf cannot read {name}: {answer.stderr.strip()}")
        loads[name] = parse_dynamic(answer.stdout)
    remove_tree(scratch)
    faults = faults_of(names, loads)
    if faults:
        raise AuditRejected(f"{wheel.name} was rejected by the audit:\n  " + "\n  ".join(faults), hint=f"it is {wheel}")
    return loads
