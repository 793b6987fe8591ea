"""Families as data (families/*/family.yaml), and their contracts: a row for each form, and how a kernel matches it."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from string import Template
from typing import Any

from ....common import strict_yaml
from ...program.dtypes import DTYPES, DType, dtype_named
from ...program.launch import NotBound, Program, WrongBinding
from ...program.values import Values
from ...read.metadata import Argument, Metadata
from .pack import pack_argument

FOLDER = Path(__file__).resolve().parents[1]
_FAMILIES = __package__.rpartition(".")[0]
_PLACE = re.compile(r"(?<!\?P)<(\w+)(?::(type|int|word|any|rest))?>")
_TYPES = "|".join(
    sorted([*DTYPES, "float3", "uint32_t", "uint64_t", "u32", "u64", "i32", "i64"], key=len, reverse=True)
)
_PIECES = {"type": f"(?:{_TYPES})", "int": r"\d+", "word": r"[A-Za-z0-9]+", "any": r"\w+?", "rest": r"\w*"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """One row.

    Args:
        folder: of the family, below families/.
        family: our name of this form.
        arguments: names of all buffers in order, as the metadata has them, joined by `, `.
        builtins: `kind type` of the built-in arguments in order, joined by `, `; empty matches any.
        types: for single arguments, the types that are meant (a regular expression by argument name).
        pattern: the kernel's name; its groups are the `parts` that binder and companions use.
        binder: `FAMILY.FUNCTION` below families/, or `shared.MODULE.FUNCTION`.
        companions: other kernels of the library that a program of this family launches.
        options: constants for the binder.
    """

    folder: str
    family: str
    arguments: str
    builtins: str
    types: Mapping[str, str]
    pattern: re.Pattern[str]
    binder: str
    companions: tuple[str, ...]
    options: Mapping[str, Any]

    def matches(self, metadata: Metadata) -> bool:
        """Return whether a kernel has exactly the contract's arguments, built-ins and types."""
        buffers, builtins = signature(metadata)
        if buffers != self.arguments or (self.builtins and builtins != self.builtins):
            return False
        by_name = {each.name: each for each in metadata.arguments}
        return all(re.fullmatch(pattern, by_name[name].type) for name, pattern in self.types.items())


def signature(metadata: Metadata) -> tuple[str, str]:
    """Return a kernel's signature: names of its buffers, and kinds and types of its built-in arguments."""
    buffers = ", ".join(each.name for each in metadata.arguments if each.is_buffer)
    builtins = ", ".join(f"{each.kind} {each.type}" for each in metadata.arguments if not each.is_buffer)
    return buffers, builtins


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """A kernel as a binder sees it: its name, its metadata, what its name says, its row."""

    name: str
    metadata: Metadata
    parts: Mapping[str, str] = field(default_factory=dict)
    contract: Contract | None = None

    @property
    def options(self) -> Mapping[str, Any]:
        """The contract's options; empty for a kernel without a contract."""
        return self.contract.options if self.contract else {}

    def argument(self, name: str) -> Argument:
        """Return the argument of a name.

        Raises:
            WrongBinding: there is none.
        """
        for each in self.metadata.arguments:
            if each.name == name:
                return each
        raise WrongBinding(f"{self.name} has no argument {name}")

    def has(self, name: str) -> bool:
        """Return whether the kernel has an argument of that name."""
        return any(each.name == name for each in self.metadata.arguments)

    def pack(self, name: str, value: object) -> bytes:
        """Return a value stored as the argument `name` is: numbers, sequences, mappings by field name."""
        return pack_argument(self.argument(name), value)

    def dtype(self, name: str) -> DType:
        """Return the element type of an argument.

        Raises:
            NotBound: it is not an element type that can be made here (`void`, a struct).
        """
        dtype = dtype_named(self.argument(name).type)
        if dtype is None:
            raise NotBound(f"{name} has elements of type {self.argument(name).type}")
        return dtype

    def part_dtype(self, part: str) -> DType:
        """Return the element type that a part of the kernel's name spells."""
        dtype = dtype_named(self.parts.get(part, ""))
        if dtype is None:
            raise NotBound(f"{self.parts.get(part)} is not an element type that can be made")
        return dtype


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a binder draws from.

    Args:
        values: seeded inputs; equal for equal seed and kernel.
        kernels: the companions that the library has, by name.
        references: names of the families' `references` with their rows.
        version: torch's, whose known issues count; None if it is not known.
    """

    values: Values
    kernels: Mapping[str, Kernel]
    references: Mapping[str, Mapping[str, Any]]
    is_quick: bool = False
    version: str | None = None

    def first_companion(self, kernel: Kernel) -> Kernel:
        """Return the first of a kernel's companions that the library has.

        Raises:
            NotBound: it has none of them.
        """
        names = companions_of(kernel)
        found = next((self.kernels[name] for name in names if name in self.kernels and name != kernel.name), None)
        if found is None:
            raise NotBound(f"the library has no {names[0] if names else 'kernel'} to compare with")
        return found

    def companion(self, name: str) -> Kernel:
        """Return another kernel of the library.

        Raises:
            NotBound: the library has none of that name, or it was not compiled.
        """
        if name not in self.kernels:
            raise NotBound(f"the library has no {name} to compare with")
        return self.kernels[name]


Binder = Callable[[Kernel, Case], Iterator[Program]]


def find_binder(name: str) -> Binder:
    """Return a contract's binder by its name."""
    module, _, function = name.rpartition(".")
    binder: Binder = getattr(importlib.import_module(f"{_FAMILIES}.{module}"), function)
    return binder


def load_binders() -> None:
    """Import all binders: a process that may not write files would compile them anew each time."""
    for contract in load_contracts():
        find_binder(contract.binder)


@cache
def load_families(folder: Path = FOLDER) -> Mapping[str, Mapping[str, Any]]:
    """Return what the family.yaml of each family's folder says, by the folder's name.

    Raises:
        ValueError: a file has another section than `contracts`, `references` and `large`.
    """
    found = {}
    for path in sorted(folder.glob("*/family.yaml")):
        sections = strict_yaml.unchecked(path.read_text(encoding="utf-8")) or {}
        if unknown := set(sections) - {"contracts", "references", "large"}:
            raise ValueError(f"{path.parent.name}: unknown sections {sorted(unknown)}")
        found[path.parent.name] = sections
    return found


@cache
def load_contracts(folder: Path = FOLDER) -> tuple[Contract, ...]:
    """Return all rows.

    Raises:
        ValueError: a row has an unknown key or lacks one.
        KeyError: it names a word that no axis of its `each` has.
    """
    rows = []
    for name, family in load_families(folder).items():
        for row in family.get("contracts", ()):
            rows += [_contract(each, name) for each in _each(row)]
    return tuple(rows)


def _each(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the rows that one stands for: one for every combination of the axes that `each` lists, or itself."""
    axes = row.get("each", ())
    alike = {key: value for key, value in row.items() if key != "each"}
    for words in product(*axes):
        given = {name: word for each in words for name, word in each.items()}
        yield _filled(alike, given) if given else alike


def _filled(value: Any, given: Mapping[str, Any]) -> Any:
    """Return a value with the words in the places of their `${name}`; what is no text must stand for all of a value."""
    if isinstance(value, str):
        whole = re.fullmatch(r"\$\{(\w+)\}", value)
        return given[whole[1]] if whole else Template(value).substitute(given)
    if isinstance(value, Mapping):
        return {key: _filled(each, given) for key, each in value.items()}
    return [_filled(each, given) for each in value] if isinstance(value, list) else value


_KEYS = {"family", "arguments", "builtins", "types", "name", "binder", "companions", "options", "note"}


def _contract(row: Mapping[str, Any], folder: str) -> Contract:
    if unknown := set(row) - _KEYS:
        raise ValueError(f"{folder}: {row.get('family')}: unknown keys {sorted(unknown)}")
    if missing := {"family", "arguments", "name", "binder"} - set(row):
        raise ValueError(f"{folder}: {row.get('family')}: lacks {sorted(missing)}")
    return Contract(
        folder=folder,
        family=row["family"],
        arguments=row["arguments"],
        builtins=row.get("builtins", ""),
        types=row.get("types", {}),
        pattern=compile_pattern(row["name"]),
        binder=_whole_name(row["binder"], folder),
        companions=tuple(row.get("companions", ())),
        options=row.get("options", {}),
    )


def _whole_name(binder: str, folder: str) -> str:
    """Return a binder's name below families/: a bare one is of the folder's package, `shared.…` is what all use."""
    if binder.startswith("shared."):
        return binder
    return f"{folder}.{binder}"


def compile_pattern(text: str) -> re.Pattern[str]:
    """Return a name's pattern: `<x>` or `<x:any>` some text, `<x:type>` an element type, `<x:int>` a number,
    `<x:word>` text without `_`, `<x:rest>` text or nothing; the rest stands for itself (`|` and brackets as in re).

    >>> compile_pattern("<op>_dense_<out:type>_<in:type>").fullmatch("log_dense_float_bool")["in"]
    'bool'
    """
    seen: set[str] = set()

    def piece(match: re.Match[str]) -> str:
        name, kind = match[1], match[2] or "any"
        if name in seen:
            return f"(?P={name})"
        seen.add(name)
        return f"(?P<{name}>{_PIECES[kind]})"

    return re.compile(_PLACE.sub(piece, text))


@cache
def _by_arguments() -> dict[str, list[Contract]]:
    """Return all rows by their argument list."""
    found: dict[str, list[Contract]] = {}
    for contract in load_contracts():
        found.setdefault(contract.arguments, []).append(contract)
    return found


def match_kernel(name: str, metadata: Metadata, contracts: tuple[Contract, ...] | None = None) -> Kernel | None:
    """Return a kernel with its contract, or None: an unknown signature is never guessed.

    Raises:
        WrongBinding: two contracts match it.
    """
    rows = contracts if contracts is not None else _by_arguments().get(signature(metadata)[0], ())
    fitting = [(row, row.pattern.fullmatch(name)) for row in rows if row.matches(metadata)]
    found = [(row, match) for row, match in fitting if match]
    if len(found) > 1:
        both = " and ".join(f"{row.family} ({row.binder})" for row, _ in found)
        raise WrongBinding(f"{name} has two contracts: {both}")
    for row, match in found:
        return Kernel(name=name, metadata=metadata, parts=match.groupdict(), contract=row)
    return None


def companions_of(kernel: Kernel) -> tuple[str, ...]:
    """Return the names of the kernels that this kernel's programs may launch beside it.

    A row's `*type*` stands for any element type: not all of the names need exist.
    """
    if kernel.contract is None:
        return ()
    names = [each.format(**{**kernel.parts, "name": kernel.name}) for each in kernel.contract.companions]
    return tuple(name.replace("*type*", each) for name in names for each in (DTYPES if "*type*" in name else ("",)))
