"""The shortest list of commands that leads from a Mac as it is to a build of one recipe."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from urllib.parse import quote

from mps_build.common.recipe.model import Recipe

from ..host import Host
from ..macos.known_tool_errors import ACCEPT_LICENSE, DOWNLOAD_METAL, FIRST_LAUNCH, INSTALL_CLT
from .findings import Finding
from .xcode import LEAST_XCODE, XCODE_LINK, choose_xcode, suits

# Where the pages of Apple, and the fixes of our tables, take an Xcode to be.
USUAL = "/Applications/Xcode.app/Contents/Developer"
# From this one on the Metal compiler is a component of its own.
_COMPONENT = 26
_NEVER = frozenset({"intel_cpu"})
_BEFORE = ("macos_too_old_for_recipe", "rosetta", "disk_full")
_FIRST_LAUNCH_ERRORS = frozenset({"first_launch_needed", "xcode_system_resources_outdated"})
_ONCE = frozenset({"xcode_missing", "xcode_clt_only"})


def way_to_build(host: Host, recipe: Recipe, findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return what to do, in order, until `build_wheel` starts; empty where nothing stops it, or nothing helps."""
    stopping = {each.id: each for each in findings if each.level == "blocker" and "build" in each.stops}
    if host.system != "Darwin" or not stopping or _NEVER & stopping.keys():
        return ()
    steps = [stopping[name].fix or "" for name in _BEFORE if name in stopping]
    if any(each.what in ("Xcode", "macOS SDK", "Metal compiler", "git") for each in stopping.values()):
        steps += xcode_steps(host, recipe)
    if "build_python_missing" in stopping:
        steps.append(stopping["build_python_missing"].fix or "")
    steps += [each.fix or "" for each in stopping.values() if each.id == "probe_timed_out"]
    return (*dict.fromkeys(filter(None, steps)), f"nox -s build_wheel -- {recipe.name}")


def xcode_steps(host: Host, recipe: Recipe) -> tuple[str, ...]:
    """Return what makes an Xcode of this recipe usable: nothing of the machine's own choice is changed."""
    chosen = choose_xcode(host, recipe)
    errors = set(host.every("error"))
    if chosen is not None and suits(chosen, recipe):
        directory = None if chosen.chosen else chosen.developer_dir
        steps = [_under(directory, ACCEPT_LICENSE)] if "license_not_agreed" in errors else []
        steps += [_under(directory, FIRST_LAUNCH)] if errors & _FIRST_LAUNCH_ERRORS else []
        needs_metal = recipe.host.metal_compiler == "required" and not chosen.metal_standards
        metal = needs_metal and _major(chosen.version) >= _COMPONENT
        return (*steps, *([_under(directory, DOWNLOAD_METAL)] if metal else []))
    there = _there(host)
    if "license_not_agreed" in errors and there:
        # Which Xcode it is, it says only once the licence is agreed to.
        return (_under(None if _is_chosen(host, there[0]) else there[0], ACCEPT_LICENSE), "nox -s doctor")
    least = max(recipe.host.xcode, LEAST_XCODE, key=_numbers)
    wanted = recipe.host.xcode_official or least
    page = f"{XCODE_LINK.partition('?')[0]}?q={quote(f'Xcode {wanted}')}"
    place = f"/Applications/Xcode_{wanted}.app/Contents/Developer"
    newer = "or newer" if wanted == least else f"{least} or newer will do"
    steps = [
        f"install Xcode {wanted} ({newer}, where this macOS runs it): {page}",
        f"xip --expand Xcode_{wanted}.xip && mv Xcode.app /Applications/Xcode_{wanted}.app",
        _under(place, ACCEPT_LICENSE),
        _under(place, FIRST_LAUNCH),
    ]
    if recipe.host.metal_compiler == "required" and _major(wanted) >= _COMPONENT:
        steps.append(_under(place, DOWNLOAD_METAL))
    return tuple(steps)


def workable(findings: Iterable[Finding], host: Host, recipe: Recipe) -> Iterator[Finding]:
    """Yield the findings with fixes that can work on this host; what several tools said of one cause is said once."""
    seen: set[str] = set()
    there = _there(host)
    for finding in findings:
        if finding.level == "blocker" and finding.id in _ONCE:
            if finding.id in seen:
                continue
            seen.add(finding.id)
        fix = finding.fix or ""
        if finding.level != "blocker":
            yield finding
            continue
        if USUAL in fix and there and USUAL not in there:
            fix = fix.replace(USUAL, shlex.quote(there[0]))
        elif (USUAL in fix and not there) or INSTALL_CLT in fix:
            steps = xcode_steps(host, recipe)
            more = f" ({len(steps)} steps, listed above)" if len(steps) > 1 else ""
            fix = f"{steps[0]}{more}" if steps else fix
        yield finding if fix == (finding.fix or "") else replace(finding, fix=fix)


def _under(directory: str | None, command: str) -> str:
    """Return a command for an Xcode that the machine has not chosen; sudo passes no variable on by itself."""
    if directory is None:
        return command
    chosen = f"env DEVELOPER_DIR={shlex.quote(directory)}"
    return f"sudo {chosen} {command.removeprefix('sudo ')}" if command.startswith("sudo ") else f"{chosen} {command}"


def _there(host: Host) -> list[str]:
    """Return the developer directory of each Xcode that is known to be there, usable or not, the chosen one first."""
    chosen = str(host.first("developer_dir", "xcode-select") or "")
    found = [chosen] if ".app/" in chosen and "Command" not in chosen and not _is_gone(host) else []
    found += [xcode.developer_dir for xcode in host.xcodes if xcode.developer_dir]
    found += [f"{entry['path']}/Contents/Developer" for entries in host.every("xcodes") for entry in entries]
    return list(dict.fromkeys(found))


def _is_gone(host: Host) -> bool:
    return "active_developer_path_does_not_exist" in set(host.every("error"))


def _is_chosen(host: Host, directory: str) -> bool:
    return str(host.first("developer_dir", "xcode-select")) == directory


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _major(version: str) -> int:
    return _numbers(version)[0]
