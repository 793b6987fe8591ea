"""Names that host/requirements still imports; the table is known_tool_errors.yaml."""

from __future__ import annotations

from .known_tool_errors import COMMANDS
from .known_tool_errors import KnownToolError as Situation

ACCEPT_LICENSE = COMMANDS["accept_license"]
DOWNLOAD_METAL = COMMANDS["download_metal"]
FIRST_LAUNCH = COMMANDS["first_launch"]
INSTALL_CLT = COMMANDS["install_clt"]

__all__ = ["ACCEPT_LICENSE", "DOWNLOAD_METAL", "FIRST_LAUNCH", "INSTALL_CLT", "Situation"]
