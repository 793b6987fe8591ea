"""Check a downloaded wheel against its receipt, its attestation and the recipe's pins.

No network is used.

Beside the wheel must lie WHEEL.receipt.json and WHEEL.sigstore.json. --repository OWNER/NAME is the
repository whose workflow must have signed it. Each claim is printed with what was found; the exit status is 0 if all of
them hold, 9 if one does not.

What this shows: this very file was signed by that repository's workflow on GitHub, and its receipt agrees with
the recipe. What it cannot show: that the Mac which built it did what the receipt says. docs/fleet/publishing.md.
"""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.console import Console
from mps_build.common.errors import AuditRejected, UsageError
from mps_build.common.files import fault_of
from mps_build.common.receipts import fingerprint
from mps_build.common.recipe.catalogue import find_recipe, patches_root
from mps_build.common.reporting import Result
from mps_build.publish.provenance.attestation import ISSUER, PREDICATE, check_chain, check_libraries, read_attestation
from mps_build.publish.provenance.claims import Check, is_trusted_ref, read_receipt, recipe_checks, wheel_checks

_ATTESTED = "an attestation lies beside the wheel"
TASK = ("publish", 2)
FIRST = ("--repository", "--recipe", "--ref", "--bundle", "--without-attestation")
EXITS = (9,)
EXTRA = "provenance"
DOCUMENT = "wheel:string attestation_checked:boolean checks:array"
EXAMPLES = (
    "torch-2.6.0+mps.g1eba9b3-cp311-cp311-macosx_13_0_arm64.whl --repository owner/mps-wheels",
    "wheelhouse/torch-2.6.0+mps.g1eba9b3-cp311-cp311-macosx_13_0_arm64.whl --without-attestation",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the command line says."""

    wheel: Path
    repository: str | None
    workflow: str
    signer_repository: str | None
    ref: str | None
    receipt: Path | None
    bundle: Path | None
    trusted_root: Path | None
    recipe: str | None
    commit: str | None
    without_attestation: bool


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments and options to its parser."""
    parser.add_argument("wheel", metavar="WHEEL", type=Path, help="the downloaded .whl file")
    parser.add_argument("--repository", metavar="OWNER/NAME", help="the repository whose workflow must have signed it")
    parser.add_argument("--workflow", metavar="FILE", default="release.yml", help="which one (default: release.yml)")
    parser.add_argument(
        "--signer-repository", metavar="OWNER/NAME", help="the repository of the workflow, if it is a reusable one"
    )
    parser.add_argument(
        "--ref", metavar="REF", help="the ref at which it must have signed (default: refs/heads/main, refs/tags/v*)"
    )
    parser.add_argument("--receipt", metavar="FILE", type=Path, help="default: WHEEL.receipt.json")
    parser.add_argument("--bundle", metavar="FILE", type=Path, help="default: WHEEL.sigstore.json")
    parser.add_argument("--trusted-root", metavar="FILE", type=Path, help="another trusted root than Sigstore's own")
    parser.add_argument(
        "--recipe", metavar="RECIPE", help="the recipe to check against (default: the one that the receipt names)"
    )
    parser.add_argument(
        "--commit", metavar="SHA", help="the commit that the wheel must be built from (nightlies pin none)"
    )
    parser.add_argument("--without-attestation", action="store_true", help="do not check a signature")


def run(options: Options, console: Console) -> Result:
    """Check each claim and print it; the exit status is 9 if one does not hold."""
    wheel: Path = options.wheel
    _check_files(options)
    if options.repository is None and not options.without_attestation:
        raise UsageError(
            "no signer is named: give --repository OWNER/NAME",
            hint="a signature proves nothing without a known signer; --without-attestation checks the rest only",
        )
    for name in ("repository", "signer_repository"):
        value = getattr(options, name)
        if value is not None and not re.fullmatch(r"[\w.-]+/[\w.-]+", value):
            raise UsageError(f"--{name.replace('_', '-')} {value!r} is not OWNER/NAME")
    if not options.without_attestation and _bundle(options).exists():
        check_libraries()
    receipt = read_receipt(wheel, options.receipt or wheel.with_name(f"{wheel.name}.receipt.json"))
    checks = wheel_checks(wheel, receipt)
    recipe = find_recipe(options.recipe or _recipe_name(receipt))
    checks += recipe_checks(receipt, recipe, patches_root=patches_root(), commit=options.commit)
    if not options.without_attestation:
        checks += _attestation_checks(options, wheel)
    return _summary(checks, options, console)


def _summary(checks: list[Check], options: Options, console: Console) -> Result:
    console.table(("", "claim", "found"), [("ok" if each.holds else "NO", each.claim, each.found) for each in checks])
    console.print()
    failed = [each for each in checks if not each.holds]
    if options.without_attestation:
        console.warn("no signature was checked: anybody may have written this receipt")
    document: dict[str, Any] = {
        "wheel": str(options.wheel),
        "attestation_checked": not options.without_attestation,
        "checks": [{"claim": each.claim, "holds": each.holds, "found": each.found} for each in checks],
    }
    if not failed:
        console.print(f"all {len(checks)} claims hold", style="bold")
        return Result(document=document)
    return Result(
        document={**document, "error": f"{len(failed)} of {len(checks)} claims do not hold: {failed[0].claim}"},
        exit_code=AuditRejected.exit_code,
        cause="provenance",
        hint=_hint(failed),
    )


def _hint(failed: list[Check]) -> str:
    """Return what to do; a wheel that its user has just built has no attestation, which says nothing against it."""
    if [each.claim for each in failed] == [_ATTESTED]:
        return (
            "of a wheel that you built yourself, --without-attestation checks the rest; "
            "of a downloaded one, do not trust it before its .sigstore.json is here"
        )
    return "do not install it; build it yourself (`nox -s build_wheel`), or ask whoever published it"


def _check_files(options: Options) -> None:
    """Refuse what is named and is not a file: the library that reads the trusted root would wait for a pipe."""
    for path in filter(None, (options.wheel, options.receipt, options.bundle, options.trusted_root)):
        fault = fault_of(path)
        if fault and (path.exists() or path == options.wheel):  # what else is missing is said where it is needed
            raise UsageError(f"{path}: {fault}", hint="give the file's path")


def _bundle(options: Options) -> Path:
    return options.bundle or options.wheel.with_name(f"{options.wheel.name}.sigstore.json")


def _attestation_checks(options: Options, wheel: Path) -> list[Check]:
    """Return what the bundle shows; a missing one is a claim that does not hold."""
    bundle = _bundle(options)
    if not bundle.exists():
        return [Check(claim=_ATTESTED, holds=False, found=f"no {bundle.name}")]
    attestation = read_attestation(bundle)
    digest, identity = fingerprint(wheel)["sha256"], attestation.identity
    names = [name for sha256, name in attestation.subjects if sha256 == digest]
    signer = options.signer_repository or options.repository
    workflow = f"https://github.com/{signer}/.github/workflows/{options.workflow}@"
    # The workflow's own ref, and the ref of the repository that it ran for.
    refs = (identity.get("signer", "").rpartition("@")[2], identity.get("ref", ""))
    checks = [
        Check(claim="it attests this wheel", holds=bool(names), found=names[0] if names else "other files"),
        Check(claim="it is SLSA provenance", holds=attestation.predicate == PREDICATE, found=attestation.predicate),
        Check(
            claim="GitHub's identity signed it", holds=identity.get("issuer") == ISSUER, found=_of(identity, "issuer")
        ),
        Check(
            claim=f"for {options.repository}",
            holds=identity.get("repository") == f"https://github.com/{options.repository}",
            found=_of(identity, "repository"),
        ),
        Check(
            claim=f"by {options.workflow} of {signer}",
            holds=identity.get("signer", "").startswith(workflow)
            and all(is_trusted_ref(ref, wanted=options.ref) for ref in refs),
            found=f"{_of(identity, 'signer')} for {_of(identity, 'ref')}; wanted: "
            f"{options.ref or 'refs/heads/main or refs/tags/v*'}",
        ),
        Check(
            claim="on a hosted runner, not on a self-hosted Mac",
            holds=identity.get("runner") == "github-hosted",
            found=_of(identity, "runner"),
        ),
        Check(
            claim="the certificate's key signed it", holds=attestation.signature_holds, found="ECDSA over the envelope"
        ),
    ]
    assert options.repository is not None
    try:
        check_chain(bundle, repository=options.repository, trusted_root=options.trusted_root)
    except UsageError as error:
        return [*checks, Check(claim="Sigstore's root and log confirm it", holds=False, found=str(error))]
    return [*checks, Check(claim="Sigstore's root and log confirm it", holds=True, found="checked offline")]


def _of(identity: dict[str, str], name: str) -> str:
    return identity.get(name, "unknown")


def _recipe_name(receipt: dict[str, Any]) -> str:
    version = str(receipt["recipe"].get("version", ""))
    return version if version[:1].isalpha() else f"v{version}"
