"""How this copy of mps-build was installed, and so the line that adds a package to it.

pip does not reach an environment of `uv tool` or pipx: each has a line of its own.
"""

from __future__ import annotations

import json
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from .workspace import in_checkout

NAME = "mps-build"


def line_that_adds(requirement: str, *, session: str | None = None) -> str:
    """Return the command that adds a package to the environment of this process, in back quotes.

    Args:
        session: the session of a clone that installs it by itself, if one does.
    """
    if session and in_checkout():
        return f"`nox -s {session}` installs it by itself"
    return f"`{adding(requirement, prefix=Path(sys.prefix), source=_source())}`"


def adding(requirement: str, *, prefix: Path, source: str) -> str:
    """Return the command for an environment: of `uv tool`, of uvx, of pipx, or any other.

    https://docs.astral.sh/uv/concepts/tools/, https://pipx.pypa.io/stable/
    """
    wanted, named = shlex.quote(requirement), shlex.quote(source)
    if (prefix / "uv-receipt.toml").is_file():
        return f"uv tool install --force --with {wanted} {named}"
    if any(part.startswith("archive-v") for part in prefix.parts):
        return f"uvx --with {wanted} --from {named} {NAME}"
    if (prefix / "pipx_metadata.json").is_file():
        return f"pipx inject {prefix.name} {wanted}"
    return f"{shlex.quote(str(prefix / 'bin' / 'python'))} -m pip install {wanted}"


def _source() -> str:
    """Return what installs mps-build again: the address or folder that it came from, else its name.

    https://packaging.python.org/en/latest/specifications/direct-url/
    """
    try:
        said = distribution(NAME).read_text("direct_url.json")
    except PackageNotFoundError:
        return NAME
    origin = json.loads(said or "{}")
    url = str(origin.get("url", ""))
    if "vcs_info" in origin:
        return f"{origin['vcs_info'].get('vcs', 'git')}+{url}"
    return url.removeprefix("file://") or NAME
