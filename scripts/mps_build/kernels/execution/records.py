"""What a closed process may say: each answer's form, read strictly, with every number, list and text bounded."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

from ..code.compiled import Variable
from ..machine.left import Left
from ..read.metadata import Metadata

STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)
Text = Annotated[str, Field(max_length=2000)]


class Pid(BaseModel):
    """Which process it is: in its namespace, and as those outside of it have it."""

    model_config = STRICT
    pid: Annotated[int, Field(gt=0, lt=1 << 31)]
    outer: Annotated[int, Field(ge=0, lt=1 << 31)] = 0


class Failed(BaseModel):
    """What went wrong with what was asked."""

    model_config = STRICT
    failed: Literal["malformed", "binding", "memory", "fault"]
    text: Text


class Unavailable(BaseModel):
    """The process could not be closed."""

    model_config = STRICT
    unavailable: Text


class Nothing(BaseModel):
    """It was done."""

    model_config = STRICT


class Compiled(BaseModel):
    """A kernel's code, whose bytes follow."""

    model_config = STRICT
    metadata: Metadata
    body: Annotated[str, Field(max_length=64)]
    variables: Annotated[tuple[Variable, ...], Field(max_length=64)]
    is_cooperative: bool


class NotCompiled(BaseModel):
    """Why a kernel has no code."""

    model_config = STRICT
    metadata: Metadata | None
    body: Annotated[str, Field(max_length=64)]
    fault: Literal["refused", "not_compiled", "beyond"]
    reason: Text


class CompiledOrNot(RootModel[Compiled | NotCompiled]):
    """The answer to a compilation."""


class Narrow(BaseModel):
    """The 32-bit arithmetic that reaches an address."""

    model_config = STRICT
    parts: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=1000)]


class Pair(BaseModel):
    """Two kernels side by side, or one alone; of what is not the same the second's metadata and the instructions."""

    model_config = STRICT
    metadata: Metadata | None
    is_same: bool
    instructions: Annotated[list[Annotated[int, Field(ge=0, lt=1 << 31)]], Field(max_length=2)]


class Ran(BaseModel):
    """What a run left; the bytes of its buffers follow, so many of each, but for those `same` as after the first run."""

    model_config = STRICT
    left: Left
    sizes: Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=256)]
    same: Annotated[list[bool], Field(max_length=256)] = Field(default_factory=list)
