"""Does a call stand behind a question for the macOS version? By the text, as PyTorch asks it. Pure.

PyTorch does not use `@available` alone: it asks `is_macos_13_or_newer(MacOSVersion::MACOS_VER_15_0_PLUS)`, keeps the
answer in variables, wraps it in functions (`supportsComplex`), refuses (`TORCH_CHECK`), returns early, and leaves
helpers to callers that checked. A condition that mentions the version, alone or beside others, counts as a check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ..objc.model import Framework, Version, version
from .diagnostics import Said
from .text import Block, Source, blanked, closing, split, statements

ANY: Version = (999,)
_OLD = (13, 0)  # is_macos_13_or_newer() without an argument: 1.12 to 2.0
_ATOMS = (
    re.compile(r"MACOS_VER_(\d+)_(\d+)(?:_\d+)?_PLUS"),
    re.compile(r"(?:@available|__builtin_available)\s*\(\s*macOS\s+(\d+)(?:\.(\d+))?"),
    re.compile(r"\b(?:is_?)?mac_?os_?(\d\d)_?(\d)?_?(?:plus|or_newer|or_later)\b(?!\s*\()", re.IGNORECASE),
)
_RESPONDS = re.compile(r"[rR]espondsToSelector\s*:")
_BARE = re.compile(r"\bis_macos_13_or_newer\s*\(\s*\)")
_ASSIGNED = re.compile(r"\b(\w+)\s*=(?!=)\s*([^;{}]+);")
_CHECKS = re.compile(r"\bbool\s+(\w+)\s*\([^()]*\)\s*(?:const\s*)?\{\s*(?:static\b[^;]*;\s*)?return\s+([^;]*);\s*\}")
_CHECK = re.compile(r"\b(?:TORCH_\w*CHECK\w*|TORCH_INTERNAL_ASSERT\w*|AT_ASSERT\w*|NSAssert|assert)\s*\(")
_REFUSING = re.compile(r"\bvoid\s+(\w+)\s*\([^()]*\)\s*\{(\s*TORCH_\w*CHECK\w*\s*\([^{}]*\)\s*;\s*)\}")
_LEAVES = re.compile(
    r"\b(?:return|throw|continue|break|TORCH_CHECK\w*\s*\(\s*false|TORCH_INTERNAL_ASSERT\w*\s*\(\s*false)\b"
)
_CALLABLE = re.compile(r"([A-Za-z_~]\w*)\s*\((?:[^(){}]|\((?:[^()]|\([^()]*\))*\))*\)\s*(?:const\s*)?(?::[^{;]*)?$")
_MACRO_NAMED = re.compile(r"\w+\s*\(\s*(\w+)\s*\)\s*\([^{}]*\)\s*$")  # TORCH_IMPL_FUNC(name)(arguments)
_OUTSIDE = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b[^()=]*$|@implementation\b[^()=]*$")
_CATEGORY = re.compile(r"@interface\s+\w+\s*\(\w*\)(.*?)@end", re.DOTALL)
_METHOD = re.compile(r"[-+]\s*\([^;]*?;", re.DOTALL)
_SETTER = re.compile(r"(?<=[\w)\]])\.(\w+)\s*=(?!=)")
_GETTER = re.compile(r"(?<=[\w)\]])\.(\w+)\b(?!\s*(?:=(?!=)|\())")
# A lambda with `auto` among its parameters, or a function below `template <…>`.
_GENERIC = re.compile(r"\]\s*\([^)]*\bauto\b|\btemplate\s*<")
_OPENS, _CLOSES = "([{", ")]}"


@dataclass(frozen=True, slots=True)
class Names:
    """What names say of the version: variables and functions that answer, functions that refuse.

    Attributes:
        answers: name -> what holds where it is true. denies: what holds where it is false (`is_old`).
        refuses: what holds behind a call of it.
    """

    answers: Mapping[str, Version] = field(default_factory=dict)
    refuses: Mapping[str, Version] = field(default_factory=dict)
    denies: Mapping[str, Version] = field(default_factory=dict)


def read_names(text: str, known: Names = Names()) -> Names:
    """Return the names that a text (blanked) gives to questions for the version, beside those `known`."""
    answers, refuses, denies = dict(known.answers), dict(known.refuses), dict(known.denies)
    for match in (*_CHECKS.finditer(text), *_ASSIGNED.finditer(text)):
        for when, kept in ((True, answers), (False, denies)):
            checked = implied(match[2], Names(answers, refuses, denies), when=when)
            if checked and match[1] not in kept:
                kept[match[1]] = checked
    for match in _REFUSING.finditer(text):
        checked = max(
            (
                _checked(text, place, Names(answers, refuses, denies))
                for place in _checks(text, match.start(2), match.end(2))
            ),
            default=(),
        )
        if checked:
            refuses[match[1]] = checked
    return Names(answers, refuses, denies)


def implied(condition: str, names: Names, *, when: bool = True) -> Version:
    """Return the newest macOS that a condition asks for and that holds when it is true (or false); () for none.

    >>> implied("a || @available(macOS 14.0, *)", Names())
    (14, 0)
    >>> implied("!is_macos_13_or_newer(MacOSVersion::MACOS_VER_15_0_PLUS) || x", Names(), when=False)
    (15, 0)
    """
    text = _bare(condition)
    for separator in ("||", "&&"):
        parts = split(text, separator)
        if len(parts) > 1:
            return max(implied(part, names, when=when) for part in parts)
    if text.startswith("!") and not text.startswith("!="):
        return implied(text[1:], names, when=not when)
    compared = re.fullmatch(r"(.*)(==|!=)\s*(?:NO|false|0)\s*", text, re.DOTALL)
    if compared:
        return implied(compared[1], names, when=when ^ (compared[2] == "=="))
    return _granted(text, names) if when else _denied(text, names)


def _bare(text: str) -> str:
    text = text.strip()
    while text.startswith("(") and closing(text, 0) == len(text) - 1:
        text = text[1:-1].strip()
    return text


def _granted(text: str, names: Names) -> Version:
    found = [(int(match[1]), int(match[2] or 0)) for atom in _ATOMS for match in atom.finditer(text)]
    if _RESPONDS.search(text):
        return ANY
    if _BARE.search(text):
        found.append(_OLD)
    found += [names.answers[word] for word in re.findall(r"\w+", text) if word in names.answers]  # type: ignore[misc]
    return max(found, default=())


def _denied(text: str, names: Names) -> Version:
    word = re.fullmatch(r"(\w+)(?:\s*\(\s*\))?", text.strip())
    return names.denies.get(word[1], ()) if word else ()


def guarded(source: Source, place: int, names: Names) -> Version:
    """Return the newest macOS that the code around and before a place makes sure of, in its own function."""
    found: Version = ()
    inner = place
    for block in function_blocks(source, place):
        found = max(
            found,
            _before(source, block, inner, names),
            _inline(source, block, inner, names),
            _head(source, block, names),
        )
        inner = block.head
    return found


def function_blocks(source: Source, place: int) -> list[Block]:
    """Return the blocks around a place that belong to its outermost function, innermost first."""
    blocks = source.around(place)
    while blocks and _OUTSIDE.search(source.text[blocks[-1].head : blocks[-1].start]):
        blocks.pop()
    return blocks


def function_around(source: Source, place: int) -> str | None:
    """Return the name of the outermost function that a place lies in."""
    blocks = function_blocks(source, place)
    if not blocks:
        return None
    head = source.text[blocks[-1].head : blocks[-1].start].strip()
    match = _MACRO_NAMED.search(head) or _CALLABLE.search(head)
    return match[1] if match else None


def is_static(source: Source, place: int) -> bool:
    """Tell whether the outermost function around a place can be called from its own file only."""
    blocks = function_blocks(source, place)
    return bool(blocks) and bool(re.match(r"\s*static\b", source.text[blocks[-1].head : blocks[-1].start]))


def calls(source: Source, name: str) -> Iterator[int]:
    """Yield the places where a function is called in a file: in a function, and not as its definition."""
    for match in re.finditer(rf"(?<![\w~]){re.escape(name)}\s*\(", source.text):
        if source.around(match.start()) and function_around(source, match.start()) not in (None, name):
            yield match.start()


def _head(source: Source, block: Block, names: Names) -> Version:
    """Return what the head of a block asks: `if (…) {`, or the chain of ifs before `else {`."""
    text = source.text
    head = text[block.head : block.start]
    found: Version = ()
    opening = re.search(r"\b(?:if|while)\s*(?:constexpr\s*)?\(", head)
    if opening:
        start = block.head + opening.end() - 1
        found = implied(text[start + 1 : closing(text, start)], names)
    if re.match(r"\s*else\b", head):
        found = max(found, _else(source, block.head, names))
    return found


def _else(source: Source, place: int, names: Names) -> Version:
    """Return what must be false before an `else`."""
    before = source.text[:place].rstrip()
    if not before.endswith("}"):
        return ()
    last = next((block for block in source.blocks if block.end == len(before) - 1), None)
    if last is None:
        return ()
    head = source.text[last.head : last.start]
    opening = re.search(r"\bif\s*(?:constexpr\s*)?\(", head)
    found: Version = ()
    if opening:
        start = last.head + opening.end() - 1
        found = implied(source.text[start + 1 : closing(source.text, start)], names, when=False)
    if re.match(r"\s*else\b", head):
        found = max(found, _else(source, last.head, names))
    return found


def _before(source: Source, block: Block, place: int, names: Names) -> Version:
    """Return what the statements of a block before a place make sure of: checks, refusals, early exits."""
    text = source.text
    found: Version = ()
    for start, end in statements(text, block.start + 1, place):
        opening = re.match(r"\s*if\s*(?:constexpr\s*)?\(", text[start:end])
        if opening:
            close = closing(text, start + opening.end() - 1)
            if _LEAVES.search(text[close:end]) and not re.match(r"\s*else\b", text[end : end + 20]):
                found = max(found, implied(text[start + opening.end() : close], names, when=False))
            continue
        if re.match(r"\s*else\s*(?!\s|if\b)", text[start:end]) and _LEAVES.search(text[start:end]):
            found = max(found, _only_if(source, start, names))
        brace = text.find("{", start, end)
        flat = brace if brace >= 0 else end
        for check in _checks(text, start, flat):
            found = max(found, _checked(text, check, names))
        for word in re.findall(r"(\w+)\s*\(\s*\)", text[start:flat]):
            found = max(found, names.refuses.get(word, ()))
    return found


def _only_if(source: Source, place: int, names: Names) -> Version:
    """Return what must be true where the `else` at a place leaves: the condition of a single `if` before it."""
    before = source.text[:place].rstrip()
    last = next((block for block in source.blocks if block.end == len(before) - 1), None)
    head = source.text[last.head : last.start] if last else ""
    opening = re.match(r"\s*if\s*(?:constexpr\s*)?\(", head)
    if last is None or opening is None:
        return ()
    start = last.head + opening.end() - 1
    return implied(source.text[start + 1 : closing(source.text, start)], names)


def _inline(source: Source, block: Block, place: int, names: Names) -> Version:
    """Return what the statement of a place asks before it: `if (…) call`, `a && call`, `a ? call : other`."""
    text = source.text
    start = max([end for _, end in statements(text, block.start + 1, place)], default=block.start + 1)
    part = text[start:place]
    found: Version = ()
    opening = re.match(r"\s*(?:else\s+)?if\s*(?:constexpr\s*)?\(", part)
    if opening:
        close = closing(text, start + opening.end() - 1)
        if close < place:
            found = implied(text[start + opening.end() : close], names)
            part = text[close + 1 : place]
    question = part.rfind("?")
    if question >= 0:
        condition = (
            re.split(r"[=({,;]|\breturn\b", part[:question])[-1] if "(" not in part[:question] else part[:question]
        )
        is_other = ":" in re.sub(r"\[[^\[\]]*\]?|::", "", part[question:])
        found = max(found, implied(_tail(condition), names, when=not is_other))
    if "&&" in part:
        found = max(found, implied(_tail(part.rpartition("&&")[0]), names))
    return found


def _tail(text: str) -> str:
    """Return the condition that ends a text: what stands behind the last `=`, or an unclosed parenthesis."""
    depth = 0
    for place in range(len(text) - 1, -1, -1):
        depth += (text[place] in ")]}") - (text[place] in "([{")
        if depth < 0 or (
            not depth and text[place] == "=" and text[place - 1] not in "=!<>" and text[place + 1 : place + 2] != "="
        ):
            return text[place + 1 :]
    return re.sub(r"^\s*return\b", "", text)


def _checks(text: str, start: int, end: int) -> Iterator[int]:
    yield from (match.end() - 1 for match in _CHECK.finditer(text, start, end))


def _checked(text: str, opening: int, names: Names) -> Version:
    return implied(split(text[opening + 1 : closing(text, opening)], ",")[0], names)


# Messages that are newer than the deployment target, found in the text: clang does not look into generic lambdas.
#
# `[&](auto mpsGraph, auto newCachedGraph) { … }` is a template, whose instantiations clang's availability check leaves
# out; and nearly every graph of PyTorch is built in one. Only selectors count of which every type that has them has
# them late, and which PyTorch does not declare itself.


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
