"""All recipes on one host: which can be built, with which Xcode, and what one installation would unlock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from mps_build.common.recipe.model import Recipe

from ..host import Host
from ..installed_xcodes import Xcode
from .inspect import blockers, inspect
from .xcode import choose_xcode

# The macOS SDK of each Xcode that official wheels were made with (docs/host/recorded_macs.md).
_SDK_OF = {
    "13.3.1": "12.3",
    "13.4.1": "12.3",
    "14.0.1": "12.3",
    "14.3.1": "13.3",
    "15.4": "14.5",
    "26.4": "26.4",
    "26.5": "26.5",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Buildability:
    """One recipe on a host: what stops the build, if anything, and the Xcode it would take."""

    recipe: str
    blockers: tuple[str, ...]
    xcode: str | None
    developer_dir: str | None

    def document(self) -> dict[str, Any]:
        """Return the row of `doctor --all --json`; `builds` is true without blockers."""
        return {**asdict(self), "blockers": list(self.blockers), "builds": not self.blockers}


def buildability_of(host: Host, recipes: Sequence[Recipe]) -> tuple[Buildability, ...]:
    """Return each recipe's buildability, in the order given."""
    rows = []
    for recipe in recipes:
        xcode = choose_xcode(host, recipe) if host.system == "Darwin" else None
        rows.append(
            Buildability(
                recipe=recipe.name,
                blockers=tuple(blockers(inspect(host, recipe), stops="build")),
                xcode=xcode.version if xcode else None,
                developer_dir=xcode.developer_dir if xcode else None,
            )
        )
    return tuple(rows)


def unlocked_by(host: Host, recipes: Sequence[Recipe]) -> dict[str, list[str]]:
    """Return what further recipes one installation would make buildable: the same rules on a host that had it.

    Whether an old Xcode still starts on a new macOS is in no record: that must be tried.
    """
    if host.system != "Darwin":
        return {}
    stopped = [recipe for recipe in recipes if blockers(inspect(host, recipe), stops="build")]
    alike: dict[tuple[str, ...], list[str]] = {}
    for what, better in _better_hosts(host):
        names = tuple(recipe.name for recipe in stopped if not blockers(inspect(better, recipe), stops="build"))
        if names:
            alike.setdefault(names, []).append(what)
    return {" or ".join(installations): list(names) for names, installations in alike.items()}


def _better_hosts(host: Host) -> list[tuple[str, Host]]:
    better = []
    for version, sdk in _SDK_OF.items():
        standards = ("3.1", "4.0") if version.startswith("26") else ("3.1",) if version.startswith("15") else ()
        xcode = Xcode(
            version=version,
            build=None,
            beta=False,
            developer_dir=f"/Applications/Xcode_{version}.app/Contents/Developer",
            chosen=False,
            sdk_version=sdk,
            metal_standards=standards,
        )
        component = " with the Metal Toolchain" if version.startswith("26") else ""
        better.append((f"Xcode {version}{component}", replace(host, xcodes=(*host.xcodes, xcode))))
    return better
