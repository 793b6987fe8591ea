"""A compiler cache in front of the compilers: opt-in, for every language, with its hits on record."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from .errors import UsageError
from .process import Command, capture
from .triage.tools.ccache import parse_ccache
from .triage.tools.sccache import parse_sccache

# PyTorch sets C and CXX by itself; without OBJC and OBJCXX no `.mm` ever hits.
LANGUAGES = ("C", "CXX", "OBJC", "OBJCXX")


def find_launcher(name: str, *, path: str | None) -> Path:
    """Return the cache's program, by its whole path: the build's own PATH does not reach it.

    Raises:
        UsageError: it is not installed.
    """
    found = shutil.which(name, path=path)
    if found is None:
        raise UsageError(
            f"--cache {name}: not found", hint=f"install it (brew install {name}), or build without --cache"
        )
    return Path(found).resolve()


def launchers(launcher: Path | None) -> dict[str, str]:
    """Return the variables that put `launcher` in front of every compiler."""
    return {f"CMAKE_{language}_COMPILER_LAUNCHER": str(launcher) for language in LANGUAGES} if launcher else {}


def cache_counts(launcher: Path | None, environ: Mapping[str, str]) -> tuple[int, int] | None:
    """Return (hits, misses) since the cache's statistics began; None without a cache, or if it does not say."""
    if launcher is None:
        return None
    if launcher.name.startswith("sccache"):
        facts = parse_sccache(_ask(launcher, "--show-stats", environ))
        return (facts.hits or 0, facts.misses or 0) if facts else None
    counts = parse_ccache(_ask(launcher, "-s", environ))
    return (counts.hits or 0, counts.misses or 0) if counts else None


def _ask(launcher: Path, flag: str, environ: Mapping[str, str]) -> str:
    return capture(Command(argv=(str(launcher), flag), environ=environ), timeout_seconds=30).stdout


def cache_gain(before: tuple[int, int] | None, after: tuple[int, int] | None) -> dict[str, float] | None:
    """Return hits, misses and hit rate (0 to 1) of what lay between two readings.

    >>> cache_gain((10, 5), (13, 6))
    {'hits': 3, 'misses': 1, 'hit_rate': 0.75}
    """
    if before is None or after is None:
        return None
    hits, misses = after[0] - before[0], after[1] - before[1]
    return {"hits": hits, "misses": misses, "hit_rate": round(hits / (hits + misses), 4) if hits + misses else 0.0}
