"""Taking out of a recording what names a person or a machine, and finding what was left in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from mps_build import __version__
from mps_build.common.scrubbing.identifiers import MACHINE, Identity
from mps_build.common.scrubbing.scrubber import Scrubber
from mps_build.common.scrubbing.secrets import SECRETS, kinds_in, take_out

from ..probes.probers import Prober
from .recording import recording_document


def scrub(document: Mapping[str, Any], identity: Identity) -> tuple[dict[str, Any], Counter[str]]:
    """Return a recording's document without what names anybody, and how often each kind was taken out."""
    secrets = Scrubber()
    removed: Counter[str] = secrets.removed

    def clean(text: str) -> str:
        return take_out(identity.take_out(secrets.text(text), removed), MACHINE, removed)

    probes = [
        {**probe, "argv": [clean(word) for word in secrets.value(list(probe["argv"]))]}
        | {key: clean(probe.get(key) or "") for key in ("stdout", "stderr")}
        for probe in document["probes"]
    ]
    return {**document, "probes": probes}, +removed


def recorded(prober: Prober, *, identity: Identity | None = None) -> tuple[dict[str, Any], Counter[str]]:
    """Return all that a prober's host answered, scrubbed, as a recording's document, and what was taken out."""
    document = recording_document(
        (answer for answer, _ in prober.answers()),
        recorded_on=datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        tool=f"mps-build {__version__}",
    )
    return scrub(document, identity or Identity.of_this_machine())


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
