"""Who judges an answer of a parser against a specimen: the rules of "Judging an answer", as code.

Every key that is given must equal the fact; every key that has a value there must be given, but for
details. `not_understood` is right only where it stands. A text that was cut may say less, never else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mps_build.common import strict_yaml

SPECIMENS = Path(__file__).parents[2] / "recorded" / "specimens"

# May be left out, never wrong; beside an error everything may but `error` and `fatal`.
DETAILS = frozenset(
    {
        "target", "installed_dir", "config_file", "sdk_names", "classic_for", "toolchain_identifier", "progress_mb",
        "suspicious", "maybe_conda", "xcode_select_version", "noise",
    }
)  # fmt: skip


def specimens(*names: str) -> list[dict[str, Any]]:
    """Return the specimens of these files."""
    rows = []
    for name in names:
        rows += strict_yaml.unchecked((SPECIMENS / f"{name}.yaml").read_text(encoding="utf-8"))
    return rows


def faults_of(answer: Mapping[str, Any], specimen: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with an answer: nothing, if it is right by the fact or by one that is acceptable too."""
    wanted = [specimen["fact"], *specimen.get("acceptable_also", [])]
    faults = [list(_faults(answer, fact)) for fact in wanted]
    return min(faults, key=len)


def lies_of(answer: Mapping[str, Any], specimen: Mapping[str, Any]) -> list[str]:
    """Return what an answer to a text that was cut says wrongly; what it does not say is not a lie."""
    wanted = [specimen["fact"], *specimen.get("acceptable_also", [])]
    lies = [list(_lies(answer, fact)) for fact in wanted]
    return min(lies, key=len)


def _faults(answer: Mapping[str, Any], fact: Mapping[str, Any]) -> Iterator[str]:
    for key, value in answer.items():
        if value is not None and (key not in fact or fact[key] != value):
            yield f"{key} is {value!r}, not {fact.get(key)!r}"
    details = DETAILS | (fact.keys() - {"error", "fatal"} if "error" in fact else set())
    for key, value in fact.items():
        if value is not None and key not in details and answer.get(key) is None:
            yield f"{key} is missing: {value!r}"


def _lies(answer: Mapping[str, Any], fact: Mapping[str, Any]) -> Iterator[str]:
    for key, value in answer.items():
        if key in ("not_understood", "complete") or value is None or value == "unknown":
            continue
        if not _says_no_more(value, fact.get(key)):
            yield f"{key} is {value!r}, not {fact.get(key)!r}"


def _says_no_more(value: Any, truth: Any) -> bool:
    """Say whether a value is the truth, or the first part of a list that is."""
    return bool(
        value == truth or (isinstance(value, list) and isinstance(truth, list) and value == truth[: len(value)])
    )
