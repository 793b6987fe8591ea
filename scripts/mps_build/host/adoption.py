"""A recording that somebody sent, on its way into the tests: it names nobody, and all of it is understood."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mps_build.common.recipe.model import Recipe
from mps_build.common.scrubbing.identifiers import MACHINE
from mps_build.common.scrubbing.secrets import SECRETS, kinds_in

from .host import Host, observe
from .probes.probers import RecordedProber
from .probes.recording import Recording, recording_of
from .requirements.inspect import blockers, inspect, warnings


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOver:
    """Something in a recording that names a person or a machine."""

    kind: str
    argv: tuple[str, ...]
    line: str


def left_over(document: Mapping[str, Any]) -> tuple[LeftOver, ...]:
    """Return what is still in a recording, line by line; nothing that only its owner could know."""
    found = []
    for probe in document["probes"]:
        texts = [*map(str, probe.get("argv", ())), str(probe.get("stdout") or ""), str(probe.get("stderr") or "")]
        for line in (line for text in texts for line in text.splitlines()):
            if kinds := kinds_in(line, (*SECRETS, *MACHINE)):
                found.append(LeftOver(kind=kinds[0], argv=tuple(map(str, probe.get("argv", ()))), line=line.strip()))
    return tuple(found)


# What an expectation states of a host; the words of `Host.document`.
STATED = ("macos", "chip", "virtual", "rosetta", "gpu_cores", "memory_gb")
# Where a record of a verification, or a receipt, holds the host's recording.
_HOLDERS = ("host_recording", "recording")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """A recording, what it tells, and the argvs whose answers no parser understands."""

    recording: Recording
    host: Host
    not_understood: tuple[tuple[str, ...], ...]


def recording_in(document: Any, *, name: str) -> dict[str, Any]:
    """Return the recording in a document: the document itself, or the part of a record that holds it."""
    if isinstance(document, dict) and "probes" not in document:
        # A receipt holds it beside the host, a record of verify_mps inside it.
        places = [each for each in (document, document.get("host")) if isinstance(each, dict)]
        held = [place[key] for place in places for key in _HOLDERS if isinstance(place.get(key), dict)]
        document = held[0] if held else document
    recording_of(document, name=name)
    return dict(document)


def faults_of(document: Mapping[str, Any]) -> tuple[str, ...]:
    """Return every line that still names a person or a machine, with what it names."""
    return tuple(f"{found.kind}: {found.line}   (answer of `{' '.join(found.argv)}`)" for found in left_over(document))


def adopt(document: Mapping[str, Any], *, name: str) -> Adoption:
    """Return what a scrubbed recording tells."""
    recording = recording_of(document, name=name)
    host = observe(RecordedProber(recording))
    unread = tuple(row.argv for row in host.observations if row.facts.get("not_understood") and row.text)
    return Adoption(recording=recording, host=host, not_understood=unread)


def expectation_of(adoption: Adoption, recipe: Recipe) -> dict[str, Any]:
    """Return what our rules make of the host, for a person to confirm."""
    findings = inspect(adoption.host, recipe)
    known = adoption.host.document()
    return {
        "confirmed": False,
        "recipe": recipe.name,
        **{key: known[key] for key in STATED},
        "blockers": blockers(findings),
        "warnings": warnings(findings),
        "not_understood": [list(argv) for argv in adoption.not_understood],
    }


def file_stem(host: Host) -> str:
    """Return a name for the files of a recording: chip, macOS, Xcode.

    >>> from .probes.recording import RecordedProbe
    >>> answer = RecordedProbe(argv=("sw_vers", "-productVersion"), stdout="14.6.1\\n", exit=0)
    >>> file_stem(observe(RecordedProber(Recording(probes=(answer,)))))
    'chip-unknown-macos-14.6.1'
    """
    xcode = f"-xcode-{host.xcode.version}" if host.xcode else ""
    words = f"{host.chip or 'chip-unknown'}-macos-{host.macos or 'unknown'}{xcode}"
    return re.sub(r"[^a-z0-9.]+", "-", words.lower().removeprefix("apple ")).strip("-")
