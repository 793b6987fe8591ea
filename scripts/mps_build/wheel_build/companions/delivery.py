"""Companions that were tried -> wheelhouse: each with its receipt, and constraints.txt, which pins the set."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build import __version__
from mps_build.common.errors import UsageError
from mps_build.common.files import write_whole
from mps_build.common.json_text import head
from mps_build.common.receipts import Ledger, StepResult, fingerprint
from mps_build.common.scrubbing.scrubber import without_secrets
from mps_build.common.wheels.wheel_file import COMPANIONS, MatchedSet, WheelFile, matched_sets, read_wheel

from ..steps.finish_wheel import deliver_wheel
from .build import Companion
from .plan import CompanionPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveredSet:
    """The wheels in the wheelhouse, and the pins that lie beside them."""

    wheels: Mapping[str, Path]
    constraints: Path
    text: str


def deliver_companions(
    plan: CompanionPlan, companions: Sequence[Companion], tried: Mapping[str, Any], *, ledger: Ledger
) -> DeliveredSet:
    """Copy the wheels to the wheelhouse and write the pins of all that fit this torch, earlier companions too."""
    wheels = {each.source.name: plan.wheelhouse / each.wheel.path.name for each in companions}

    def put() -> StepResult:
        made = []
        for each in companions:
            destination = wheels[each.source.name]
            delivered = deliver_wheel(each.wheel, destination)
            beside = destination.with_name(f"{destination.name}.receipt.json")
            document = _receipt(plan, each, tried)
            write_whole(beside, json.dumps(without_secrets(document), indent=2, ensure_ascii=False) + "\n")
            made += [delivered.path, beside]
        return StepResult(files=tuple(made))

    inputs = {
        "wheels": {each.source.name: each.wheel.sha256 for each in companions},
        "tried": dict(tried),
        "wheelhouse": str(plan.wheelhouse),
    }
    key = f"{'-'.join(wheels)}-{plan.torch.python}"
    ledger.run("deliver", version=1, inputs=inputs, action=put, key=key)
    matched = matching_set(plan, tuple(wheels.values()))
    constraints = plan.wheelhouse / "constraints.txt"
    kept = plan.wheelhouse / f"{matched.id}.constraints.txt"
    for path in (kept, constraints):
        write_whole(path, matched.constraints())
    return DeliveredSet(wheels=wheels, constraints=constraints, text=matched.constraints())


def matching_set(plan: CompanionPlan, fresh: Sequence[Path]) -> MatchedSet:
    """Return this torch with the companions in the wheelhouse that pin it: the fresh ones, and what was there."""
    torch = read_wheel(plan.torch.path)
    found: list[WheelFile] = []
    for name in COMPANIONS:
        of_it = [path for path in fresh if path.name.startswith(f"{name}-")]
        for path in of_it or sorted(plan.wheelhouse.glob(f"{name}-*.whl")):
            try:
                found.append(read_wheel(path))
            except UsageError:
                if path in fresh:
                    raise
                continue  # publish_index tells what is wrong with an old one; it is not pinned here
    sets, _ = matched_sets([torch, *found])
    return sets[0]


def _receipt(plan: CompanionPlan, companion: Companion, tried: Mapping[str, Any]) -> dict[str, Any]:
    source, wheel = companion.source, companion.wheel
    return {
        **head("companion_receipt"),
        "tool": f"mps-build {__version__}",
        "wheel": {"file": wheel.path.name, "size": wheel.size, "sha256": wheel.sha256},
        "companion": source.name,
        "version": companion.version,
        "of_recipe": plan.recipe.name,
        "torch": {
            "file": plan.torch.path.name,
            "version": plan.torch.version,
            "sha256": fingerprint(plan.torch.path)["sha256"],
        },
        "source": {
            "kind": plan.sources[source.name].kind,
            "origin": source.origin,
            "commit": source.commit,
            "dirty": list(source.dirty),
            "digest": source.digest,
        },
        "python": plan.torch.python,
        "settings": dict(plan.settings),
        "environment": {name: companion.environ[name] for name in sorted(companion.reasons)},
        "reasons": dict(sorted(companion.reasons.items())),
        "toolchain": dict(plan.toolchain.facts),
        "audit": {name: companion.audit[name] for name in ("profile", "kind", "verdict", "findings", "excused")},
        "tried": {"torch": tried.get("torch"), source.name: tried.get(source.name)},
    }
