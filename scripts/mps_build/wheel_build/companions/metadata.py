"""A wheel's METADATA, with torch pinned to the one version it was compiled for."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from mps_build.common.errors import CompileError
from mps_build.common.opening import open_regular

_HEADER = re.compile(r"Requires-Dist:\s*(?P<text>.+?)\s*$", re.IGNORECASE)


def pin_torch(metadata: str, version: str) -> str:
    """Return METADATA whose only demand for torch is that exact version, its local part included.

    `torch==2.6.0` alone would let pip put the official 2.6.0 under a C++ that was compiled for another commit;
    torchaudio 2.11 asks for no torch at all.

    >>> print(pin_torch("Name: a\\nRequires-Dist: numpy\\nRequires-Dist: torch (==2.6.0)\\n\\ntext", "2.6.0+mps.g1"))
    Name: a
    Requires-Dist: numpy
    Requires-Dist: torch==2.6.0+mps.g1
    <BLANKLINE>
    text
    """
    headers, separator, body = metadata.replace("\r\n", "\n").partition("\n\n")
    lines = [line for line in headers.rstrip("\n").split("\n") if not _is_torch(line)]
    lines.append(f"Requires-Dist: torch=={version}")
    return "\n".join(lines) + (separator or "\n") + body


def read_metadata(wheel: Path) -> tuple[str, str]:
    """Return (member, text) of a wheel's METADATA.

    Raises:
        CompileError: the build made a wheel without one.
    """
    with open_regular(wheel) as file, zipfile.ZipFile(file) as archive:
        names = [name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name)]
        if len(names) != 1:
            raise CompileError(f"{wheel.name} holds {len(names)} files called .dist-info/METADATA instead of one")
        return names[0], archive.read(names[0]).decode("utf-8")


def _is_torch(line: str) -> bool:
    match = _HEADER.match(line)
    if match is None:
        return False
    try:
        requirement = Requirement(_modern(match["text"]))
    except InvalidRequirement:
        return False
    return requirement.name.lower() == "torch"


def _modern(text: str) -> str:
    """Return a requirement without the parentheses of old METADATA: `torch (==2.6.0)`."""
    return re.sub(r"\(([^)]*)\)", r"\1", text, count=1)
