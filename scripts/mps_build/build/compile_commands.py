"""CMake's list of compile commands, compile_commands.json: by which name ninja knows an object."""

from __future__ import annotations

import shlex
from collections.abc import Mapping


def object_of(entry: Mapping[str, str]) -> str:
    """Return the object that an entry compiles, as ninja names it: relative to the build folder.

    That is the command's own `-o`. The key `output` came with CMake 3.26, and CMake 4.4 writes a whole path there.

    >>> object_of({"command": "c++ -o d/a.o -c a.cpp", "output": "/b/d/a.o"})
    'd/a.o'

    Raises:
        LookupError: the entry names no object.
    """
    words = shlex.split(entry.get("command", ""))
    return words[words.index("-o") + 1] if "-o" in words[:-1] else entry["output"]
