"""A document of verify_kernels as another command reads it: only what those read is checked, the rest stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ..errors import UsageError
from ..json_text import checked, load_json

_HINT = "give a file that `verify_kernels --json` wrote"


class _Part(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class _Reference(_Part):
    form: str = ""
    name: str = ""
    expression: str = ""
    dtype: str = ""
    types: dict[str, str] = Field(default_factory=dict)
    is_elementwise: bool = False


class _Kernel(_Part):
    name: str
    outcome: str
    library: str = ""
    body: str | None = None
    reason: str | None = None
    operator: str | None = None
    family: str | None = None
    inputs: dict[str, Any] = Field(default_factory=dict)
    where: dict[str, Any] = Field(default_factory=dict)
    reference: _Reference = Field(default_factory=_Reference)
    max_ulp: float | None = None
    bound_ulp: float | None = None
    cpu_ulp: float | None = None
    profile: list[float | None] | None = None


class _Document(_Part):
    target: str
    torch: str | None = None
    seed: int | None = 0
    coverage: dict[str, Any]
    kernels: list[_Kernel]


def is_kernels(document: object) -> bool:
    """True for a document of verify_kernels, whole or damaged."""
    return isinstance(document, dict) and isinstance(document.get("kernels"), list) and "coverage" in document


def load_kernels(path: Path) -> dict[str, Any]:
    """Return the document of verify_kernels in `path`.

    Raises:
        UsageError: it cannot be read, is something else, or is damaged; the message names the file.
    """
    document = load_json(path, hint=_HINT)
    if not is_kernels(document) or "target" not in document:
        raise UsageError(f"{path}: is not a document of verify_kernels", hint=_HINT)
    checked(document, _Document, name=str(path), what="document of verify_kernels", hint=_HINT)
    return _without_nulls(document)


def _without_nulls(document: dict[str, Any]) -> dict[str, Any]:
    """Return it as verify_kernels itself holds it: an error that JSON cannot say (null) is beyond every number."""
    rows = [{key: value for key, value in row.items() if value is not None} for row in document["kernels"]]
    for row in rows:
        if "profile" in row:
            row["profile"] = [float("inf") if each is None else each for each in row["profile"]]
    return {**document, "kernels": rows}
