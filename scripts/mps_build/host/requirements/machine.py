"""What the machine itself must be: its system, chip, memory, disk, power, session."""

from __future__ import annotations

from collections.abc import Iterator

from mps_build.common.recipe.model import Recipe

from ..host import BYTES_PER_JOB, Host
from .findings import Finding, not_recorded, older

LEAST_MACOS = "12.3"
GIB = 2**30
DISK_LEAST, DISK_WISHED = 10 * GIB, 40 * GIB
MEMORY_LOW_GB = 8

_VM_LINK = "https://docs.github.com/en/actions/reference/runners/github-hosted-runners"
_ROSETTA_LINK = "https://github.com/pytorch/pytorch/issues/98919"


def machine_findings(host: Host, recipe: Recipe) -> Iterator[Finding]:
    """Yield the machine's lines, blockers and warnings in the order of their table in docs/host/recorded_macs.md."""
    yield from _virtual(host)
    yield from _rosetta(host)
    yield from _chip(host)
    yield from _macos(host, recipe)
    yield from resource_findings(host)
    yield from _power(host)
    yield from _session(host)
    yield from _thermal(host)
    yield from _pre_release(host)
    yield from _gpu(host)


def resource_findings(host: Host) -> Iterator[Finding]:
    """Yield disk and memory, which any system's builds need."""
    yield from _disk(host)
    yield from _memory(host)


def _virtual(host: Host) -> Iterator[Finding]:
    what, wanted = "Virtual machine", "a real Mac"
    if host.virtual is True:
        yield Finding(
            id="virtual_gpu",
            level="blocker",
            what=what,
            found="a virtual machine: its GPU is paravirtual",
            wanted=wanted,
            fix="verify on a real Mac; building here is possible",
            link=_VM_LINK,
            stops=("verify",),
        )
    elif host.virtual == "unknown":
        yield Finding(
            id="virtual_unknown",
            level="warning",
            what=what,
            found="unknown",
            wanted=wanted,
            fix="system_profiler SPHardwareDataType",
        )
    else:
        yield Finding(id="virtual", level="ok", what=what, found="no", wanted=wanted)


def _rosetta(host: Host) -> Iterator[Finding]:
    what, wanted = "Rosetta", "a native shell and an arm64 Python"
    if host.rosetta is True:
        yield Finding(
            id="rosetta",
            level="blocker",
            what=what,
            found="the shell or the Python is translated",
            wanted=wanted,
            fix="arch -arm64 zsh, and an arm64 Python: uv python install 3.12 (MPS computes wrongly under Rosetta)",
            link=_ROSETTA_LINK,
        )
    elif host.rosetta == "unknown":
        yield not_recorded("rosetta", what, wanted)
    else:
        yield Finding(id="rosetta", level="ok", what=what, found="no", wanted=wanted)


def _chip(host: Host) -> Iterator[Finding]:
    what, wanted = "Chip", "Apple silicon"
    if host.apple_silicon is False:
        yield Finding(
            id="intel_cpu",
            level="blocker",
            what=what,
            found=host.chip or "Intel",
            wanted=wanted,
            fix="use a Mac with Apple silicon: no arm64 wheel runs here",
            link="https://github.com/pytorch/pytorch/issues/114602",
        )
    elif host.apple_silicon == "unknown":
        yield not_recorded("chip", what, wanted)
    else:
        yield Finding(id="chip", level="ok", what=what, found=host.chip or "Apple, not named", wanted=wanted)


def _macos(host: Host, recipe: Recipe) -> Iterator[Finding]:
    what, update = "macOS", "softwareupdate --list, or a recipe for an older macOS: nox -s doctor -- --all"
    floor, for_build = recipe.mps_floor, max((recipe.host.macos, LEAST_MACOS), key=_version_key)
    wanted = f"{for_build} to build, {floor} for MPS to work"
    # The kernel tells the major version even where nothing prints the rest; 99 is more than any minor.
    major = host.first("macos_major")
    macos = host.macos or (None if major is None else f"{major}.99")
    if macos is None:
        yield not_recorded("macos", what, wanted)
        return
    found = host.macos or f"{major}, by its kernel"
    too_old = False
    if older(macos, floor):
        too_old = True
        yield Finding(
            id="macos_too_old_for_wheel",
            level="blocker",
            what=what,
            found=found,
            wanted=f"{floor}: below it this torch's MPS does not work, whatever its message says",
            fix=update,
            link="https://github.com/pytorch/pytorch/issues/139425",
            stops=("verify",),
        )
    if older(macos, for_build):
        too_old = True
        yield Finding(
            id="macos_too_old_for_recipe",
            level="blocker",
            what=what,
            found=found,
            wanted=f"{for_build}: the Xcode that this recipe needs runs from there on",
            fix=update,
            link="https://developer.apple.com/support/xcode/",
            stops=("build",),
        )
    if not too_old:
        yield Finding(id="macos", level="ok", what=what, found=found, wanted=wanted)


def _version_key(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def _disk(host: Host) -> Iterator[Finding]:
    what, wanted = "Disk", f"{DISK_WISHED // GIB} GiB free"
    if host.free_bytes is None:
        yield not_recorded("disk", what, wanted)
        return
    found = f"{host.free_bytes / GIB:.1f} GiB free"
    fix = "free some space, or set MPS_BUILD_WORK to a folder on another disk"
    if host.free_bytes < DISK_LEAST:
        least = f"{DISK_LEAST // GIB} GiB free at the least, {DISK_WISHED // GIB} for a whole torch"
        yield Finding(id="disk_full", level="blocker", what=what, found=found, wanted=least, fix=fix)
    elif host.free_bytes < DISK_WISHED:
        yield Finding(id="low_disk", level="warning", what=what, found=found, wanted=wanted, fix=fix)
    else:
        yield Finding(id="disk", level="ok", what=what, found=found, wanted=wanted)


def _memory(host: Host) -> Iterator[Finding]:
    what, wanted = "Memory", f"more than {MEMORY_LOW_GB} GB ({BYTES_PER_JOB // GIB} GB a compiler)"
    if host.memory_gb is None:
        yield not_recorded("memory", what, wanted)
        return
    cores = f", {host.cores} cores" if host.cores else ""
    found = f"{host.memory_gb} GB{cores}: {host.jobs} job{'s' if host.jobs > 1 else ''}"
    if host.memory_gb <= MEMORY_LOW_GB:
        yield Finding(
            id="low_memory",
            level="warning",
            what=what,
            found=found,
            wanted=wanted,
            fix="close other programs; the job count follows the memory",
        )
    else:
        yield Finding(id="memory", level="ok", what=what, found=found, wanted=wanted)


def _power(host: Host) -> Iterator[Finding]:
    if host.first("low_power_mode") is True:
        yield Finding(
            id="low_power",
            level="warning",
            what="Power",
            found="low power mode is on",
            wanted="off while timing",
            fix="sudo pmset -a lowpowermode 0",
        )
    if host.first("power_source") == "battery":
        yield Finding(
            id="on_battery",
            level="warning",
            what="Power",
            found="drawing from the battery",
            wanted="on mains power while timing",
            fix="plug in the charger (check with pmset -g batt)",
        )


def _session(host: Host) -> Iterator[Finding]:
    what, wanted = "Session", "one on the screen (Aqua)"
    gui = host.first("gui")
    if gui is False:
        yield Finding(
            id="no_gui_session",
            level="warning",
            what=what,
            found=str(host.first("session") or "none"),
            wanted=wanted,
            fix="only if MPS finds no device: log in at the screen; to check: launchctl managername",
            link="https://github.com/NousResearch/hermes-agent/pull/40983",
        )
    elif gui is True:
        yield Finding(id="session", level="ok", what=what, found="Aqua", wanted=wanted)


def _thermal(host: Host) -> Iterator[Finding]:
    what, wanted = "Temperature", "no throttling while timing"
    throttled, pressure = set(host.every("throttled")), host.first("thermal_pressure")
    if True in throttled:
        limit = host.first("cpu_speed_limit")
        yield Finding(
            id="thermal_throttled",
            level="warning",
            what=what,
            found=f"thermal pressure {pressure} of 4" if pressure else f"throttled to {limit} %",
            wanted=wanted,
            fix="let it cool down: pmset -g thermlog",
        )
    elif False in throttled:
        yield Finding(id="thermal", level="ok", what=what, found="not throttled", wanted=wanted)
    elif "unknown" in throttled:
        # On Apple silicon pmset says so of every healthy Mac; it is worth a warning only where nothing else was read.
        more_is_known = any(call.program == "notifyutil" for row in host.observations for call in row.calls)
        yield Finding(
            id="thermal_unknown",
            level="note" if more_is_known else "warning",
            what=what,
            found="pmset has no record (on Apple silicon it never has)",
            wanted=wanted,
            fix="sudo powermetrics --samplers thermal -n 1",
        )


def _pre_release(host: Host) -> Iterator[Finding]:
    if host.macos_beta is True:
        yield Finding(
            id="macos_beta",
            level="warning",
            what="macOS",
            found=f"a pre-release ({host.build})",
            wanted="a release",
            fix="softwareupdate --list",
        )
    if any(host.every("compat")):
        yield Finding(
            id="compat_version",
            level="warning",
            what="Python",
            found="sees macOS 10.16 or 16.0",
            wanted="a Python built with a current SDK",
            fix="uv python install 3.12",
            link="https://github.com/python/cpython/issues/135675",
        )


def _gpu(host: Host) -> Iterator[Finding]:
    if host.gpu_cores is not None:
        yield Finding(id="gpu", level="ok", what="GPU", found=f"{host.gpu_cores} cores")
    elif host.apple_silicon is not False:
        yield Finding(
            id="gpu_unknown",
            level="warning",
            what="GPU",
            found="no core count seen",
            wanted="an Apple GPU",
            fix="system_profiler SPDisplaysDataType",
        )
