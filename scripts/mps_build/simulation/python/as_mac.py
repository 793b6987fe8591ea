"""Lets `platform` answer as on a Mac with Apple silicon, for `simulate --as-mac`: some libraries choose MPS by it.

sys.platform, os.uname and platform.system stay Linux's: much of Python, and of every library, works by them.
"""

from __future__ import annotations

import os
import platform


def answer(macos: str) -> None:
    """Change this process's `platform`."""
    platform.processor = lambda: "arm"
    platform.machine = lambda: "arm64"
    platform.mac_ver = lambda release="", versioninfo=("", "", ""), machine="": (macos, ("", "", ""), "arm64")


answer(os.environ.get("MPS_BUILD_MACOS", ""))
