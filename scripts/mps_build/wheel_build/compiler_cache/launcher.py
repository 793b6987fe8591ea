"""A compiler cache in front of the compilers: opt-in, for every language, with its hits on record."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mps_build.common.errors import UsageError
from mps_build.common.files import write_whole
from mps_build.common.process import Command, capture
from mps_build.host.triage.tools.caches import parse_ccache, parse_sccache
from mps_build.host.triage.tools.ninja import parse_ninja_log

# PyTorch sets C and CXX by itself; without OBJC and OBJCXX no `.mm` ever hits.
LANGUAGES = ("C", "CXX", "OBJC", "OBJCXX")
# What build_wheel sets by itself, since other values give wrong objects or share what nobody wanted to share.
_OURS = (
    *("CCACHE_BASEDIR", "CCACHE_SLOPPINESS", "CCACHE_HASHDIR", "CCACHE_NOHASHDIR"),
    *("CCACHE_REMOTE_", "CCACHE_SECONDARY_STORAGE", "SCCACHE_"),
)
OPENMP = ("-Xpreprocessor", "-fopenmp")
_COMPILER = """\
#!/bin/sh
echo "$*" >> {calls}
for each; do case "$last" in -o) : > "$each" ;; esac; last=$each; done
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheCounts:
    """What a cache has counted since its statistics began.

    Attributes:
        errors: entries that were there and could not be used.
        write_errors: objects that the store did not take.
    """

    hits: int
    misses: int
    errors: int = 0
    write_errors: int = 0


def find_launcher(name: str, *, path: str | None) -> Path:
    """Return the cache's program, by its whole path: the build's own PATH does not reach it.

    Links are kept: what Homebrew's lead to is named for the version, and gone after an upgrade.

    Raises:
        UsageError: it is not installed.
    """
    found = shutil.which(name, path=path)
    if found is None:
        raise UsageError(
            f"--cache {name}: not found", hint=f"install it (brew install {name}), or build without --cache"
        )
    return Path(found).absolute()


def launchers(launcher: Path | None) -> dict[str, str]:
    """Return the variables that put `launcher` in front of every compiler."""
    return {f"CMAKE_{language}_COMPILER_LAUNCHER": str(launcher) for language in LANGUAGES} if launcher else {}


def cache_settings(launcher: Path | None, *, base: Path | None) -> dict[str, str]:
    """Return how ccache is set for a build without a precompiled header: its hits go across checkouts.

    Paths below `base` are given to the compiler relative to the build folder, so a checkout elsewhere asks the same.
    A precompiled header cannot go across with them: it holds absolute paths, so another checkout would read the first
    one's headers (docs/build/faster_builds.md). Without the sloppiness that allows it, ccache keeps and uses none,
    whoever adds one. No remote storage: what others may write goes into no release.

    Args:
        base: the folder that holds the sources and the build; None for a build with such a header, which sets
            what it needs by itself (profiles.py).
    """
    if launcher is None or base is None or launcher.name.startswith("sccache"):
        return {}
    remote = dict.fromkeys(("CCACHE_REMOTE_STORAGE", "CCACHE_SECONDARY_STORAGE"), "")
    return {"CCACHE_BASEDIR": str(base), "CCACHE_NOHASHDIR": "1", "CCACHE_SLOPPINESS": "", **remote}


def checkout_of(source: Path, workspace: Path) -> Path:
    """Return the folder that holds the sources and the build: our own, else the caller's tree alone."""
    return workspace if workspace in source.parents else source


def cache_lines(launcher: Path | None, *, across: bool) -> str:
    """Return what ccache adds to overrides.cmake where its hits go across checkouts: generated files without a path."""
    if launcher is None or not across or launcher.name.startswith("sccache"):
        return ""
    return Path(__file__).with_suffix(".cmake").read_text(encoding="utf-8")


def check_settings(names: Iterable[str]) -> None:
    """Refuse a --set that would undo what keeps a compiler cache right.

    Raises:
        UsageError: naming it.
    """
    for name in names:
        if name.startswith(_OURS):
            raise UsageError(
                f"--set {name}: build_wheel configures the compiler cache itself, to keep its objects right",
                hint="choose it by --cache, --shared-cache, MPS_BUILD_SHARED_CACHE (docs/fleet/caches.md)",
            )


def cache_counts(launcher: Path | None, environ: Mapping[str, str]) -> CacheCounts | None:
    """Return what the cache has counted so far; None without a cache, or if it does not say."""
    if launcher is None:
        return None
    if launcher.name.startswith("sccache"):
        facts = parse_sccache(_ask(launcher, "--show-stats", environ))
        if facts is None or facts.error:
            return None
        lost, unwritten = facts.errors or 0, facts.write_errors or 0
        return CacheCounts(hits=facts.hits or 0, misses=facts.misses or 0, errors=lost, write_errors=unwritten)
    counts = parse_ccache(_ask(launcher, "-s", environ))
    return CacheCounts(hits=counts.hits or 0, misses=counts.misses or 0) if counts else None


def _ask(launcher: Path, flag: str, environ: Mapping[str, str]) -> str:
    return capture(Command(argv=(str(launcher), flag), environ=environ), timeout_seconds=30).stdout


def cache_gain(before: CacheCounts | None, after: CacheCounts | None) -> dict[str, float] | None:
    """Return hits, misses and hit rate (0 to 1) of what lay between two readings, and the errors, if there are any.

    >>> cache_gain(CacheCounts(hits=10, misses=5), CacheCounts(hits=13, misses=6))
    {'hits': 3, 'misses': 1, 'hit_rate': 0.75}
    """
    if before is None or after is None:
        return None
    hits, misses = after.hits - before.hits, after.misses - before.misses
    gain = {"hits": hits, "misses": misses, "hit_rate": round(hits / (hits + misses), 4) if hits + misses else 0.0}
    wrong = {"errors": after.errors - before.errors, "write_errors": after.write_errors - before.write_errors}
    return gain | {name: count for name, count in wrong.items() if count > 0}


def cache_troubles(gain: Mapping[str, float] | None) -> tuple[str, ...]:
    """Return what to tell of a cache that did not do its part, in sentences."""
    warnings = []
    if gain and (count := int(gain.get("errors", 0))):
        warnings.append(f"{count} entries of the compiler cache could not be read: those files were compiled here")
    if gain and (count := int(gain.get("write_errors", 0))):
        warnings.append(
            f"the compiler cache did not store {count} objects (full, read-only or gone); the build continued"
        )
    return tuple(warnings)


def ninja_log_text(build: Path) -> str:
    """Return the log that ninja keeps of every step of a build folder, empty where there is none."""
    log = build / ".ninja_log"
    return log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""


def slowest_steps(build: Path, *, before: str = "", count: int = 8) -> list[tuple[str, float]]:
    """Return the longest ninja steps of one run as (output, seconds), longest first.

    Args:
        before: the log as it was when the run began: other Pythons' steps, and those of earlier runs, are in it.
    """
    earlier = set(before.splitlines())
    fresh = [line for line in ninja_log_text(build).splitlines() if line.startswith("#") or line not in earlier]
    ran = parse_ninja_log("\n".join([*fresh, ""]))
    return list(ran.slowest(count)) if ran else []


# Whether a compiler cache hands the compiler every flag: ccache 4.11.2 drops `-Xpreprocessor -fopenmp`.
#
# CMake asks Apple's clang for OpenMP by these two words, so every cached object would be compiled without OpenMP, and
# only the audit would notice, an hour later. The installed ccache is tried, with a compiler that writes down its call.


def check_flags_pass(launcher: Path | None, *, openmp: bool) -> None:
    """Refuse a ccache that would compile without the OpenMP that the recipe asks for.

    Args:
        launcher: the cache's program, or None.
        openmp: whether Apple's clang compiles with OpenMP.

    Raises:
        UsageError: naming the flags.
    """
    if launcher is None or not openmp or not launcher.name.startswith("ccache"):
        return
    lost = lost_flags(launcher, OPENMP)
    if lost:
        version = capture(Command(argv=(str(launcher), "--version"))).stdout.splitlines()
        named = version[0] if version else str(launcher)
        raise UsageError(
            f"--cache ccache: {named} drops {' '.join(lost)}, so that torch would be compiled without OpenMP",
            hint="as 4.11.2 (https://github.com/ccache/ccache/issues/1586): brew upgrade ccache, or --cache sccache",
        )


def lost_flags(launcher: Path, flags: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of the flags that do not reach the compiler when a file is compiled through the cache."""
    with tempfile.TemporaryDirectory(prefix="mps-build-cache-") as name:
        folder = Path(name)
        calls, compiler = folder / "calls", folder / "compiler"
        write_whole(folder / "a.c", "int a;\n")
        write_whole(compiler, _COMPILER.format(calls=calls))
        compiler.chmod(0o755)
        # Not the caller's store or configuration: the trial must miss, and leave nothing behind.
        environ = {"PATH": "/usr/bin:/bin", "CCACHE_DIR": str(folder / "store"), "CCACHE_COMPILERTYPE": "clang"}
        argv = (str(launcher), str(compiler), *flags, "-c", "a.c", "-o", "a.o")
        capture(Command(argv=argv, cwd=folder, environ=environ), timeout_seconds=30)
        said = calls.read_text(encoding="utf-8").splitlines() if calls.is_file() else []
    compiled = [line.split() for line in said if "-E" not in line.split() and "a.c" in line.split()]
    return tuple(flag for flag in flags if any(flag not in words for words in compiled))
