"""Which names a system library has: read from a text stub (tapi), or from llvm-nm's list of archives."""

from __future__ import annotations

import re
from collections.abc import Iterable

_BLOCK = re.compile(r"^  - targets: +\[(?P<targets>[^\]]*)\]\n(?P<body>(?:    [^\n]*\n)+)", re.MULTILINE)
_NAMES = re.compile(
    r"^    (?P<kind>symbols|weak-symbols|thread-local-symbols|objc-classes): +\[(?P<names>[^\]]*)\]", re.MULTILINE
)
_OF_A_CLASS = ("_OBJC_CLASS_$_", "_OBJC_METACLASS_$_")
_ARM64 = ("arm64-macos", "arm64e-macos")


def exported_names(text: str) -> frozenset[str]:
    """Return what a text stub, its reexported libraries included, exports for macOS on arm64.

    >>> sorted(exported_names("exports:\\n  - targets:  [ arm64e-macos ]\\n    symbols:  [ _a, '$ld$x', _b ]\\n"))
    ['_a', '_b']
    """
    found: set[str] = set()
    for block in _BLOCK.finditer(text):
        targets = {target.strip() for target in block["targets"].split(",")}
        if targets.isdisjoint(_ARM64):
            continue
        for match in _NAMES.finditer(block["body"]):
            names = [name.strip().strip("'\"") for name in match["names"].split(",")]
            if match["kind"] == "objc-classes":
                names = [prefix + name for name in names for prefix in _OF_A_CLASS]
            found.update(names)
    return frozenset(name for name in found if name and not name.startswith("$"))


def parse_defined(nm: str) -> frozenset[str]:
    r"""Return the names that `llvm-nm --defined-only --extern-only --format=just-symbols` lists of archives.

    >>> sorted(parse_defined("\nstring.o:\n__ZNSt3__1a\n\nx.o:\n_b\n"))
    ['__ZNSt3__1a', '_b']
    """
    return frozenset(line for line in nm.splitlines() if line and not line.endswith(":"))


def parse_external(nm: Iterable[str]) -> tuple[frozenset[str], frozenset[str]]:
    r"""Return the names that files want and those that they define, as `llvm-nm --extern-only --format=posix` prints.

    >>> wanted, defined = parse_external(["a.o:", "_f T 1c 0", "_g U 0 0", "", "b.o:", "_g S 20 0"])
    >>> sorted(wanted), sorted(defined)
    (['_g'], ['_f', '_g'])
    """
    wanted: set[str] = set()
    defined: set[str] = set()
    for line in nm:  # two million of them
        name, _, kind = line.partition(" ")
        if kind:
            (wanted if kind.startswith("U") else defined).add(name)
    return frozenset(wanted), frozenset(defined)
