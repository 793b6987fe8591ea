"""What the C compilers and the linkers say of themselves."""

from __future__ import annotations

import re

from .answers import Answer, Facts, first
from .commands import Call

_CLANG = re.compile(r"(?:(Apple|Homebrew) )?(?:clang|LLVM) version (\d+(?:\.\d+)*)(?: \((clang-[\d.]*\d)\))?")
_CONDA = re.compile(r"(?:mini|ana|micro|mamba)(?:conda|forge|mamba)|/conda|/envs/", re.IGNORECASE)


def parse_clang(answer: Answer, call: Call | None = None) -> Facts:
    """Read `clang --version` or `-v`: whose compiler, its version, its build."""
    text = answer.text
    match = next(
        (match for match in _CLANG.finditer(text) if not re.search(r"LTO support using[^\n]*$", text[: match.start()])),
        None,
    )
    if not match or match.group(0).startswith("LLVM"):
        return {}
    facts: Facts = {
        "vendor": {"Apple": "apple", "Homebrew": "homebrew", None: "llvm"}[match.group(1)],
        "clang_version": match.group(2),
    }
    if match.group(3):
        facts["clang_build"] = match.group(3)
    rest = text[match.end() :]
    if target := first(r"^\s*Target:\s*(\S+)\s*$", rest):
        facts["target"] = target
    installed = first(r"^\s*InstalledDir:[ \t]*(/.*\S)\s*$", rest) or ""
    triple = call is not None and re.match(r"arm64-apple-darwin[\d.]+-clang", call.program)
    if facts["vendor"] == "llvm" and (triple or _CONDA.search(installed)):
        facts["maybe_conda"] = True
    return facts


def parse_ld(answer: Answer) -> Facts:
    """Read `ld -v`: Xcode 15.0 called its new linker `dyld`, later ones `ld`; `ld64` is the one before."""
    match = re.search(r"PROGRAM:(\S+)\s+PROJECT:(ld64|ld|dyld)-(\d+(?:\.\d+)*)", answer.text)
    if not match:
        return {}
    program, project, version = match.groups()
    linker = "ld_classic" if program == "ld-classic" else "ld64" if project == "ld64" else "ld_prime"
    facts: Facts = {"linker": linker, "ld_version": version}
    if classic := first(r"will use ld-classic for:[ \t]*(\S.*)$", answer.text):
        facts["classic_for"] = classic.split()
    return facts
