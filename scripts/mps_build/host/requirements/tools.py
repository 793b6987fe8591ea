"""What stands beside the compilers: git, Python, caches, and what would leak into a build made by hand."""

from __future__ import annotations

from collections.abc import Iterator

from mps_build.common.interpreters import PythonSearch
from mps_build.common.recipe.model import Recipe

from ..host import Host
from .findings import Finding, not_recorded


def tool_findings(host: Host, recipe: Recipe) -> Iterator[Finding]:
    """Yield the findings about Python, git, compiler caches and variables that leak into a build."""
    yield from _python(host, recipe)
    yield from _git(host)
    yield from _caches(host)
    yield from _leaks(host)
    for text in recipe.unproved:
        yield Finding(id="unproved", level="note", what="Not proved", found=text)


def _python(host: Host, recipe: Recipe) -> Iterator[Finding]:
    what, wanted = "Python", f"arm64, one of {', '.join(recipe.pythons)} (a build makes {recipe.default_python})"
    if host.python is None and host.arch is None:
        yield not_recorded("python", what, wanted)
    else:
        found = f"{host.python or 'version not recorded'}, {host.arch or 'architecture not recorded'}"
        yield Finding(id="python", level="ok" if host.arch else "not_recorded", what=what, found=found, wanted=wanted)


def build_python_findings(search: PythonSearch) -> Iterator[Finding]:
    """Yield the Python that a build would take on this very machine, and those it passes over."""
    what, wanted = "Python to build", f"an arm64 CPython {search.version}"
    if search.found is None:
        yield Finding(
            id="build_python_missing",
            level="blocker",
            what=what,
            found="none",
            wanted=wanted,
            fix=f"uv python install {search.version}, or brew install python@{search.version.removesuffix('t')}",
            stops=("build",),
        )
    else:
        yield Finding(id="build_python", level="ok", what=what, found=str(search.found), wanted=wanted)
    for path, reason in search.skipped.items():
        yield Finding(id="build_python_passed_over", level="note", what=what, found=f"not {path}: {reason}")


def _git(host: Host) -> Iterator[Finding]:
    rows = [row for row in host.observations if "git" in row.facts]
    if not rows:
        yield not_recorded("git", "git", "any")
    elif rows[0].facts["git"] is None:
        yield Finding(
            id="git_missing",
            level="blocker",
            what="git",
            found="none",
            wanted="any",
            fix="xcode-select --install" if host.system == "Darwin" else "apt-get install git",
            stops=("build",),
        )
    else:
        yield Finding(id="git", level="ok", what="git", found=str(rows[0].facts["git"]), wanted="any")


def _caches(host: Host) -> Iterator[Finding]:
    for tool in ("ccache", "sccache"):
        rows = [row for row in host.observations if tool in row.facts]
        if rows:
            version = rows[0].facts[tool]
            yield Finding(
                id=tool,
                level="note",
                what="Compiler cache",
                found=f"{tool} {version}" if version else f"no {tool}",
                wanted="optional",
                fix=f"brew install {tool}" if not version and host.system == "Darwin" else None,
            )


def _leaks(host: Host) -> Iterator[Finding]:
    """Name what a build by hand would take in; ours gets its environment by allow-list, so none of it blocks."""
    variables: list[str] = next((row.facts["variables"] for row in host.observations if "variables" in row.facts), [])
    semicolons: list[str] = next(
        (row.facts["semicolons"] for row in host.observations if "semicolons" in row.facts), []
    )
    folders: list[str] = next(
        (row.facts["header_folders"] for row in host.observations if "header_folders" in row.facts), []
    )
    if variables:
        yield Finding(
            id="variables_leak",
            level="note",
            what="Variables",
            found=", ".join(variables),
            wanted="none (our build leaves them out)",
            fix=f"unset {' '.join(variables)} before a build by hand",
        )
    if semicolons:
        yield Finding(
            id="semicolon_in_variable",
            level="note",
            what="Variables",
            found=f"a `;` in {', '.join(semicolons)}",
            wanted="none (2.12 and 2.13 drop USE_MPS=1 over one; our build leaves them out)",
            fix=f"unset {' '.join(semicolons)} before a build by hand",
            link="https://github.com/pytorch/pytorch/pull/188242",
        )
    if folders:
        yield Finding(
            id="headers_leak",
            level="note",
            what="Headers",
            found=", ".join(folders),
            wanted="none that a compiler takes by itself",
            fix="unset CPATH CPPFLAGS LIBRARY_PATH before a build by hand",
        )
