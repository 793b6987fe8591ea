"""Probes that did not answer: never a fact, and no build where the answer is one of its inputs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from ..host import Host
from ..probes.observation import Observation
from ..probes.table import METAL_PROOF, decides
from .findings import Finding

# The proof is a script; a person runs the compiler it calls.
_METAL = ("xcrun", "--sdk", "macosx", "metal", "--version")


def unanswered_findings(host: Host, *, others_matter: bool) -> Iterator[Finding]:
    """Yield each probe that did not answer within its longest limit.

    Args:
        others_matter: the chosen Xcode does not suit, so what another one answers decides.
    """
    for row in host.observations:
        if not row.facts.get("timed_out"):
            continue
        command = shlex.join(_by_hand(row))
        stops = decides(row.argv) and (others_matter or not _of_another_xcode(row))
        yield Finding(
            id="probe_timed_out",
            level="blocker" if stops else "not_recorded",
            what="No answer",
            found=f"`{command}`: {row.text or 'no answer in time'}",
            wanted="an answer in time",
            fix=f"run `{command}` by hand until it answers, then run the same command again",
            stops=("build",),
        )


def _by_hand(row: Observation) -> tuple[str, ...]:
    return (*row.argv[: row.argv.index("sh")], *_METAL) if METAL_PROOF in row.argv else row.argv


def _of_another_xcode(row: Observation) -> bool:
    return row.argv[0] in ("env", "mdfind")
