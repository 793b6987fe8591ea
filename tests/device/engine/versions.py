"""Which torch and which macOS are here, and what asks for them."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import Iterable

import torch


def parse_release(text: str) -> tuple[int, int]:
    """Return (major, minor) of a version such as `2.6.0+cpu` or `2.16.0.dev20260915`.

    >>> parse_release("2.10.0.dev1")
    (2, 10)
    """
    found = re.match(r"(\d+)\.(\d+)", text)
    if found is None:
        raise ValueError(f"not a version of torch: {text!r}")
    return int(found.group(1)), int(found.group(2))


TORCH = parse_release(torch.__version__)


def is_at_least(release: str) -> bool:
    """Say whether this torch is `release` ("2.1") or newer."""
    return parse_release(release) <= TORCH


# The macOS that the back end's own code tells apart; others it cannot answer.
_TOLD_APART = ((13, 0), (13, 1), (13, 2), (13, 3), (14, 0), (14, 4), (15, 0), (15, 1))


def needs_one_of(versions: Iterable[tuple[int, int]]) -> re.Pattern[str]:
    """Return a pattern of texts that ask for one of these macOS, or a newer one.

    >>> pattern = needs_one_of([(13, 2), (15, 0)])
    >>> bool(pattern.search("torch.int32 is only supported on MacOS15+"))
    True
    >>> bool(pattern.search("supported natively starting from macOS 13.2. Falling back on CPU."))
    True
    >>> bool(pattern.search("only supported on macOS 13.3 or newer")), bool(pattern.search("wrong on macOS 15.0"))
    (False, False)
    """
    numbers = "|".join(rf"{major}\.{minor}" if minor else rf"{major}(?:\.0)?" for major, minor in versions)
    one = rf"mac ?os ?(?:{numbers or '(?!)'})(?!\.?\d)"
    return re.compile(
        rf"{one}(?:\+| or (?:newer|later|above)| onwards)|(?:starting from|added in) {one}", re.IGNORECASE
    )


@lru_cache(maxsize=None)
def _needs_what_is_here() -> re.Pattern[str]:
    backend = getattr(torch.backends, "mps", None)
    is_here = getattr(backend, "is_macos_or_newer", None)
    if backend is None or is_here is None or not backend.is_available():
        return needs_one_of(())
    return needs_one_of(version for version in _TOLD_APART if is_here(*version))


def asks_for_this_macos(text: str) -> bool:
    """Say whether a refusal or a warning asks for a macOS that is here."""
    return _needs_what_is_here().search(text) is not None


def refuse_such_warnings() -> None:
    """Make an error of each warning that asks for a macOS that is here: the answer then comes from a detour."""
    warnings.filterwarnings("error", message=f"(?s:.*)(?:{_needs_what_is_here().pattern})")
