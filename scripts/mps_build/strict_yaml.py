"""One strict reader for every YAML file of ours: all faults at once, each with file, line and key."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from .errors import UsageError

Model = TypeVar("Model", bound=BaseModel)


def load(path: Path, model: type[Model]) -> Model:
    """Return the file as `model`, or raise a UsageError that lists every fault.

    Duplicate keys, unknown keys and unquoted versions (`2.10` is a float) are faults.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    return parse(text, model, name=str(path))


def parse(text: str, model: type[Model], *, name: str) -> Model:
    """Return `text` as `model`; `name` stands for the file in messages."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if root is None:
            raise UsageError(f"{name}: is empty")
        faults = [f"{name}:{line}: {fault}" for line, fault in _duplicates(root)]
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name}:{mark.line + 1}" if mark else name
        raise UsageError(f"{where}: is no YAML: {getattr(error, 'problem', None) or error}") from error
    try:
        value = model.model_validate(data, strict=False)
    except ValidationError as error:
        for fault in error.errors():
            location = tuple(fault["loc"])
            faults.append(f"{name}:{_line(root, location)}: {_key(location)}: {_wording(fault)}")
    if faults:
        count = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        raise UsageError(
            f"{count} in {name}:\n  " + "\n  ".join(sorted(set(faults))), hint="mend the lines named above"
        )
    return value


def _duplicates(node: yaml.Node) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if str(key.value) in seen:
                found.append((line, f"{key.value}: duplicate key, first given in line {seen[str(key.value)]}"))
            seen.setdefault(str(key.value), line)
            found += _duplicates(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            found += _duplicates(item)
    return found


def _line(node: yaml.Node, location: tuple[Any, ...]) -> int:
    """Return the line of the deepest node on the way to `location` (a missing key has no line of its own)."""
    line = node.start_mark.line + 1
    for part in location:
        if isinstance(node, yaml.MappingNode):
            match = next(((key, value) for key, value in node.value if key.value == str(part)), None)
            if match is None:
                continue  # a union's branch name, or a key that is missing
            line, node = match[0].start_mark.line + 1, match[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
            line = node.start_mark.line + 1
    return line


def _key(location: tuple[Any, ...]) -> str:
    return ".".join(str(part) for part in location) or "the document"


def _wording(fault: Any) -> str:
    value = fault.get("input")
    if fault["type"] == "missing":
        return "is missing"
    if fault["type"] == "extra_forbidden":
        return "unknown key"
    if fault["type"] == "string_type" and isinstance(value, int | float):
        return f'must be text: write it in quotes ("{value}"; an unquoted 2.10 is the number 2.1)'
    return f"{fault['msg'][0].lower()}{fault['msg'][1:]} (found {value!r})"
