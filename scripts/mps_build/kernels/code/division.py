"""Integer division: by zero it stops a processor, and leaves a GPU with some number; here it gives all ones."""

from __future__ import annotations

import re

from .sizes import split_top, take_type

_DIVISION = re.compile(r"^(\s*%[\w.]+ = )([su])(div|rem) (?:exact )?(.*)$")


def guard_divisions(text: str) -> str:
    """Return the code with every division by a variable replaced by one that does not trap.

    >>> print(guard_divisions("  %3 = srem i32 %1, %2").splitlines()[0])
      %3 = call i32 @"rt.srem.i32"(i32 %1, i32 %2)
    """
    if "div " not in text and "rem " not in text:
        return text
    lines, used = [], set()
    for line in text.splitlines():
        match = _DIVISION.match(line)
        if match:
            kind, rest = take_type(match[4])
            first, second = split_top(rest)
            if not re.fullmatch(r"[1-9]\d*", second):
                used.add((match[2], match[3], kind))
                name = f'@"rt.{match[2]}{match[3]}.{kind}"'
                line = f"{match[1]}call {kind} {name}({kind} {first}, {kind} {second})"  # noqa: PLW2901
        lines.append(line)
    return "\n".join([*lines, *(_definition(*each) for each in sorted(used))])


def _definition(sign: str, what: str, kind: str) -> str:
    bits = int(re.findall(r"i(\d+)", kind)[0])
    truth = kind.replace(f"i{bits}", "i1")
    one, most, least = (_constant(kind, number) for number in (1, -1, -(1 << (bits - 1))))
    lines = [
        f'define internal {kind} @"rt.{sign}{what}.{kind}"({kind} %a, {kind} %b) alwaysinline nounwind {{',
        f"  %z = icmp eq {kind} %b, zeroinitializer" if kind.startswith("<") else f"  %z = icmp eq {kind} %b, 0",
    ]
    bad = "%z"
    if sign == "s":
        lines += [f"  %m = icmp eq {kind} %a, {least}", f"  %n = icmp eq {kind} %b, {most}"]
        lines += [f"  %o = and {truth} %m, %n", f"  %w = or {truth} %z, %o"]
        bad = "%w"
    lines += [
        f"  %s = select {truth} {bad}, {kind} {one}, {kind} %b",
        f"  %q = {sign}{what} {kind} %a, %s",
        f"  %r = select {truth} %z, {kind} {most}, {kind} %q",
        f"  ret {kind} %r\n}}",
    ]
    return "\n".join(lines)


def _constant(kind: str, number: int) -> str:
    if not kind.startswith("<"):
        return str(number)
    count, _, scalar = kind[1:-1].partition(" x ")
    return "<" + ", ".join(f"{scalar} {number}" for _ in range(int(count))) + ">"
