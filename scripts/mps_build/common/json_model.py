"""A JSON document as a value whose every part has its type: what is wrong with it is said once, before it is used."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from .errors import UsageError

_Value = TypeVar("_Value")
_MOST_FAULTS = 10


def checked(document: Any, kind: type[_Value], *, name: str, what: str, hint: str | None = None) -> _Value:
    """Return a document as a dataclass or a model.

    Args:
        name: the file, for messages.
        what: what it should be, such as "record".

    Raises:
        UsageError: a part is missing, or has another type; every such part is named.
    """
    try:
        # As JSON, strictly: a text of 5,000 digits is a text, and not an infinite number of seconds.
        return TypeAdapter(kind).validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()[:_MOST_FAULTS]]
        raise UsageError(f"{name}: is a damaged {what}:\n  " + "\n  ".join(faults), hint=hint) from error
