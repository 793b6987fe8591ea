"""Recipe + Prober -> Host: this machine can build the recipe, or every reason why not at once."""

from __future__ import annotations

from dataclasses import replace

from mps_build.common.errors import HostError
from mps_build.common.recipe.model import Recipe
from mps_build.host.host import Host, observe
from mps_build.host.probes.probers import Prober
from mps_build.host.requirements.inspect import inspect
from mps_build.host.requirements.way import way_to_build
from mps_build.host.requirements.xcode import choose_xcode


def check_host(recipe: Recipe, prober: Prober) -> Host:
    """Return the host, its `xcode` being the one to build this recipe with (by DEVELOPER_DIR).

    What only hinders *using* MPS here (a virtual GPU, a macOS below the floor of the wheel) does not stop a build.

    Raises:
        HostError: with every reason; `document` holds host, blockers and findings.
    """
    host = observe(prober)
    refusal = refusal_of(host, recipe)
    if refusal is not None:
        raise refusal
    return replace(host, xcode=choose_xcode(host, recipe))


def refusal_of(host: Host, recipe: Recipe) -> HostError | None:
    """Return why this host cannot build the recipe, with every reason; None where it can."""
    findings = inspect(host, recipe)
    stopping = [finding for finding in findings if finding.level == "blocker" and "build" in finding.stops]
    if not stopping:
        return None
    fixes = [finding.fix for finding in stopping]
    said = [
        f"  {finding.what}: {finding.found}; required: {finding.wanted}"
        # One fix for several findings is said once, below the last of them.
        + (f"\n    fix: {finding.fix}" if finding.fix not in fixes[place + 1 :] else "")
        for place, finding in enumerate(stopping)
    ]
    way = way_to_build(host, recipe, findings)
    if way:
        said += ["to build it here, in this order:", *(f"  {number}. {step}" for number, step in enumerate(way, 1))]
    return HostError(
        "\n".join([f"this host cannot build {recipe.name}:", *said]),
        hint=f"nox -s doctor -- {recipe.name} shows every check"
        + ("" if host.system == "Darwin" else "; on this system: nox -s build_wheel -- sample"),
        document={
            "host": host.document(),
            "blockers": list(dict.fromkeys(finding.id for finding in stopping)),
            "findings": [finding.document() for finding in findings],
            "way": list(way),
        },
    )
