"""CMake's list of compile commands, compile_commands.json: by which name ninja knows an object."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

_QUOTES = re.compile(r"[\"'\\]")


def words_of(command: str) -> list[str]:
    r"""Return a command's words as a shell splits it.

    >>> words_of("c++ -DA=1 -c a.cpp"), words_of(r"c++ '-DA=x y' -DB=\"s\"")
    (['c++', '-DA=1', '-c', 'a.cpp'], ['c++', '-DA=x y', '-DB="s"'])

    Raises:
        ValueError: a quotation has no end.
    """
    # shlex reads character by character, 5 ms a command of CMake's; next to none of them quotes anything.
    return shlex.split(command) if _QUOTES.search(command) else command.split()


def object_of(entry: Mapping[str, str]) -> str:
    """Return the object that an entry compiles, as ninja names it: relative to the build folder.

    That is the command's own `-o`. The key `output` came with CMake 3.26, and CMake 4.4 writes a whole path there.

    >>> object_of({"command": "c++ -o d/a.o -c a.cpp", "output": "/b/d/a.o"})
    'd/a.o'

    Raises:
        LookupError: the entry names no object.
    """
    words = words_of(entry.get("command", ""))
    return words[words.index("-o") + 1] if "-o" in words[:-1] else entry["output"]
