"""What macOS' system is made of here: one table, and the C and the assembly that are generated from it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from mps_build.common.strict_yaml import load

SYSTEM = Path(__file__).parent / "system"
_REGISTERS = 8  # arguments of a call that are in registers


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    same: list[str]
    same_data: list[str]
    renamed: dict[str, str]
    variadic: dict[str, int]
    translated: list[str]
    data: list[str]
    aliases: dict[str, str] = Field(alias="as")
    nil: list[str]
    alone: list[str]
    zeros: list[str]
    refused: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """How a name of macOS is bound.

    Attributes:
        name: C's, without the leading underscore; one of `zeros` may end in `*`.
        kind: same, variadic, translated, data, nil, alone, zeros, refused.
        target: of `same` the name here, of others the C object; of `refused` the reason.
        named: of `variadic`, how many arguments come before the others.
    """

    name: str
    kind: str
    target: str
    named: int = 0


def read_table(path: Path = SYSTEM / "table.yaml") -> dict[str, Row]:
    """Return the rows by their names.

    Raises:
        ValueError: a name stands in it more than once, or a row refers to none.
    """
    table = load(path, _Table)
    rows: dict[str, Row] = {}
    for row in _rows(table):
        if row.name in rows:
            raise ValueError(f"{path.name}: {row.name} stands there as {rows[row.name].kind} and as {row.kind}")
        rows[row.name] = row
    for name, other in table.aliases.items():
        if name in rows or other not in rows:
            raise ValueError(f"{path.name}: {name} stands there already, or {other} not at all")
        rows[name] = replace(rows[other], name=name)
    return rows


def _rows(table: _Table) -> Iterator[Row]:
    yield from (Row(name=name, kind="same", target=name) for name in (*table.same, *table.same_data))
    yield from (Row(name=name, kind="same", target=target) for name, target in table.renamed.items())
    for name, named in table.variadic.items():
        yield Row(name=name, kind="variadic", target=f"variadic_{c_name(name)}", named=named)
    yield from (Row(name=name, kind="translated", target=f"darwin_{c_name(name)}") for name in table.translated)
    yield from (Row(name=name, kind="alone", target=f"darwin_{c_name(name)}") for name in table.alone)
    yield from (Row(name=name, kind="data", target=f"darwin_{c_name(name)}") for name in table.data)
    yield from (Row(name=name, kind="nil", target="darwin_nil") for name in table.nil)
    yield from (Row(name=name, kind="zeros", target="darwin_zeros") for name in table.zeros)
    yield from (Row(name=name, kind="refused", target=reason) for name, reason in table.refused.items())


def find_row(rows: dict[str, Row], name: str) -> Row | None:
    """Return the row of a name, also of one that only a row with `*` is for."""
    if name in rows:
        return rows[name]
    return next((row for row in rows.values() if row.name.endswith("*") and name.startswith(row.name[:-1])), None)


def c_name(name: str) -> str:
    """Return a name as C can say it.

    >>> c_name("select$DARWIN_EXTSN")
    'select_DARWIN_EXTSN'
    """
    return re.sub(r"\W", "_", name)


def bindings_source(rows: dict[str, Row]) -> str:
    """Return the C file with all rows, in the order of their symbols; those with `*` follow."""
    exact = sorted(
        (row for row in rows.values() if not row.name.endswith("*")), key=lambda row: symbol_of(row).encode()
    )
    families = [row for row in rows.values() if row.name.endswith("*")]
    objects = sorted({row.target for row in rows.values() if row.kind not in ("same", "refused")})
    lines = ["/* Generated from table.yaml by table.py. */", '#include "system.h"', "#include <stddef.h>"]
    lines += [f"extern char {name}[];" for name in objects]
    lines += ["const struct system_row system_rows[] = {", *map(_c_row, exact), "};"]
    lines += [f"const size_t system_row_count = {len(exact)};"]
    lines += ["const struct system_row system_families[] = {", *map(_c_row, families), "};"]
    lines += [f"const size_t system_family_count = {len(families)};", ""]
    return "\n".join(lines)


def symbol_of(row: Row) -> str:
    """Return the name that a Mach-O has: C's with an underscore, but for one that dyld itself gives."""
    return row.name if row.name == "dyld_stub_binder" else "_" + row.name.removesuffix("*")


def _c_row(row: Row) -> str:
    symbol = symbol_of(row)
    if row.kind == "same":
        return f'    {{"{symbol}", SYSTEM_SAME, NULL, "{row.target}"}},'
    if row.kind == "refused":
        return f'    {{"{symbol}", SYSTEM_REFUSED, NULL, "{row.target}"}},'
    kind = "SYSTEM_ALONE" if row.kind in ("nil", "zeros", "alone") else "SYSTEM_GIVEN"
    return f'    {{"{symbol}", {kind}, {row.target}, NULL}},'


def thunks_source(rows: dict[str, Row]) -> str:
    """Return the assembly that hands the place of variadic arguments on, in the register after the named ones."""
    lines = ["/* Generated from table.yaml by table.py. */", "    .text"]
    for target, named in sorted({(row.target, row.named) for row in rows.values() if row.kind == "variadic"}):
        if not 0 < named < _REGISTERS:
            raise ValueError(f"{target}: {named} named arguments leave no register")
        own = target.replace("variadic_", "darwin_", 1)
        lines += [f"    .globl {target}", f"    .type {target}, %function", f"{target}:"]
        lines += [f"    mov x{named}, sp", f"    b {own}"]
    return "\n".join([*lines, '    .section .note.GNU-stack,"",%progbits', ""])
