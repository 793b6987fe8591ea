"""The user's home folder, which a container's user may not have."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import UsageError


def home_folder(*, hint: str = "set HOME to a folder that you may write to") -> Path:
    """Return the user's home folder.

    Raises:
        UsageError: HOME is not set, and the user database does not know this user.
    """
    try:
        return Path.home()
    except RuntimeError as error:
        raise UsageError(
            f"there is no home folder: HOME is not set, and user {os.getuid()} is not in the user database", hint=hint
        ) from error


def expanded(path: Path | str) -> Path:
    """Return a path with its `~` or `~name` written out.

    Raises:
        UsageError: there is no such home folder.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise UsageError(
            f"{path}: there is no home folder for {Path(path).parts[0]}", hint="write the path out, from / on"
        ) from error
