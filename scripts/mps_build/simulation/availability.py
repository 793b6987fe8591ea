"""Since which macOS a class, method or constant exists: availability.yaml as data, and the library's table of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from mps_build.common import strict_yaml

_FILE = Path(__file__).with_name("availability.yaml")
OLDEST_MACOS = (12, 3)  # MPS needs it: what is as old as that exists wherever PyTorch asks
_Words = Annotated[str, StringConstraints(min_length=1)]
_Version = Annotated[str, StringConstraints(pattern=r"^\d{2}\.\d{1,2}$")]
_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*$")]
_Selector = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_]\w*(:(\w+:)*)?$")]


class Entry(BaseModel):
    """What of one type is as new; neither methods nor constants: the type itself."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    of: _Name
    since: _Version
    source: Literal["header", "documentation", "bindings"]
    where: _Words
    methods: tuple[_Selector, ...] = ()
    constants: tuple[_Name, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Entry:
        if self.methods and self.constants:
            raise ValueError("a class has methods, an enum has constants")
        if self.version <= OLDEST_MACOS:
            raise ValueError(f"what is of macOS {self.since} exists on every macOS with MPS")
        return self

    @property
    def version(self) -> tuple[int, int]:
        """Major and minor."""
        major, minor = self.since.split(".")
        return int(major), int(minor)

    @property
    def names(self) -> tuple[str, ...]:
        """What it is about; an empty name is the type itself."""
        return self.methods or self.constants or ("",)


class Checked(BaseModel):
    """For which selectors the fact was looked up, and for which nothing was found."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    release: _Words
    selectors: int = Field(gt=0)
    not_found: tuple[_Selector, ...]


class Availability(BaseModel):
    """The whole of availability.yaml: from the oldest macOS to the newest."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1]
    checked: Checked
    entries: tuple[Entry, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Availability:
        versions = [each.version for each in self.entries]
        if versions != sorted(versions):
            raise ValueError("the entries are not in the order of their versions")
        rows = [row[:2] for row in self.rows()]
        if repeated := sorted({f"{of} {name}".strip() for of, name in rows if rows.count((of, name)) > 1}):
            raise ValueError(f"stated more than once: {', '.join(repeated)}")
        return self

    def rows(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield (type, name, major, minor) of each fact."""
        for each in self.entries:
            yield from ((each.of, name, *each.version) for name in each.names)


def read_availability(path: Path = _FILE) -> Availability:
    """Return what is known.

    Raises:
        UsageError: the file is not what it should be.
    """
    return strict_yaml.load(path, Availability)


def table_source(known: Availability) -> str:
    """Return the C++ that the library is linked with: its rows, as runtime/availability.h declares them."""
    rows = [f'    {{"{of}", "{name}", {major}, {minor}}},' for of, name, major, minor in known.rows()]
    return "\n".join(
        (
            "// Made of availability.yaml.",
            '#include "runtime/availability.h"',
            "const sim::Since sim::since_rows[] = {",
            *rows,
            "};",
            "const size_t sim::since_count = sizeof since_rows / sizeof *since_rows;",
            "",
        )
    )
