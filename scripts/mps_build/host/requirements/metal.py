"""Whether the Metal compiler compiles; a path or a status never makes it well."""

from __future__ import annotations

from collections.abc import Iterator

from mps_build.common.recipe.model import Recipe

from ..host import Host
from ..installed_xcodes import Xcode
from ..macos.known_tool_errors import BY_ID, DOWNLOAD_METAL, KnownToolError
from .findings import Finding, not_recorded

XCODE_LINK = "https://developer.apple.com/download/all/?q=xcode"
METAL_ERRORS = frozenset({"metal_toolchain_missing", "metal_utility_not_found", "metal4_headers_too_old"})


def metal_findings(host: Host, recipe: Recipe, xcode: Xcode | None) -> Iterator[Finding]:
    """Yield whether the Metal compiler compiles; a path or a status never makes it well."""
    required = recipe.host.metal_compiler == "required"
    wanted = "a working Metal compiler" if required else "not needed by this recipe"
    if xcode is not None and xcode.metal_standards is not None:
        yield from _proved(xcode, recipe, wanted)
        return
    error = (
        xcode.metal_error if xcode is not None else next((e for e in host.every("error") if e in METAL_ERRORS), None)
    )
    unusable = any(row.facts.get("usable") is False for row in host.observations)
    if error in BY_ID or unusable:
        known = BY_ID[error if error is not None and error in BY_ID else "metal_toolchain_missing"]
        name = "metal_compiler_missing" if known.id == "metal_utility_not_found" else known.id
        yield Finding(
            id=name,
            level="blocker" if required else "note",
            what="Metal compiler",
            found=known.means,
            wanted=wanted,
            fix=_fix(host, known),
            link=known.link,
            stops=("build",),
        )
    elif required:
        yield not_recorded("metal_compiler", "Metal compiler", wanted)


def _proved(xcode: Xcode, recipe: Recipe, wanted: str) -> Iterator[Finding]:
    standards = xcode.metal_standards or ()
    found = f"{xcode.metal_version or 'it'} compiles Metal {', '.join(standards) or 'of neither 3.1 nor 4.0'}"
    needed = "4.0" if recipe.gate.can_compile_metal_40 else "3.1"
    if recipe.host.metal_compiler == "required" and needed not in standards:
        yield Finding(
            id="metal_standard_missing",
            level="blocker",
            what="Metal compiler",
            found=found,
            wanted=f"Metal {needed}",
            fix=f"install a newer Xcode from {XCODE_LINK}",
            link=XCODE_LINK,
            stops=("build",),
        )
    else:
        yield Finding(id="metal_compiler", level="ok", what="Metal compiler", found=found, wanted=wanted)


def _fix(host: Host, known: KnownToolError) -> str | None:
    """Return how to fix it; a component that is there and not seen is not fixed by fetching it again at once."""
    there = "installed" in set(host.every("status")) or True in set(host.every("done"))
    if known.id == "metal_toolchain_missing" and there:
        return f"xcrun --kill-cache; if that does not help, restart the Mac, and then run again: {DOWNLOAD_METAL}"
    return known.fix
