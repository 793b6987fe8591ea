"""A source tree's operators: `Path -> Facts`, by the tree's own torchgen and its hand-written registrations.

Those are `TORCH_LIBRARY_IMPL(aten, MPS, m) { … }` in C++ and Objective-C++: literal names, names that a macro of the
same file pastes, and names that a loop takes from a list; what cannot be read is reported, with its line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...common.errors import MpsNotBuilt, SourceError
from ...common.json_text import parse_json
from ...common.process import Command, capture
from .model import ByHand, Facts

_BLOCK = re.compile(r"\bTORCH_LIBRARY_IMPL\s*\(\s*(\w+)\s*,\s*(\w*MPS)\s*,\s*(\w+)\s*\)\s*\{")
_COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.DOTALL)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([^)]*)\)[ \t]*((?:[^\n]*\\\n)*[^\n]*)", re.MULTILINE)
_STRING = r'"((?:\\.|[^"\\])*)"'
_LITERAL = re.compile(rf"^(?:TORCH_SELECTIVE_NAME\s*\(\s*)?((?:{_STRING}\s*)+)\)?$")
_LOOP = re.compile(r"\bfor\s*\([^;:(){}]*?\b(\w+)\s*:\s*(?:(\w+)|\{([^{}]*)\})\s*\)")
_LIST = r"\b{name}\s*(?:\[[^\]]*\])?\s*=?\s*\{{([^{{}}]*)\}}"
_ALWAYS_FAILS = re.compile(r"\s*(?:TORCH_INTERNAL_ASSERT|TORCH_CHECK\w*)\s*\(\s*false\b")
_OPENS, _CLOSES = "({[", ")}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registrations:
    """What one file registers by hand, and the places where the name could not be read.

    `default_falls_back` is what `m.fallback(…)` of the whole key does: the CPU by itself, an error, or either
    by PYTORCH_ENABLE_MPS_FALLBACK (None: the file says nothing of it).
    """

    found: tuple[ByHand, ...]
    unread: tuple[str, ...]
    has_default: bool


def read_registrations(path: str, text: str) -> Registrations:
    """Return what the file registers for dispatch keys that end in MPS, of the namespace aten."""
    code = _without_comments(text)
    macros = {match[1]: (_parameters(match[2]), match[3].replace("\\\n", "\n")) for match in _MACRO.finditer(code)}
    plain = _MACRO.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), code)
    found: list[ByHand] = []
    unread: list[str] = []
    has_default = False
    for match in _BLOCK.finditer(plain):
        namespace, key, library = match.groups()
        body = plain[match.end() : _closing(plain, match.end() - 1)]
        has_default |= namespace == "_" and f"{library}.fallback" in body
        if namespace != "aten":
            continue
        line = plain.count("\n", 0, match.start()) + 1
        for name, arguments, at in _implementations(body, library, macros):
            where = f"{path}:{line + body.count(chr(10), 0, at)}"
            names = _names(name, body, plain)
            falls_back = bool(re.search(r"\bmps_fallback\b", arguments))
            refuses = _only_refuses(arguments, plain)
            found += [
                ByHand(operator=each, key=key, falls_back=falls_back, refuses=refuses, where=where) for each in names
            ]
            if not names:
                unread.append(f"{where}: {library}.impl({name.strip()}, …)")
    return Registrations(found=tuple(found), unread=tuple(unread), has_default=has_default)


def _only_refuses(kernel: str, code: str) -> bool:
    """Tell whether the kernel is `mps_error_fallback`, or a function of this file whose last statement always fails."""
    if re.search(r"\bmps_error_fallback\b", kernel):
        return True
    name = re.fullmatch(r"\s*(?:TORCH_FN\s*\(\s*)?&?(?:\w+::)*(\w+)\s*\)?\s*", kernel)
    if name is None:
        return False
    for match in re.finditer(rf"\b{name[1]}\s*\(", code):
        after = _closing(code, match.end() - 1) + 1
        opening = re.compile(r"\s*\{").match(code, after)
        if opening:
            body = code[opening.end() : _closing(code, opening.end() - 1)]
            statements = re.sub(_STRING, '""', body).strip().rstrip(";")
            return bool(_ALWAYS_FAILS.match(statements[statements.rfind(";") + 1 :]))
    return False


def _without_comments(text: str) -> str:
    """Return the code with comments blanked, line for line; strings stay."""
    return _COMMENT.sub(lambda match: match[1] or re.sub(r"[^\n]", " ", match[0]), text)


def _parameters(text: str) -> tuple[str, ...]:
    return tuple(each.strip() for each in text.split(",") if each.strip())


def _implementations(
    body: str, library: str, macros: dict[str, tuple[tuple[str, ...], str]]
) -> Iterator[tuple[str, str, int]]:
    """Yield (first argument, the rest, place) of each `m.impl(…)`, those that a macro writes too."""
    for match in re.finditer(rf"\b{library}\s*\.\s*impl\s*\(", body):
        first, *rest = _arguments(body, match.end() - 1)
        yield first, ", ".join(rest), match.start()
    for name, (parameters, replacement) in macros.items():
        if ".impl" not in replacement and not any(f"{other}(" in replacement for other in macros):
            continue
        for match in re.finditer(rf"\b{name}\s*\(", body):
            given = dict(zip(parameters, _arguments(body, match.end() - 1), strict=False))
            further = {key: value for key, value in macros.items() if key != name}  # a macro never expands in itself
            for first, others, _ in _implementations(_expanded(replacement, given), r"\w+", further):
                yield first, others, match.start()


def _expanded(text: str, given: dict[str, str]) -> str:
    """Return a macro's text with its arguments in place, as the preprocessor does: `#x`, `x ## y`, `x`."""
    for name, value in given.items():
        text = re.sub(rf"(?<!#)#\s*{name}\b", lambda _, value=value: f'"{value.strip()}"', text)  # type: ignore[misc]
    text = re.sub(r"\s*##\s*", "\0", text)
    for name, value in given.items():
        text = re.sub(rf"\b{name}\b", lambda _, value=value: value.strip(), text)  # type: ignore[misc]
    return text.replace("\0", "")


def _names(argument: str, body: str, whole: str) -> tuple[str, ...]:
    """Return the operators that a first argument means: a literal, or what a loop gives it in turn."""
    literal = _LITERAL.match(argument.strip())
    if literal:
        return (_plain("".join(re.findall(_STRING, literal[1]))),)
    variable = argument.strip().removesuffix(".c_str()").removesuffix(".data()")
    for loop in _LOOP.finditer(body):
        if loop[1] != variable:
            continue
        items = loop[3]
        if items is None:
            listed = re.search(_LIST.format(name=re.escape(loop[2])), whole)
            items = listed[1] if listed else ""
        return tuple(_plain(each) for each in re.findall(_STRING, items))
    return ()


def _plain(name: str) -> str:
    return name.removeprefix("aten::")


def _arguments(text: str, opening: int) -> list[str]:
    """Return the arguments of the call whose bracket stands at `opening`."""
    inside = text[opening + 1 : _closing(text, opening)]
    pieces, depth, begin, quoted = [], 0, 0, False
    for at, character in enumerate(inside):
        if character == '"' and inside[at - 1 : at] != "\\":
            quoted = not quoted
        elif quoted:
            continue
        elif character in _OPENS:
            depth += 1
        elif character in _CLOSES:
            depth -= 1
        elif character == "," and depth == 0:
            pieces.append(inside[begin:at])
            begin = at + 1
    return [*pieces, inside[begin:]]


def _closing(text: str, opening: int) -> int:
    """Return where the bracket at `opening` closes; the end of the text if it never does."""
    depth, quoted = 0, False
    for at in range(opening, len(text)):
        character = text[at]
        if character == '"' and text[at - 1] != "\\":
            quoted = not quoted
        elif quoted:
            continue
        elif character in _OPENS:
            depth += 1
        elif character in _CLOSES:
            depth -= 1
            if depth == 0:
                return at
    return len(text)


CHILD = Path(__file__).with_name("torchgen_child.py")
NATIVE = "aten/src/ATen/native"
# What of a tree is read: enough to fetch of a commit that is not on the disk.
NEEDED = ("aten/src/ATen", "torch/csrc", "torchgen", "version.txt")
# Where MPS kernels are registered by hand: everywhere below these, in files that mention the key.
_SEARCHED = ("aten/src/ATen", "torch/csrc")
_CODE = frozenset({".mm", ".cpp", ".cc", ".h", ".hpp", ".metal", ".inl"})
_CHILD_SECONDS = 300.0


def facts_of_tree(root: Path, *, label: str | None = None) -> Facts:
    """Return what the tree's torchgen would register, and what its C++ files register for MPS themselves.

    Raises:
        SourceError: no PyTorch tree, or its torchgen fails.
        MpsNotBuilt: a tree from before MPS.
    """
    yaml = root / NATIVE / "native_functions.yaml"
    if not yaml.is_file():
        hint = "give the root of a PyTorch tree: the folder that holds aten/ and torchgen/"
        raise SourceError(f"{root}: is not PyTorch source tree: {NATIVE}/native_functions.yaml is missing", hint=hint)
    if not (root / "torchgen").is_dir():
        hint = "check out a release from 1.12 on"
        raise MpsNotBuilt(f"{root}: has no torchgen/, so it is older than 1.12, the first release with MPS", hint=hint)
    answer = ask_torchgen(root, yaml, yaml.with_name("tags.yaml"))
    version = _version(root)
    by_hand, notes = _by_hand(root)
    return Facts(
        label=label or f"PyTorch {version}, source",
        kind="source",
        version=version,
        registered={key: frozenset(names) for key, names in answer["registered"].items()},
        own=frozenset(answer["own"]),
        through=answer["through"],
        elsewhere={name: tuple(keys) for name, keys in answer["elsewhere"].items()},
        by_hand=by_hand,
        notes=notes,
    )


def ask_torchgen(root: Path, native_functions: Path, tags: Path) -> dict[str, Any]:
    """Return what the `torchgen` in `root` says of these files (torchgen_child.py tells the keys).

    Raises:
        SourceError: it fails; MpsNotBuilt: it knows no MPS.
    """
    # -I: nothing of the caller's PYTHONPATH and folder can be imported in the tree's place.
    argv = (sys.executable, "-I", "-B", str(CHILD), str(root), str(native_functions), str(tags))
    answer = capture(Command(argv=argv), timeout_seconds=_CHILD_SECONDS)
    if not answer.ok:
        said = (answer.stderr.strip().splitlines() or ["it did not answer"])[-1]
        hint = "a tree that was changed, or a torchgen that this Python cannot run: try the Python that builds it"
        raise SourceError(f"{root}/torchgen does not read {native_functions.name}: {said}", hint=hint)
    operators: dict[str, Any] = parse_json(answer.stdout)
    if not operators["registered"].get("MPS"):
        raise MpsNotBuilt(f"{native_functions} names no kernel for MPS", hint="the first release with MPS is 1.12")
    return operators


def _version(root: Path) -> str:
    file = root / "version.txt"
    text = file.read_text(encoding="utf-8", errors="replace").strip() if file.is_file() else ""
    return text if re.fullmatch(r"\d+\.[\w.+]+", text) else "of unknown version"


def _by_hand(root: Path) -> tuple[tuple[ByHand, ...], tuple[str, ...]]:
    """Return the registrations by hand in the tree, and what could not be read of them."""
    found: list[ByHand] = []
    unread: list[str] = []
    has_default = False
    for path in sorted(path for part in _SEARCHED for path in (root / part).rglob("*") if path.suffix in _CODE):
        data = path.read_bytes() if path.is_file() else b""
        if b"TORCH_LIBRARY_IMPL" not in data or b"MPS" not in data:
            continue
        read = read_registrations(path.relative_to(root).as_posix(), data.decode("utf-8", "replace"))
        found += read.found
        unread += read.unread
        has_default |= read.has_default
    notes = [f"a registration by hand that could not be read: {each}" for each in unread]
    if not has_default:
        notes.append("no fallback of the whole key was found: an operator without a kernel is refused")
    return tuple(found), tuple(notes)
