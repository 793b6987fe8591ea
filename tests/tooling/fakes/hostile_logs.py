"""Logs as collectors dress them, and the worst texts for a regular expression, made from the expression itself."""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any


def _each(form: Callable[[int, str], str]) -> Callable[[str], str]:
    return lambda text: "\n".join(form(number, line) for number, line in enumerate(text.rstrip("\n").split("\n"), 1))


def _clock(number: int) -> str:
    return f"{9 + number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}"


def _web_page(text: str) -> str:
    rows = (f'<span class="line" id="L{i}">{html.escape(line)}</span><br/>' for i, line in enumerate(text.split("\n")))
    return "<html><body><pre>\n" + "\n".join(rows) + "\n</pre></body></html>"


COLLECTORS: Mapping[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "GitHub's raw log": _each(lambda n, line: f"2026-10-16T{_clock(n)}.3990503Z {line}"),
    "gh run view --log": _each(lambda n, line: f"wheel (3.12)\tBuild it\t2026-10-16T{_clock(n)}.3990503Z {line}"),
    "GitHub's page, numbers copied": _each(lambda n, line: f"{n} {line}"),
    "GitLab": _each(lambda n, line: f"2026-10-16T{_clock(n)}.399050Z 00O {line}"),
    "Jenkins": _each(lambda n, line: f"[2026-10-16T{_clock(n)}.399Z] {line}"),
    "Jenkins, a branch": _each(lambda n, line: f"{_clock(n)}  [macos-14 py3.12] {line}"),
    "TeamCity": _each(lambda n, line: f"[{_clock(n)}]W:\t [Step 2/5] {line}"),
    "Bamboo": _each(lambda n, line: f"build\t16-Oct-2026 {_clock(n)}\t{line}"),
    "Buildkite": _each(lambda n, line: f"\x1b_bk;t=17606039{n:05}\x07{line}"),
    "Azure": _each(lambda n, line: f"2026-10-16T{_clock(n)}.1234567Z \x1b[0m{line}"),
    "Drone": _each(lambda n, line: f"[build:{n}] {line}"),
    "BuildKit": _each(lambda n, line: f"#21 {n * 1.7:.3f} {line}"),
    "docker compose": _each(lambda n, line: f"builder-1  | {line}"),
    "docker's JSON": _each(lambda n, line: json.dumps({"log": line + "\n", "stream": "stderr", "time": _clock(n)})),
    "kubectl": _each(lambda n, line: f"[pod/wheels-7f9c4d/builder] {line}"),
    "stern": _each(lambda n, line: f"wheels-7f9c4d builder {line}"),
    "journalctl": _each(lambda n, line: f"Oct 16 {_clock(n)} mini-4 runner[812]: {line}"),
    "ctime": _each(lambda n, line: f"[Fri Oct 16 {_clock(n)} 2026] {line}"),
    "a logger": _each(lambda n, line: f"2026-10-16 {_clock(n)},{n:03} - builder - INFO - {line}"),
    "a logger's levels": _each(lambda n, line: f"{'INFO' if n % 3 else 'ERROR'}    build:run.py:{n} {line}"),
    "epoch seconds": _each(lambda n, line: f"17606039{n:02}.125 {line}"),
    "elapsed seconds": _each(lambda n, line: f"[{n * 0.7:8.3f}s] {line}"),
    "nix": _each(lambda n, line: f"torch> {line}"),
    "nix, quoted": _each(lambda n, line: f"       > {line}"),
    "MacPorts": _each(lambda n, line: f":info:build {line}"),
    "spack": _each(lambda n, line: f"     {n + 400:<8}{line}"),
    "Gradle's task": _each(lambda n, line: f"[:native:compile] {line}"),
    "mpirun": _each(lambda n, line: f"[1,0]<stderr>:{line}"),
    "turbo": _each(lambda n, line: f"kernels:build: {line}"),
    "pm2": _each(lambda n, line: f"0|trainer  | {line}"),
    "cat -n": _each(lambda n, line: f"{n:6}\t{line}"),
    "grep -n": _each(lambda n, line: f"{n}:{line}"),
    "nl": _each(lambda n, line: f"{n:4} | {line}"),
    "a mail's quotation": _each(lambda n, line: f"> {line}"),
    "a quotation two times": _each(lambda n, line: f"> > {line}".rstrip()),
    "a comment": _each(lambda n, line: f"# {line}".rstrip()),
    "indented": _each(lambda n, line: f"        {line}"),
    "HTML escaped": html.escape,
    "a web page": _web_page,
    "one JSON string": json.dumps,
    "a list of strings": _each(lambda n, line: f"    {json.dumps(line)},"),
    "escapes written out": _each(lambda n, line: f"\\x1b[31m{line}\\x1b[0m"),
    "escapes half lost": _each(lambda n, line: f"[1;31m{line}[0m"),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "three of them": _each(lambda n, line: f"2026-10-16T{_clock(n)}.39Z #9 {n}.125 [build] {html.escape(line)}"),
    "a Markdown issue": lambda text: f"### What happens\n\nThe build stops:\n\n```\n{text}```\n\nAny idea?\n",
}


if sys.version_info >= (3, 11):
    from re import _constants as sre  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
else:  # pragma: no cover
    import sre_constants as sre
    import sre_parse as parser

_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, *((sre.POSSESSIVE_REPEAT,) if hasattr(sre, "POSSESSIVE_REPEAT") else ()))
_FIRST = {
    sre.CATEGORY_DIGIT: "1",
    sre.CATEGORY_SPACE: " ",
    sre.CATEGORY_WORD: "a",
    sre.CATEGORY_NOT_DIGIT: "a",
    sre.CATEGORY_NOT_SPACE: "a",
    sre.CATEGORY_NOT_WORD: "-",
}


def attacks(pattern: str, flags: int = 0) -> tuple[str, ...]:
    """Return short texts whose repetition makes an expression work hardest: what comes before each of its repeats,
    with the repeat's own body many times, and the bodies alone.
    """
    parsed: Any = parser.parse(pattern, flags)
    found = dict.fromkeys(_attacks(list(parsed), ""))
    return tuple(text for text in found if text)


def _attacks(items: list[Any], before: str) -> Iterator[str]:
    for operator, argument in items:
        if operator in _REPEATS:
            _, most, body = argument
            once = _least(list(body)) or "a"
            if most > 1:
                yield from (before, before + once * min(most, 60), before + once * min(most, 5000), once)
                yield once * min(most, 5000) + "!"
            yield from _attacks(list(body), before)
        elif operator is sre.SUBPATTERN:
            yield from _attacks(list(argument[-1]), before)
        elif operator is sre.BRANCH:
            for branch in argument[1]:
                yield from _attacks(list(branch), before)
        before += _least([(operator, argument)])
    yield before


def _least(items: list[Any]) -> str:
    """Return a short text that matches, as far as that is easily reported."""
    text = ""
    for operator, argument in items:
        if operator is sre.LITERAL:
            text += chr(argument)
        elif operator is sre.NOT_LITERAL:
            text += "a" if argument != ord("a") else "b"
        elif operator is sre.ANY:
            text += "a"
        elif operator is sre.IN:
            text += _one_of(list(argument))
        elif operator in _REPEATS:
            text += _least(list(argument[2])) * max(argument[0], 0)
        elif operator is sre.SUBPATTERN:
            text += _least(list(argument[-1]))
        elif operator is sre.BRANCH:
            text += _least(list(argument[1][0]))
    return text


def _one_of(items: list[Any]) -> str:
    if items and items[0][0] is sre.NEGATE:
        return next(c for c in "a1- /.:x\n" if not _holds(items[1:], c))
    operator, argument = items[0]
    if operator is sre.LITERAL:
        return chr(argument)
    if operator is sre.RANGE:
        return chr(argument[0])
    return _FIRST.get(argument, "a")


def _holds(items: list[Any], character: str) -> bool:
    for operator, argument in items:
        if operator is sre.LITERAL and argument == ord(character):
            return True
        if operator is sre.RANGE and argument[0] <= ord(character) <= argument[1]:
            return True
        if operator is sre.CATEGORY and _FIRST.get(argument) == character:
            return True
    return False
