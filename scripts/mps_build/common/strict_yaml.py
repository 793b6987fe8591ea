"""One strict reader for every YAML file of ours: all faults at once, each with file, line and key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from .errors import UsageError, reason_of
from .files import read_text

Model = TypeVar("Model", bound=BaseModel)
Location = tuple[str | int, ...]
Fault = tuple[Location, str]
Check = Callable[[Any], Iterable[Fault]]
_HINT = "correct the lines named above"
_DEEPEST = 40
_MOST_BYTES = 8 << 20  # the longest of ours has a tenth of it
# libyaml's reader is ten times as fast; where PyYAML was built without it, its own does the same.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """One file as it was read: its name in messages, its nodes (they know the lines), and what it says."""

    name: str
    root: yaml.Node
    data: Any


# Where a value of the data that is checked was written: in which file, and where in it.
Origin = Callable[[Location], tuple[Document, Location]]


def load(path: Path, model: type[Model], *, checks: Iterable[Check] = ()) -> Model:
    """Return the file as `model`, or raise a UsageError that lists every fault.

    Duplicate keys, unknown keys and unquoted versions (`2.10` is a float) are faults.
    """
    document = read(path)
    return validated(document.data, model, documents=(document,), checks=checks)


def read(path: Path) -> Document:
    """Return a file of YAML, unchecked but for what no reader of YAML should take: aliases and endless depth.

    Raises:
        UsageError: it cannot be read, or is not YAML.
    """
    return document_of(text_of(path), str(path))


def text_of(path: Path) -> str:
    """Return what a file of YAML holds.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return read_text(path, most_bytes=_MOST_BYTES)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read: {reason_of(error)}") from error


def parse(text: str, model: type[Model], *, name: str, checks: Iterable[Check] = ()) -> Model:
    """Return `text` as `model`; `name` stands for the file in messages."""
    document = document_of(text, name)
    return validated(document.data, model, documents=(document,), checks=checks)


def validated(
    data: Any,
    model: type[Model],
    *,
    documents: Sequence[Document],
    origin: Origin | None = None,
    checks: Iterable[Check] = (),
    faults: Iterable[tuple[Document, Location, str]] = (),
) -> Model:
    """Return what the files say together as `model`, or raise a UsageError that lists every fault of each.

    Args:
        documents: the files, the one that was requested first.
        origin: where a value of `data` was written; None: all of it is the first file's.
        checks: each is checked on the raw data for faults that no single field can know, so
            that they show together with the model's own.
        faults: what was found wrong when `data` was made of the files.
    """
    written = origin or (lambda location: (documents[0], location))
    found = {(document, line, fault) for document in documents for line, fault in _duplicates(document.root)}
    value = None
    try:
        value = model.model_validate(data)
    except ValidationError as error:
        for fault in error.errors():
            document, location = written(tuple(fault["loc"]))
            said = _wording(fault, _scalar(document.root, location))
            found.add((document, _line(document.root, location), f"{_key(location)}: {said}"))
    requested = [(*written(location), said) for check in checks for location, said in check(data)]
    for document, location, said in (*faults, *requested):
        found.add((document, _line(document.root, location), f"{_key(location)}: {said}"))
    if found or value is None:
        ordered = sorted(found, key=lambda each: (documents.index(each[0]), *each[1:]))
        lines = [f"{document.name}:{line}: {fault}" for document, line, fault in ordered]
        count = "1 fault" if len(lines) == 1 else f"{len(lines)} faults"
        names = dict.fromkeys(document.name for document, _, _ in ordered)
        raise UsageError(f"{count} in {' and '.join(names)}:\n  " + "\n  ".join(lines), hint=_HINT)
    return value


def unchecked(text: str) -> Any:
    """Return what YAML of our own says; nothing of `load`'s is queried.

    Raises:
        yaml.YAMLError: is not YAML.
    """
    return yaml.load(text, Loader=_Loader)


def document_of(text: str, name: str) -> Document:
    """Return what a text of YAML says; `name` stands for the file in messages, and the errors are those of `read`."""
    try:
        _refuse_aliases_and_depth(text, name)
        loader = _Loader(text)
        root = loader.get_single_node()
        if root is None:
            raise UsageError(f"{name}: is empty")
        return Document(name, root, loader.construct_document(root))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name}:{mark.line + 1}" if mark else name
        problem = str(getattr(error, "problem", None) or error)
        if "nesting" in problem:  # libyaml reads ahead, and has a limit of its own since PyYAML 6.0.4
            raise UsageError(f"{where}: is nested too deeply") from error
        raise UsageError(f"{where}: is not YAML: {problem}") from error
    except ValueError as error:  # a timestamp such as 2025-13-45
        raise UsageError(f"{name}: holds an impossible value: {error}") from error


def _refuse_aliases_and_depth(text: str, name: str) -> None:
    """Ask the events, before anything is built of them.

    Aliases save a few lines and let a small file stand for gigabytes, or hold itself; the
    readers descend by recursion, and libyaml's ends the process where it is too deep.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent):
            raise UsageError(f"{name}:{line}: aliases (*{event.anchor}) are not read")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise UsageError(f"{name}:{line}: is nested too deeply")


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


def _scalar(node: yaml.Node, location: tuple[Any, ...]) -> str | None:
    """Return the text of the value at `location` as it is written; None for anything but a plain value."""
    for part in location:
        if isinstance(node, yaml.MappingNode):
            node = next((value for key, value in node.value if key.value == str(part)), node)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
    return node.value if isinstance(node, yaml.ScalarNode) else None


def _wording(fault: Any, written: str | None) -> str:
    value = fault.get("input")
    if fault["type"] == "missing":
        return "is missing"
    if fault["type"] == "extra_forbidden":
        return "unknown key"
    if fault["type"] == "string_type" and isinstance(value, int | float):
        return f'must be text: write it in quotes, "{written or value}" (unquoted, YAML reads the number {value})'
    if fault["type"] in ("model_type", "dict_type"):
        return "must be a mapping of keys to values"
    message = fault["msg"].removeprefix("Value error, ")
    found = "" if isinstance(value, dict | list) else f" (found {_shortened(repr(value))})"
    return f"{message[0].lower()}{message[1:]}{found}"


def _shortened(text: str) -> str:
    """Return a value as a message may show it: what a stranger's file holds does not belong on the screen."""
    return text if len(text) <= 60 else f"{text[:40]}…, {len(text)} characters"
