"""The session's pip in another venv: to make one of its own takes five seconds."""

from __future__ import annotations

from pathlib import Path

import pip


def link_pip(venv: Path) -> None:
    """Let a venv that was made without pip find this session's, and nothing else of the session."""
    (packages,) = venv.glob("lib/python*/site-packages")
    (packages / "pip").symlink_to(Path(pip.__file__).parent)
