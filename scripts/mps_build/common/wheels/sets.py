"""Which wheels belong together: one torch, and the companions built for exactly it, for one Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from packaging.requirements import Requirement

from ..errors import UsageError
from .wheel_file import WheelFile

_OF_ONE_PYTHON = re.compile(r".+-cp3(\d{1,3})-(?:cp3\1[mt]?|none)-[^-]+\.whl")  # none: the official ones for macOS
_CPYTHON = re.compile(r"cp3(\d{1,3})[mt]?")
COMPANIONS = ("torchvision", "torchaudio")


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedSet:
    """One torch with its companions; its index holds nothing else, so nothing else can be mixed in."""

    torch: WheelFile
    companions: tuple[WheelFile, ...]

    @property
    def id(self) -> str:
        """The name of its folder: letters that need no escape in an address."""
        return f"torch-{str(self.torch.version).replace('+', '-')}-{self.torch.interpreter}"

    @property
    def wheels(self) -> tuple[WheelFile, ...]:
        """All wheels of the set, torch first."""
        return (self.torch, *self.companions)

    def constraints(self) -> str:
        """Return the pins, for `pip install -c`."""
        return "".join(f"{wheel.name}=={wheel.version}\n" for wheel in self.wheels)

    def requirements(self) -> str:
        """Return the pins with their hashes, for `pip install --no-deps -r`: pip then takes no other file."""
        return "".join(f"{wheel.name}=={wheel.version} --hash=sha256:{wheel.sha256}\n" for wheel in self.wheels)

    def dependencies(self) -> str:
        """Return what the set needs from elsewhere, less the set's own members and extras."""
        own = {wheel.name for wheel in self.wheels}
        needed = {
            str(requirement)
            for wheel in self.wheels
            for requirement in wheel.requirements
            if requirement.name not in own and not _is_extra(requirement)
        }
        return "".join(f"{each}\n" for each in sorted(needed))


def matched_sets(wheels: Sequence[WheelFile]) -> tuple[tuple[MatchedSet, ...], tuple[str, ...]]:
    """Return the sets, and a line for each companion that belongs to none or to several.

    A companion belongs to the torch that its own metadata pins (torch==2.6.0, or a local version of it),
    for the same Python. One that fits several builds of one version (two commits) goes into no set:
    its C++ was compiled for one of them, and its name does not tell which.

    Raises:
        UsageError: a torch is not for one version of CPython alone, as every torch is.
    """
    torches = [wheel for wheel in wheels if wheel.name == "torch"]
    if wrong := [wheel.file for wheel in torches if not _OF_ONE_PYTHON.fullmatch(wheel.file)]:
        raise UsageError(
            f"not a torch for one version of CPython (cp312-cp312, cp313-cp313t, cp312-none): {', '.join(wrong)}",
            hint="torch is built for each version; take these wheels out of the folder, or build them again",
        )
    members: dict[str, list[WheelFile]] = {torch.file: [] for torch in torches}
    notes = []
    for wheel in wheels:
        if wheel.name not in COMPANIONS:
            continue
        fitting = [torch for torch in torches if _built_for(wheel, torch)]
        if len(fitting) == 1:
            members[fitting[0].file].append(wheel)
        elif fitting:
            notes.append(f"{wheel.file} fits {len(fitting)} torches: {', '.join(torch.file for torch in fitting)}")
        else:
            notes.append(f"{wheel.file} pins no torch that is here for {wheel.interpreter}")
    sets, crowded = [], []
    for torch in torches:
        newest = {wheel.name: wheel for wheel in sorted(members[torch.file], key=lambda each: each.version)}
        crowded += [
            f"{wheel.file} is older than {newest[wheel.name].file}, which the set has"
            for wheel in members[torch.file]
            if newest[wheel.name] is not wheel
        ]
        sets.append(MatchedSet(torch=torch, companions=tuple(newest[name] for name in COMPANIONS if name in newest)))
    return tuple(sets), (*notes, *crowded)


def _built_for(companion: WheelFile, torch: WheelFile) -> bool:
    pins = [each for each in companion.requirements if each.name == "torch" and not _is_extra(each)]
    exact = [each for each in pins if any(clause.operator in ("==", "===") for clause in each.specifier)]
    return (
        bool(exact)
        and _runs_on(companion, torch)
        and all(each.specifier.contains(torch.version, prereleases=True) for each in exact)
    )


def _runs_on(companion: WheelFile, torch: WheelFile) -> bool:
    """True for the same Python, and for a wheel of no Python in particular (torchvision from 0.29: py3-none)."""
    if companion.interpreter == torch.interpreter or any(tag.interpreter == "py3" for tag in companion.tags):
        return True
    wanted = _CPYTHON.fullmatch(torch.interpreter)
    if wanted is None or torch.interpreter.endswith("t"):
        return False
    matches = (_CPYTHON.fullmatch(tag.interpreter) for tag in companion.tags if tag.abi == "abi3")
    return any(int(match[1]) <= int(wanted[1]) for match in matches if match)


def _is_extra(requirement: Requirement) -> bool:
    return requirement.marker is not None and "extra" in str(requirement.marker)
