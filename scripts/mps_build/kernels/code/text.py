"""A module's text, taken apart once: types, globals, definitions, declarations."""

from __future__ import annotations

import re
from dataclasses import dataclass

NAME = r'@(?:"[^"]*"|[\w.$-]+)'
_ATTACHMENT = re.compile(r", ![\w.]+ !\d+")
_EMPTY_TABLE = re.compile(r"@llvm\.global_[cd]tors = appending global \[0 x ")
_GROUP = re.compile(r" #\d+(?= \{|$|,| )")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleText:
    """A module without comments, attribute groups and metadata.

    Args:
        types: `%name = type …` lines: name to body.
        globals: `@name = …` lines, in order.
        definitions: each function's lines, from `define` to `}`.
        declarations: `declare …` lines.
        unknown: lines of a kind that no Metal kernel has (module assembly, aliases …).
        empty_tables: how many empty lists of constructors it has.
    """

    types: dict[str, str]
    globals: tuple[str, ...]
    definitions: tuple[tuple[str, ...], ...]
    declarations: tuple[str, ...]
    unknown: tuple[str, ...]
    empty_tables: int = 0


def split_module(text: str) -> ModuleText:
    """Return the parts of a module that LLVM printed."""
    types: dict[str, str] = {}
    globals_, declarations, unknown = [], [], []
    definitions: list[tuple[str, ...]] = []
    body: list[str] | None = None
    empty_tables = 0
    for line in text.splitlines():
        if body is not None:
            if line == "}":
                definitions.append((*body, line))
                body = None
            elif line and not line.startswith(";") and "#dbg_" not in line:
                body.append(_plain(line))
        elif line.startswith("define "):
            body = [_plain(line)]
        elif line.startswith("declare "):
            declarations.append(_plain(line))
        elif _EMPTY_TABLE.match(line):
            empty_tables += 1  # of constructors; Metal 3.0's compiler writes it into every module
        elif line.startswith("@"):
            globals_.append(_plain(line))
        elif line.startswith("%"):
            name, _, rest = line.partition(" = type ")
            types[name] = rest
        elif line and not line.startswith(("!", ";", "attributes #", "source_filename", "target ")):
            unknown.append(line)
    return ModuleText(
        types=types,
        globals=tuple(globals_),
        definitions=tuple(definitions),
        declarations=tuple(declarations),
        unknown=tuple(unknown),
        empty_tables=empty_tables,
    )


def _plain(line: str) -> str:
    """Drop a comment, metadata attachments and attribute groups."""
    if "; preds" in line:
        line = line[: line.index(";")].rstrip()
    if "!" in line:
        line = _ATTACHMENT.sub("", line)
    return _GROUP.sub("", line) if "#" in line else line
