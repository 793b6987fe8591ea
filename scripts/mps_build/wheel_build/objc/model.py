"""The declarations as values: read from the data files, and cut to what an SDK knows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from mps_build.common.packed import texts_of

DATA = Path(__file__).parent / "frameworks"
# In this order each needs only those before it.
NAMES = (
    "CoreFoundation",
    "Foundation",
    "IOKit",
    "Metal",
    "MetalPerformanceShaders",
    "MetalPerformanceShadersGraph",
    "os",
)
_WORD = re.compile(r"[A-Za-z_]\w*")

Version = tuple[int, ...]


def version(text: str) -> Version:
    """Return 15.0 as (15, 0).

    >>> version("15.0") < version("15.2")
    True
    """
    return tuple(int(part) for part in text.split("."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """One row: `-` or `+` and the selector, types, and the first macOS (None: 12.0, older or not known)."""

    selector: str
    is_class: bool
    returns: str
    arguments: tuple[str, ...]
    since: str | None = None

    @property
    def types(self) -> frozenset[str]:
        """The words of the result's and the arguments' types: what must be declared before this method."""
        return words(self.returns, *self.arguments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interface:
    """A class (`superclass`, `type_parameters`) or a protocol (neither).

    `whole` says that the rows are the type's whole public interface, so that a selector which is not there is wrong.
    """

    name: str
    superclass: str | None = None
    protocols: tuple[str, ...] = ()
    type_parameters: tuple[str, ...] = ()
    since: str | None = None
    whole: bool = False
    library: str | None = None
    methods: tuple[Method, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Enum:
    """An NS_ENUM or NS_OPTIONS; `since` of a constant only where it is newer than the enum."""

    name: str
    type: str
    options: bool
    constants: Mapping[str, int]
    since: str | None = None
    newer: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A C function."""

    name: str
    returns: str
    arguments: tuple[str, ...]
    since: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """One framework's declarations; `data` are exported variables with their types.

    `prelude` and `postlude` are C text before and after them: what is not a row, as macros and inline functions.
    """

    name: str
    prelude: str
    postlude: str
    aliases: Mapping[str, str]
    enums: tuple[Enum, ...]
    structs: Mapping[str, tuple[str, ...]]
    protocols: tuple[Interface, ...]
    classes: tuple[Interface, ...]
    functions: tuple[Function, ...]
    data: Mapping[str, str]


def words(*types: str) -> frozenset[str]:
    """Return the names in types.

    >>> sorted(words("NSArray<NSNumber *> *"))
    ['NSArray', 'NSNumber']
    """
    return frozenset(word for each in types for word in _WORD.findall(each))


@cache
def load_frameworks() -> tuple[Framework, ...]:
    """Return all frameworks of the data files, in the order in which they need each other."""
    texts = texts_of(DATA)
    return tuple(_framework(name, texts) for name in NAMES)


def _framework(name: str, texts: Mapping[str, str]) -> Framework:
    raw: dict[str, Any] = json.loads(texts[f"{name}.json"])
    prelude, postlude = (texts.get(f"{name}.{part}.h", "").strip() for part in ("prelude", "postlude"))
    return Framework(
        name=name,
        prelude="\n".join([*(f"#include <{header}>" for header in raw.get("includes", ())), prelude]).strip(),
        postlude=postlude,
        aliases=raw.get("aliases", {}),
        enums=tuple(_enum(key, value) for key, value in raw.get("enums", {}).items()),
        structs={key: tuple(value) for key, value in raw.get("structs", {}).items()},
        protocols=tuple(_interface(key, value) for key, value in raw.get("protocols", {}).items()),
        classes=tuple(_interface(key, value) for key, value in raw.get("classes", {}).items()),
        functions=tuple(
            Function(name=key, returns=row[0], arguments=tuple(row[1]), since=row[2] if len(row) > 2 else None)
            for key, row in raw.get("functions", {}).items()
        ),
        data=raw.get("data", {}),
    )


def _enum(name: str, raw: Mapping[str, Any]) -> Enum:
    return Enum(
        name=name,
        type=raw["type"],
        options=raw["kind"] == "NS_OPTIONS",
        constants=raw["constants"],
        since=raw.get("since"),
        newer=raw.get("newer", {}),
    )


def _interface(name: str, raw: Mapping[str, Any]) -> Interface:
    return Interface(
        name=name,
        superclass=raw.get("superclass"),
        protocols=tuple(raw.get("protocols") or raw.get("inherits", ())),
        type_parameters=tuple(raw.get("type_parameters", ())),
        since=raw.get("since"),
        whole=bool(raw.get("whole")),
        library=raw.get("library"),
        methods=tuple(
            Method(
                selector=row[0][1:],
                is_class=row[0][0] == "+",
                returns=row[1],
                arguments=tuple(row[2]),
                since=row[3] if len(row) > 3 else None,
            )
            for row in raw.get("methods", ())
        ),
    )


def cut_to_sdk(frameworks: tuple[Framework, ...], sdk: str | None) -> tuple[Framework, ...]:
    """Return the declarations that an SDK of macOS `sdk` has: what is newer is left out, and what names it."""
    if sdk is None:
        return frameworks
    limit = version(sdk)

    def known(since: str | None) -> bool:
        return since is None or version(since) <= limit

    gone = {
        name
        for framework in frameworks
        for name, since in (
            *((each.name, each.since) for each in framework.enums),
            *((each.name, each.since) for each in (*framework.classes, *framework.protocols)),
        )
        if not known(since)
    }

    def interfaces(given: tuple[Interface, ...]) -> tuple[Interface, ...]:
        return tuple(
            replace(
                each,
                protocols=tuple(name for name in each.protocols if name not in gone),
                methods=tuple(one for one in each.methods if known(one.since) and not one.types & gone),
            )
            for each in given
            if each.name not in gone
        )

    def enum(each: Enum) -> Enum:
        kept = {name: value for name, value in each.constants.items() if known(each.newer.get(name))}
        return replace(each, constants=kept)

    return tuple(
        replace(
            framework,
            enums=tuple(enum(each) for each in framework.enums if each.name not in gone),
            protocols=interfaces(framework.protocols),
            classes=interfaces(framework.classes),
            functions=tuple(each for each in framework.functions if known(each.since)),
        )
        for framework in frameworks
    )
