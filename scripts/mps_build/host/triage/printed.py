"""What a text tells of the Mac that it was written on: its macOS, its torch, and whether Intel code runs on it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .rules import load_catalogue

_MACOS = re.compile(
    r"\b(?:ProductVersion: ?|OS: macOS |macOS: |macOS-(?=[\d.]{1,15}-(?:arm64|x86_64)))(\d{1,2}(?:\.\d{1,3}){0,3})"
)
_TORCH = re.compile(r"\bPyTorch version: (\d{1,2}\.\d{1,3}(?:\.\d{1,3})?)|\btorch==(\d{1,2}\.\d{1,3}(?:\.\d{1,3})?)")
# What a program that was linked to an old SDK is told, whatever the macOS is.
_COMPATIBILITY = "10.16"


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """Facts as printed; None: the text does not tell. `rosetta`: Intel code, on a Mac with Apple silicon."""

    macos: str | None = None
    torch: str | None = None
    intel: bool = False
    rosetta: bool = False


def read_printed(prose: str) -> Printed:
    """Return what a text (of one line, white space squeezed) tells of its host."""
    found = (match[1] for match in _MACOS.finditer(prose))
    torch = _TORCH.search(prose)
    macros = load_catalogue()
    intel = bool(macros.compiled("<intel_python>").search(prose))
    return Printed(
        macos=next((version for version in found if version != _COMPATIBILITY), None),
        torch=(torch[1] or torch[2]) if torch else None,
        intel=intel,
        rosetta=intel and bool(macros.compiled("<apple_silicon>").search(prose)),
    )
