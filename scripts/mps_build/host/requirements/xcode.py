"""Which Xcode a recipe can be built with, and what stands in its way: SDK, licence, the Metal compiler.

Whether that compiles is proved; a path or a status never makes it well.
"""

from __future__ import annotations

from collections.abc import Iterator

from mps_build.common.recipe.model import Recipe

from ..host import Host, Xcode
from ..macos.known_tool_errors import BY_ID, DOWNLOAD_METAL, FIRST_LAUNCH, KnownToolError
from .findings import Finding, not_recorded, older, within

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


# Of every build: `host.xcode` of a recipe raises it for that release, and what is required is the newer of the two.
LEAST_XCODE = "13.3.1"

# Situations that mean one of the blockers of docs/host/recorded_macs.md; others block under their own name.
_MEANS = {
    "license_not_agreed": "xcode_license",
    "xcode_required_clt_active": "xcode_clt_only",
    "utility_not_found": "xcode_clt_only",
    "no_active_developer_directory": "xcode_missing",
    "invalid_active_developer_path": "xcode_missing",
    "active_developer_path_does_not_exist": "xcode_missing",
    "no_developer_tools": "xcode_missing",
    "developer_dir_missing": "xcode_missing",
    "developer_dir_invalid": "xcode_missing",
}
# These speak of one action that failed, not of the state of the host.
_ACTIONS = frozenset(
    {
        "no_receipt",
        "xcodebuild_invalid_option",
        "clt_already_installed",
        "metal_asset_already_installed",
        "coresimulator_out_of_date",
        "no_platform_in_clt",
        "metal_language_standard",
        "xcode_select_needs_root",
        "xcode_select_invalid_argument",
        "xcode_select_invalid_developer_directory",
        "metal_catalog_failed",
        "clt_not_available_from_software_update",
        "mobileassetd_starting_up",
        "metal_download_stalled",
    }
)


def choose_xcode(host: Host, recipe: Recipe) -> Xcode | None:
    """Return the Xcode to build with: the chosen one if it suits, else the newest that does, else the chosen one."""
    suiting = [xcode for xcode in host.xcodes if not _faults(xcode, recipe)]
    if not suiting:
        return host.xcode
    return next((x for x in suiting if x.chosen), max(suiting, key=lambda x: tuple(map(int, x.version.split(".")))))


def chosen_suits(host: Host, recipe: Recipe) -> bool:
    """Say whether the Xcode that this machine has chosen builds the recipe, so that no other one is looked for."""
    return host.xcode is not None and suits(host.xcode, recipe)


def suits(xcode: Xcode, recipe: Recipe) -> bool:
    """Say whether an Xcode has the version and the SDK that a recipe needs."""
    too_old = xcode.sdk_version is not None and older(xcode.sdk_version, recipe.host.sdk)
    return not too_old and not _faults(xcode, recipe)


def xcode_findings(host: Host, recipe: Recipe) -> Iterator[Finding]:
    """Yield the findings about the chosen Xcode, its SDK and its neighbours, judged by the recipe's floors."""
    xcode = choose_xcode(host, recipe)
    suits = xcode is not None and not _faults(xcode, recipe)
    yield from _directory(host, recipe, xcode)
    if xcode is not None:
        yield from (_faults(xcode, recipe) or [_well(xcode, recipe)])
        yield from _beside(host, recipe, xcode)
        yield from _sdk(xcode, recipe)
    yield from _known_tool_errors(host, recipe, other_suits=suits and xcode is not None and not xcode.chosen)
    yield from _signs(host, xcode)
    yield from metal_findings(host, recipe, xcode)


def _directory(host: Host, recipe: Recipe, xcode: Xcode | None) -> Iterator[Finding]:
    """Yield what is amiss with the choice of tools as such, once, whoever reported it."""
    if xcode is not None:
        return
    errors = [error for error in host.every("error") if error in _MEANS or error not in _ACTIONS | METAL_ERRORS]
    kinds = set(host.every("kind", "xcode-select"))
    if kinds == {"clt"} and not any(_MEANS.get(error) == "xcode_clt_only" for error in errors):
        yield _blocker("xcode_required_clt_active", recipe)
    elif not errors and not host.was_answered("xcodebuild", "xcode-select", "xcrun"):
        yield Finding(
            id="xcode_unknown",
            level="warning",
            what="Xcode",
            found="no Xcode probe was answered",
            wanted=_wanted(recipe),
            fix="xcodebuild -version",
        )
    elif not errors:
        yield not_recorded("xcode", "Xcode", _wanted(recipe))


def _wanted(recipe: Recipe) -> str:
    return f"Xcode {max(recipe.host.xcode, LEAST_XCODE, key=_key)} or newer"


def _key(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _faults(xcode: Xcode, recipe: Recipe) -> list[Finding]:
    get = f"install one from {XCODE_LINK}, then: export DEVELOPER_DIR=/Applications/<that Xcode>.app/Contents/Developer"
    faults = []
    if older(xcode.version, LEAST_XCODE):
        faults.append(
            Finding(
                id="xcode_too_old",
                level="blocker",
                what="Xcode",
                found=_name(xcode),
                wanted=_wanted(recipe),
                fix=get,
                link=XCODE_LINK,
                stops=("build",),
            )
        )
    elif older(xcode.version, recipe.host.xcode):
        faults.append(
            Finding(
                id="xcode_too_old_for_recipe",
                level="blocker",
                what="Xcode",
                found=_name(xcode),
                wanted=_wanted(recipe),
                fix=get,
                link=XCODE_LINK,
                stops=("build",),
            )
        )
    for bad in recipe.host.bad_xcodes:
        if within(xcode.version, bad.first, bad.last or xcode.version):
            faults.append(
                Finding(
                    id="bad_xcode",
                    level="blocker",
                    what="Xcode",
                    found=f"{_name(xcode)}: {bad.reason}",
                    wanted=f"none from {bad.first} {f'to {bad.last}' if bad.last else 'on'}",
                    fix=get,
                    link=bad.url,
                    stops=("build",),
                )
            )
    return faults


def _name(xcode: Xcode) -> str:
    seed = ", a pre-release" if xcode.beta else ""
    return f"{xcode.version} ({xcode.build or 'build unknown'}{seed})"


def _well(xcode: Xcode, recipe: Recipe) -> Finding:
    by = "" if xcode.chosen else f", by DEVELOPER_DIR={xcode.developer_dir}"
    official = recipe.host.xcode_official
    untried = "; newer than the official build's, " + official if official and older(official, xcode.version) else ""
    return Finding(id="xcode", level="ok", what="Xcode", found=f"{_name(xcode)}{by}{untried}", wanted=_wanted(recipe))


def _beside(host: Host, recipe: Recipe, chosen: Xcode) -> Iterator[Finding]:
    for xcode in host.xcodes:
        if xcode is not chosen:
            faults = _faults(xcode, recipe)
            state = f"no: {', '.join(fault.id for fault in faults)}" if faults else "suits as well"
            yield Finding(
                id="xcode_beside",
                level="note",
                what="Another Xcode",
                found=f"{_name(xcode)}: {state}",
                wanted=xcode.developer_dir or "",
            )


def _sdk(xcode: Xcode, recipe: Recipe) -> Iterator[Finding]:
    wanted = f"{recipe.host.sdk} or newer ({recipe.host.sdk_evidence})"
    if xcode.sdk_version is None:
        yield not_recorded("sdk", "macOS SDK", wanted)
    elif older(xcode.sdk_version, recipe.host.sdk):
        yield Finding(
            id="sdk_too_old",
            level="blocker",
            what="macOS SDK",
            found=xcode.sdk_version,
            wanted=wanted,
            fix=f"install a newer Xcode from {XCODE_LINK}",
            link=XCODE_LINK,
            stops=("build",),
        )
    else:
        yield Finding(id="sdk", level="ok", what="macOS SDK", found=xcode.sdk_version, wanted=wanted)


def _known_tool_errors(host: Host, recipe: Recipe, *, other_suits: bool) -> Iterator[Finding]:
    """Yield each error known that a probe met, once, with how to fix it."""
    seen: set[str] = set()
    for row in host.observations:
        error = row.facts.get("error")
        elsewhere = any("DEVELOPER_DIR" in call.environ for call in row.calls)
        if not error or error in seen or (error in METAL_ERRORS and not _is_download(error)):
            continue
        seen.add(error)
        harmless = error in _ACTIONS or row.facts.get("fatal") is False
        if harmless or elsewhere or (other_suits and _MEANS.get(error) in ("xcode_clt_only", "xcode_missing")):
            yield _note(error)
        else:
            yield _blocker(error, recipe)


def _is_download(error: str) -> bool:
    return error in ("metal_catalog_failed", "mobileassetd_starting_up", "metal_download_stalled")


def _blocker(error: str, recipe: Recipe) -> Finding:
    known = BY_ID[error]
    return Finding(
        id=_MEANS.get(error, error),
        level="blocker",
        what="Xcode",
        found=known.means,
        wanted=_wanted(recipe),
        fix=known.fix,
        link=known.link,
        stops=("build",),
    )


def _note(error: str) -> Finding:
    known = BY_ID[error]
    return Finding(id=error, level="note", what="Xcode", found=known.means, fix=known.fix, link=known.link)


def _signs(host: Host, xcode: Xcode | None) -> Iterator[Finding]:
    """Yield what is not a fault yet and often comes before one."""
    if host.first("from_env", "xcode-select"):
        yield Finding(
            id="developer_dir_from_env",
            level="note",
            what="Xcode",
            found=f"{host.first('developer_dir', 'xcode-select')}: an echo of DEVELOPER_DIR, unchecked",
            fix="unset DEVELOPER_DIR, unless it is intended",
        )
    if xcode is not None and xcode.beta:
        yield Finding(id="xcode_beta", level="note", what="Xcode", found=f"{_name(xcode)}", wanted="a release")
    receipt = next(
        (row.facts for row in host.observations if row.facts.get("package") == "com.apple.pkg.XcodeSystemResources"), {}
    )
    short = receipt.get("package_short")
    if xcode is not None and short is not None and _key(short)[0] < _key(xcode.version)[0]:
        yield Finding(
            id="system_resources_older",
            level="note",
            what="Xcode",
            found=f"XcodeSystemResources {short} beside Xcode {xcode.version}: git and clang may crash",
            wanted=f"{_key(xcode.version)[0]}.x",
            fix=FIRST_LAUNCH,
            link=BY_ID["xcode_system_resources_outdated"].link,
        )
