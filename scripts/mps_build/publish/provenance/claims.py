"""A wheel, its receipt, its bill of materials and the recipe's pins, one against the other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mps_build.common.errors import UsageError, reason_of
from mps_build.common.json_text import parse_json, read_json
from mps_build.common.receipts import fingerprint
from mps_build.common.recipe.model import Recipe
from mps_build.common.wheels.wheel_file import UnsoundWheel, open_wheel

_GIT_VERSION = re.compile(r"^git_version\s*=\s*'([0-9a-f]{40})'", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One claim that was looked at, with what was found."""

    claim: str
    holds: bool
    found: str


def is_trusted_ref(ref: str, *, wanted: str | None) -> bool:
    """Tell whether a workflow at this ref may sign: the default branch and releases' tags, or the one that is named.

    Whoever can push a branch can put any release.yml on it, and run it there.

    >>> is_trusted_ref("refs/heads/main", wanted=None), is_trusted_ref("refs/heads/evil", wanted=None)
    (True, False)
    """
    if wanted is not None:
        return ref == wanted
    return ref == "refs/heads/main" or re.fullmatch(r"refs/tags/v[\w.+-]+", ref) is not None


def read_receipt(wheel: Path, receipt: Path) -> dict[str, Any]:
    """Return the receipt.

    Raises:
        UsageError: there is none, or it is none.
    """
    try:
        document = read_json(receipt)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{receipt} cannot be read: {reason_of(error)}",
            hint=f"download it from beside the wheel: {wheel.name}.receipt.json",
        ) from error
    wanted = {"wheel": dict, "recipe": dict, "patches": dict, "submodules": dict, "dirty": list, "profile": str}
    wrong = [
        key for key, kind in wanted.items() if not isinstance(document, dict) or not isinstance(document.get(key), kind)
    ]
    if wrong:
        raise UsageError(f"{receipt} is not a receipt of build_wheel: it lacks {', '.join(wrong)}")
    return dict(document)


def wheel_checks(wheel: Path, receipt: Mapping[str, Any]) -> list[Check]:
    """Hold the file, and what is inside, against the receipt."""
    wheel_row, printed = receipt["wheel"], fingerprint(wheel)
    checks = [
        Check(
            claim="the receipt is this wheel's",
            holds=wheel_row.get("file") == wheel.name,
            found=str(wheel_row.get("file")),
        ),
        Check(
            claim="the wheel's sha256 is the receipt's",
            holds=wheel_row.get("sha256") == printed["sha256"],
            found=printed["sha256"],
        ),
    ]
    try:
        with open_wheel(wheel) as archive:
            names = archive.names
            bills = [name for name in names if name.endswith(".dist-info/sboms/mps-build.cdx.json")]
            bill = parse_json(archive.read(bills[0])) if len(bills) == 1 else None
            version = archive.read("torch/version.py").decode("utf-8", "replace") if "torch/version.py" in names else ""
    except (OSError, UnsoundWheel, ValueError) as error:
        raise UsageError(f"{wheel} cannot be read: {reason_of(error)}", hint="download it again") from error
    checks += _bill_checks(bill, receipt)
    if version:
        match = _GIT_VERSION.search(version)
        found = match[1] if match else "no commit"
        checks.append(
            Check(
                claim="torch/version.py names the receipt's commit", holds=found == receipt.get("commit"), found=found
            )
        )
    return checks


def _bill_checks(bill: object, receipt: Mapping[str, Any]) -> list[Check]:
    try:
        return _checks_of_bill(bill, receipt)
    except (AttributeError, KeyError, TypeError):
        found = "none" if bill is None else "not one of build_wheel"
        return [Check(claim="the wheel holds its bill of materials", holds=False, found=found)]


def _checks_of_bill(bill: Any, receipt: Mapping[str, Any]) -> list[Check]:
    subject = bill.get("metadata", {}).get("component", {})
    properties = {each.get("name"): each.get("value") for each in subject.get("properties", [])}
    commit = properties.get("mps-build:commit")
    submodules = {
        each["name"]: each["version"]
        for each in bill.get("components", [])
        if str(each.get("bom-ref", "")).startswith("submodule:")
    }
    notes = subject.get("pedigree", {}).get("notes", "")
    patches = dict(re.findall(r"(?<!\S)(\S+) sha256:([0-9a-f]{64})", notes))
    return [
        Check(
            claim="its bill of materials names the receipt's commit",
            holds=commit == (receipt.get("commit") or "unknown"),
            found=str(commit),
        ),
        Check(
            claim="its bill of materials names the receipt's submodules",
            holds=submodules == receipt["submodules"],
            found=f"{len(submodules)} submodules",
        ),
        Check(
            claim="its bill of materials names the receipt's patches",
            holds=patches == receipt["patches"],
            found=", ".join(patches) or "no patch",
        ),
    ]


def recipe_checks(receipt: Mapping[str, Any], recipe: Recipe, *, patches_root: Path, commit: str | None) -> list[Check]:
    """Hold the receipt against the recipe as it stands here; `commit` is requested where the recipe pins none."""
    pinned = commit or recipe.commit
    ours = recipe.model_dump(mode="json")
    theirs = receipt["recipe"]
    changed = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
    patches = {name: fingerprint(patches_root / name)["sha256"] for name in recipe.patches}
    return [
        Check(
            claim=f"built from the commit that {'you name' if commit else recipe.name + ' pins'}",
            holds=pinned is not None and receipt.get("commit") == pinned,
            found=str(receipt.get("commit")),
        ),
        Check(
            claim=f"built by {recipe.name} as it stands here",
            holds=not changed,
            found=f"differs in {', '.join(changed)}" if changed else "equal",
        ),
        Check(
            claim="with exactly the recipe's patches",
            holds=receipt["patches"] == patches,
            found=", ".join(receipt["patches"]) or "no patch",
        ),
        Check(
            claim="from a source tree without local changes",
            holds=not receipt["dirty"],
            found=f"{len(receipt['dirty'])} changed files" if receipt["dirty"] else "clean",
        ),
        Check(
            claim="as a release, with no requirement lifted and no setting changed",
            # A receipt that does not tell them proves nothing about them.
            holds=receipt["profile"] == "release" and receipt.get("lifted") == [] and receipt.get("settings") == {},
            found=_deviations(receipt),
        ),
    ]


def _deviations(receipt: Mapping[str, Any]) -> str:
    values = [str(receipt["profile"])]
    for key in ("lifted", "settings"):
        value = receipt.get(key)
        values += [f"{key} not stated"] if not isinstance(value, (list, dict)) else map(str, value)
    return " ".join(values)
