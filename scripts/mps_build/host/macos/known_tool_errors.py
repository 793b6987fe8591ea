"""What goes wrong with Apple's developer tools, known by its words: known_tool_errors.yaml, read strictly and once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from mps_build.common import strict_yaml

TABLE = Path(__file__).with_name("known_tool_errors.yaml")
_MACRO = re.compile(r"<([a-z_]+)>")


class _Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class KnownToolError(_Declared):
    """One row: how it is recognised, what it means and how to fix it; see the head of the table."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]+$")]
    phrases: tuple[str, ...]
    needs: str | None = None
    means: str
    fix: str | None
    link: Annotated[str, StringConstraints(pattern=r"^https://")]
    details: Mapping[str, str] = Field(default_factory=dict)
    fixed: Mapping[str, bool] = Field(default_factory=dict)
    fatal: bool = True
    metal: bool = False

    @field_validator("needs", "details")
    @classmethod
    def _compiles(cls, value: str | Mapping[str, str] | None) -> str | Mapping[str, str] | None:
        for pattern in (value,) if isinstance(value, str) else (value or {}).values():
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"is not a pattern: {pattern}: {error}") from error
        return value


class _Table(_Declared):
    schema_version: int = Field(ge=1, le=1)
    commands: dict[str, str]
    errors: tuple[KnownToolError, ...]

    @model_validator(mode="after")
    def _hangs_together(self) -> _Table:
        ids = [error.id for error in self.errors]
        if twice := sorted({name for name in ids if ids.count(name) > 1}):
            raise ValueError(f"two rows of one id: {', '.join(twice)}")
        named = {name for error in self.errors for name in _MACRO.findall(error.fix or "")}
        if unknown := sorted(named - set(self.commands)):
            raise ValueError(f"no such command: {', '.join(unknown)}")
        return self


@lru_cache(maxsize=4)
def load_table(path: Path = TABLE) -> tuple[tuple[KnownToolError, ...], Mapping[str, str]]:
    """Return the rows, their fixes with the commands filled in, and the commands; a fault is a UsageError."""
    table = strict_yaml.load(path, _Table)

    def filled(fix: str | None) -> str | None:
        return None if fix is None else _MACRO.sub(lambda match: table.commands[match[1]], fix)

    return tuple(row.model_copy(update={"fix": filled(row.fix)}) for row in table.errors), table.commands


KNOWN_TOOL_ERRORS, COMMANDS = load_table()
BY_ID: Mapping[str, KnownToolError] = {error.id: error for error in KNOWN_TOOL_ERRORS}

ACCEPT_LICENSE = COMMANDS["accept_license"]
DOWNLOAD_METAL = COMMANDS["download_metal"]
FIRST_LAUNCH = COMMANDS["first_launch"]
INSTALL_CLT = COMMANDS["install_clt"]
