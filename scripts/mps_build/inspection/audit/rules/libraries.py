"""P: every library is found at run time, on any Mac, without what the builder happened to have."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterator

from ..limits import MOST_LOOKUPS
from ..macho import MachO
from ..model import Level, WheelFacts
from ..releases import Wanted
from .binaries import is_openmp
from .rule import Hit, rule

_SYSTEM = ("/usr/lib/", "/System/Library/")


@rule("P1")
def rpaths_are_relative(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """an absolute search path names the builder's disk: what lies there on a user's Mac would be loaded"""
    for member, (_binary, macho) in facts.machos.items():
        for rpath in dict.fromkeys(macho.rpaths):
            if rpath != "@loader_path" and not rpath.startswith("@loader_path/"):
                yield Hit(member, f"LC_RPATH {rpath}")


@rule("P2")
def install_names_are_relative(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """whoever links against the library records its install name; a path of the builder leads nowhere"""
    for member, (_binary, macho) in facts.machos.items():
        if macho.install_name is not None and not macho.install_name.startswith("@"):
            # Harmless for the wheel's own loads, and what vendored libraries come with.
            is_mild = is_openmp(member) or not _is_strict(wanted)
            yield Hit(member, f"LC_ID_DYLIB {macho.install_name}", "warning" if is_mild else None)


@rule("P3")
def install_names_name_the_file(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """a library whose install name is another file's is loaded under the wrong name"""
    level: Level | None = None if _is_strict(wanted) else "warning"
    for member, (_binary, macho) in facts.machos.items():
        if macho.install_name is not None and posixpath.basename(macho.install_name) != posixpath.basename(member):
            yield Hit(member, f"LC_ID_DYLIB {macho.install_name}", level)


@rule("P4")
def libraries_come_from_the_wheel_or_the_system(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """a library outside the wheel and the system is not there on a user's Mac"""
    for member, (_binary, macho) in facts.machos.items():
        for dependency in macho.dependencies:
            plain = posixpath.normpath(dependency.path)
            if not plain.startswith(_SYSTEM) and not dependency.path.startswith(("@loader_path/", "@rpath/")):
                yield Hit(member, f"loads {dependency.path} ({dependency.kind})")


@rule("P5")
def libraries_are_there(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """a library that the wheel refers to must be in it, where the search paths lead"""
    lookups = 0
    for member, (_binary, macho) in facts.machos.items():
        lookups += len(macho.dependencies) * len(macho.rpaths)
        if lookups > MOST_LOOKUPS:
            yield Hit(member, f"{lookups} lookups so far; at most {MOST_LOOKUPS} are made")
            return
        for dependency in macho.dependencies:
            if dependency.path.startswith("@") and posixpath.basename(dependency.path) not in wanted.external_libraries:
                places = _places(member, macho, dependency.path)
                if not any(place in facts.machos for place in places):
                    yield Hit(member, f"loads {dependency.path}: not at {' or '.join(places) or 'any search path'}")


@rule("P6")
def rpaths_are_unique(facts: WheelFacts, _: Wanted) -> Iterator[Hit]:
    """dyld refuses an image that was linked against SDK 15 or later and has the same search path twice"""
    for member, (_binary, macho) in facts.machos.items():
        for rpath, count in Counter(macho.rpaths).items():
            if count > 1:
                yield Hit(member, f"LC_RPATH {rpath} {count} times")


@rule("P7")
def external_libraries_stay_outside(facts: WheelFacts, wanted: Wanted) -> Iterator[Hit]:
    """a second copy of another package's library in one process registers its operators twice, or elsewhere"""
    for member in facts.modes:
        if posixpath.basename(member) in wanted.external_libraries:
            yield Hit(member, "is bundled, but belongs to the installed torch")


def _is_strict(wanted: Wanted) -> bool:
    return wanted.is_torch or wanted.is_declared


def _places(member: str, macho: MachO, path: str) -> tuple[str, ...]:
    """Return the members that dyld would look for, in order."""
    folder = posixpath.dirname(member)
    if path.startswith("@loader_path/"):
        return (posixpath.normpath(f"{folder}/{path[len('@loader_path/') :]}"),)
    if not path.startswith("@rpath/"):
        return ()
    roots = (rpath[len("@loader_path") :] for rpath in dict.fromkeys(macho.rpaths) if rpath.startswith("@loader_path"))
    return tuple(dict.fromkeys(posixpath.normpath(f"{folder}/{root}/{path[len('@rpath/') :]}") for root in roots))


RULES = (
    rpaths_are_relative,
    install_names_are_relative,
    install_names_name_the_file,
    libraries_come_from_the_wheel_or_the_system,
    libraries_are_there,
    rpaths_are_unique,
    external_libraries_stay_outside,
)
