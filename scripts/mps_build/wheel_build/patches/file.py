"""What a patch of ours says: its header, the files it touches, its hunks.

The header is four fields, each once: Description (its first line a summary), Origin (whose
idea, as a link), Forwarded (the state upstream), Fixes (ids of known breakages, or `none`).
A line that starts with a space goes on with the field above; the diff follows.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mps_build.common.errors import PatchError, reason_of
from mps_build.common.files import read_bytes

FIELDS = ("Description", "Origin", "Forwarded", "Fixes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """One hunk: the file it changes, where, and its lines with their marks."""

    path: PurePosixPath
    number: int
    line: int
    lines: tuple[str, ...]

    @property
    def before(self) -> tuple[str, ...]:
        """What the file must hold for this hunk to fit."""
        return tuple(line[1:] for line in self.lines if line[:1] in (" ", "-"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A patch file, read and found to stay inside the tree."""

    path: Path
    sha256: str
    description: str
    origin: str
    forwarded: str
    fixes: tuple[str, ...]
    files: tuple[PurePosixPath, ...]
    hunks: tuple[Hunk, ...]

    @property
    def name(self) -> str:
        """The patch's file name, as a recipe lists it."""
        return self.path.name


def read_patch(path: Path, *, bare: bool = False) -> Patch:
    """Return the patch in `path`, or raise a PatchError that lists every fault.

    Args:
        bare: the patch is a user's own: any text may stand above the diff, and no field is required.
    """
    try:
        content = read_bytes(path)
        text = content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PatchError(f"{path}: cannot be read: {reason_of(error)}") from error
    faults: list[str] = []
    header, diff, first_line = _split(text)
    fields = dict.fromkeys(FIELDS, "none") if bare else _fields(header, faults)
    files = _files(diff, first_line, faults)
    hunks = _hunks(diff, first_line, faults)
    if not hunks and not faults:
        faults.append("1: holds no hunk")
    if faults:
        raise PatchError(
            f"{path.name} cannot be used:\n  " + "\n  ".join(f"{path}:{fault}" for fault in faults),
            hint="give a unified diff of text files as `git diff` writes it, with a/ and b/ before the names"
            if bare
            else f"a patch starts with {', '.join(FIELDS)} and then a unified diff with a/ and b/ paths",
        )
    return Patch(
        path=path,
        sha256=hashlib.sha256(content).hexdigest(),
        description=fields["Description"],
        origin=fields["Origin"],
        forwarded=fields["Forwarded"],
        fixes=() if fields["Fixes"] == "none" else tuple(re.split(r"[,\s]+", fields["Fixes"])),
        files=files,
        hunks=hunks,
    )


def _split(text: str) -> tuple[list[str], list[str], int]:
    """Return header lines, diff lines, and the number of the diff's first line."""
    lines = text.removesuffix("\n").split("\n")
    start = next(
        (number for number, line in enumerate(lines) if line.startswith(("diff --git ", "--- "))),
        len(lines),
    )
    return lines[:start], lines[start:], start + 1


def _fields(header: list[str], faults: list[str]) -> dict[str, str]:
    fields: dict[str, str] = {}
    current = None
    for number, line in enumerate(header, 1):
        if not line.strip() or line == "---":
            current = None
        elif line[0] == " " and current:
            fields[current] += f"\n{line.strip()}"
        elif (match := re.match(r"([A-Za-z-]+):\s*(.*)", line)) is None:
            faults.append(f"{number}: {line!r} is not a header field")
        elif match[1] not in FIELDS:
            faults.append(f"{number}: unknown header field {match[1]!r}")
        elif match[1] in fields:
            faults.append(f"{number}: {match[1]} is given two times")
        else:
            current = match[1]
            fields[current] = match[2].strip()
    faults += [f"1: the header lacks {name}" for name in FIELDS if not fields.get(name)]
    if not re.fullmatch(r"none|[BN]\d+[a-z]?([,\s]+[BN]\d+[a-z]?)*", fields.get("Fixes") or "none"):
        faults.append(f"1: Fixes must be ids of known breakages (B26, B27) or `none`, not {fields['Fixes']!r}")
    return fields


def _files(diff: list[str], first_line: int, faults: list[str]) -> tuple[PurePosixPath, ...]:
    found: dict[PurePosixPath, None] = {}
    in_hunk = 0
    for number, line in enumerate(diff, first_line):
        if match := re.match(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@", line):
            in_hunk = int(match[1] or 1) + int(match[2] or 1)
        elif in_hunk > 0:
            in_hunk -= {" ": 2, "": 2, "+": 1, "-": 1}.get(line[:1], 0)
        elif line.startswith(("GIT binary patch", "Binary files ")):
            faults.append(f"{number}: binary patches are not read")
        elif re.match(r"(new|old|deleted) (file )?mode 1[26]0000|(new|deleted) mode 1[26]0000", line):
            faults.append(f"{number}: symbolic links and submodules are not patched")
        elif line.startswith("diff --git "):
            both = _both_inside(line)
            found.update(dict.fromkeys(both))
            if not both:
                faults.append(f"{number}: {line!r} would reach outside the tree, or lacks its a/ or b/")
        elif line.startswith(("--- ", "+++ ")) and line.endswith("\r"):
            faults.append(f"{number}: the patch has Windows line endings (CRLF)")
        elif match := re.match(r"(--- |\+\+\+ |rename from |rename to |copy from |copy to )(\S.*)$", line):
            path = _inside(match[2].split("\t")[0], plain=match[1][0] in "rc")
            if path is None:
                faults.append(f"{number}: {match[2]!r} would reach outside the tree, or lacks its a/ or b/")
            elif path != PurePosixPath("/dev/null"):
                found[path] = None
    return tuple(found)


def _inside(name: str, *, plain: bool) -> PurePosixPath | None:
    """Return the path that a diff names, without its a/ or b/; None where it leaves the tree."""
    if name == "/dev/null":
        return PurePosixPath(name)
    if name.startswith('"') or "\\" in name:
        return None  # git quotes unusual names: none of ours has one, and a quoted `..` must not slip through
    if not plain:
        if name[:2] not in ("a/", "b/"):
            return None
        name = name[2:]
    path = PurePosixPath(name)
    outside = not name or path.is_absolute() or ".." in path.parts or ".git" in (part.lower() for part in path.parts)
    return None if outside else path


def _both_inside(line: str) -> tuple[PurePosixPath, ...]:
    """Return both paths of a `diff --git a/X b/Y` line; nothing where one leaves the tree."""
    match = re.fullmatch(r"diff --git (a/\S.*) (b/\S.*)", line.rstrip())
    paths = [_inside(name, plain=False) for name in match.groups()] if match else []
    return tuple(path for path in paths if path) if all(paths) else ()


def _hunks(diff: list[str], first_line: int, faults: list[str]) -> tuple[Hunk, ...]:
    hunks: list[Hunk] = []
    path, number_in_file, index = PurePosixPath("?"), 0, 0
    while index < len(diff):
        line = diff[index]
        if line.startswith(("--- ", "+++ ")) and (named := _inside(line[4:].split("\t")[0], plain=False)):
            path = path if named == PurePosixPath("/dev/null") else named
            number_in_file, index = 0, index + 1
        elif match := re.match(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@", line):
            number_in_file += 1
            body = _body(diff, index + 1, old=int(match[2] or 1), new=int(match[3] or 1))
            if body is None:
                faults.append(f"{first_line + index}: the hunk does not have the number of lines that its header says")
                return tuple(hunks)
            hunks.append(Hunk(path=path, number=number_in_file, line=int(match[1]), lines=body))
            index += 1 + len(body)
        else:
            if line[:1] in ("+", "-", "@") and hunks and not line.startswith(("--- ", "+++ ", "-- ")):
                faults.append(f"{first_line + index}: {line!r} stands outside a hunk")
            index += 1
    return tuple(hunks)


def _body(diff: list[str], start: int, *, old: int, new: int) -> tuple[str, ...] | None:
    body: list[str] = []
    for line in diff[start:]:
        if line.startswith("\\"):
            body.append(line)
            continue
        if old == 0 and new == 0:
            break
        mark = line[:1] or " "
        if mark not in " +-" or (mark != "+" and old == 0) or (mark != "-" and new == 0):
            return None
        old, new = old - (mark != "+"), new - (mark != "-")
        body.append(line or " ")
    return tuple(body) if old == new == 0 else None
