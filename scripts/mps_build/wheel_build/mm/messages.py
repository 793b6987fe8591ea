"""Messages that are newer than the deployment target, found in the text: clang does not look into generic lambdas.

`[&](auto mpsGraph, auto newCachedGraph) { … }` is a template, whose instantiations clang's availability check leaves
out; and nearly every graph of PyTorch is built in one. Only selectors count of which every type that has them has them
late, and which PyTorch does not declare itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..objc.model import Framework, version
from .diagnostics import Said
from .text import Source, blanked, closing

_CATEGORY = re.compile(r"@interface\s+\w+\s*\(\w*\)(.*?)@end", re.DOTALL)
_METHOD = re.compile(r"[-+]\s*\([^;]*?;", re.DOTALL)
_SETTER = re.compile(r"(?<=[\w)\]])\.(\w+)\s*=(?!=)")
_GETTER = re.compile(r"(?<=[\w)\]])\.(\w+)\b(?!\s*(?:=(?!=)|\())")
# A lambda with `auto` among its parameters, or a function below `template <…>`.
_GENERIC = re.compile(r"\]\s*\([^)]*\bauto\b|\btemplate\s*<")
_OPENS, _CLOSES = "([{", ")]}"


def late_selectors(frameworks: tuple[Framework, ...], target: str) -> dict[str, str]:
    """Return selector -> first macOS for those that need a guard when the oldest macOS is `target`."""
    found: dict[str, str | None] = {}
    for each in (each for one in frameworks for each in (*one.protocols, *one.classes)):
        for method in each.methods:
            is_new = method.since is not None and version(method.since) > version(target)
            # As in the headers: a type that is as new as its method needs no guard.
            is_late = is_new and not (each.since and version(each.since) >= version(str(method.since)))
            since = method.since if is_late else None
            before = found.get(method.selector, since)
            found[method.selector] = None if since is None or before is None else min(before, since, key=version)
    return {selector: since for selector, since in found.items() if since is not None}


def own_selectors(text: str) -> set[str]:
    """Return the selectors that a header of the tree declares in categories, as an SDK of today sees it.

    >>> sorted(own_selectors("@interface A (B)\\n- (int)one:(int)x two:(id)y;\\n@end"))
    ['one:two:']
    """
    found = set()
    for category in _CATEGORY.finditer(blanked(_compiled(text))):
        for method in _METHOD.finditer(category[1]):
            flat = re.sub(r"\([^()]*(?:\([^()]*\)[^()]*)*\)", " ", method[0])
            labels = re.findall(r"(\w+)\s*:", flat)
            found.add("".join(f"{label}:" for label in labels))
    return found


def _compiled(text: str) -> str:
    """Return a text without what stands under `#if !defined(__MAC_…)`: declarations for an older SDK."""
    lines: list[str] = []
    open_: list[bool] = []
    for line in text.splitlines():
        directive = re.match(r"\s*#\s*(ifdef|ifndef|if|else|elif|endif)\b(.*)", line)
        if directive is None:
            lines.append(line if all(open_) else "")
            continue
        lines.append("")
        word, condition = directive[1], directive[2]
        if word in ("if", "ifdef", "ifndef"):
            is_old = word == "ifndef" and "__MAC_" in condition
            open_.append(not is_old and not re.match(r"\s*!\s*defined\s*\(?\s*__MAC_", condition))
        elif word == "endif" and open_:
            open_.pop()
        elif open_:
            open_[-1] = not open_[-1]
    return "\n".join(lines)


def late_messages(source: Source, file: str, late: Mapping[str, str]) -> Iterator[Said]:
    """Yield, in clang's own words, each message of a file whose selector is late."""
    for selector, place in (*_messages(source.text), *_assignments(source.text), *_reads(source)):
        since = late.get(selector)
        if since is not None:
            line = source.line(place)
            yield Said(
                file=file,
                line=line,
                column=place - source.line_starts[line - 1] + 1,
                kind="warning",
                text=f"'{selector}' is only available on macOS {since} or newer",
                flag="-Wunguarded-availability-new",
            )


def _messages(text: str) -> Iterator[tuple[str, int]]:
    for match in re.finditer(r"\[", text):
        start = match.start() + 1
        end = closing(text, match.start())
        labels = list(_labels(text, start, end))
        if labels:
            yield "".join(f"{label}:" for label, _ in labels), labels[0][1]
        elif word := re.search(r"[\w)\]]\s+(\w+)\s*$", text[start:end]):
            yield word[1], start + word.start(1)


def _labels(text: str, start: int, end: int) -> Iterator[tuple[str, int]]:
    """Yield the labels of a message, `word:` outside of inner parentheses, and not the colon of `a ? b : c`."""
    depth = questions = 0
    for place in range(start, end):
        sign = text[place]
        depth += (sign in _OPENS) - (sign in _CLOSES)
        if depth or sign not in "?:":
            continue
        if sign == "?":
            questions += 1
        elif text[place + 1 : place + 2] == ":" or text[place - 1] == ":":
            continue
        elif questions:
            questions -= 1
        elif word := re.search(r"(\w+)\s*$", text[start:place]):
            yield word[1], start + word.start(1)


def _assignments(text: str) -> Iterator[tuple[str, int]]:
    for match in _SETTER.finditer(text):
        yield f"set{match[1][0].upper()}{match[1][1:]}:", match.start(1)


def _reads(source: Source) -> Iterator[tuple[str, int]]:
    """Yield the properties that are read where clang does not look; elsewhere it knows whose they are."""
    for match in _GETTER.finditer(source.text):
        blocks = source.around(match.start())
        if any(_GENERIC.search(source.text[block.head : block.start]) for block in blocks):
            yield match[1], match.start(1)
