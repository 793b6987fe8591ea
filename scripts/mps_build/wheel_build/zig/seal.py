"""Whether zig's cache still gives what it gave: the libraries that it links into every wheel, by their hashes.

zig looks a library up by what it was made from, and links what lies there unread: a file that a disk, or anybody, has
changed since would go into a wheel, signed and well formed.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from mps_build.common.files import write_whole
from mps_build.common.json_text import read_json
from mps_build.common.workspace import remove_tree

_SEAL = "outputs.sha256.json"
_LINKED = (".a", ".o", ".dylib", ".tbd")
# Where zig keeps what it made, and what that was made from; the folder of zig itself stays.
_FOLDERS = ("o", "h", "z", "b", "tmp", "local")


def check_seal(cache: Path) -> tuple[str, ...]:
    """Return the sealed files that are gone or changed, by their names in the cache; none without a seal."""
    try:
        sealed = read_json(cache / _SEAL)
        return tuple(sorted(name for name, digest in sealed.items() if _digest(cache / name) != digest))
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, AttributeError):
        return (_SEAL,)


def seal(cache: Path) -> None:
    """Remember what zig has made so far."""
    made = {
        path.relative_to(cache).as_posix(): _digest(path)
        for path in sorted((cache / "o").rglob("*"))
        if path.suffix in _LINKED and path.is_file()
    }
    write_whole(cache / _SEAL, json.dumps(made, indent=1) + "\n")


def drop_made(cache: Path) -> None:
    """Remove all that zig has made, so that it makes it again."""
    (cache / _SEAL).unlink(missing_ok=True)
    for name in _FOLDERS:
        remove_tree(cache / name)


def _digest(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else None
