"""One kernel of a run of verify_kernels as a script of its own, and as the text of an issue for upstream.

A script is used as `FILE.py [--device D] [--inject FILE.py:NAME]`, and ends with 0 where the answer is right, 1 where
it is wrong, 2 where it was not tried, 3 where the script itself failed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...common.errors import UsageError
from ...common.plain_text import code_block, in_code, in_markdown, plain
from ..judge.known import NEWEST, load_known
from ..judge.references import ELEMENTWISE, free_names, load_references
from ..program.dtypes import DTYPES

_ASK = Path(__file__).with_name("repro_ask.py.txt")
_RUN = Path(__file__).with_name("repro_run.py.txt")
_NUMBER = re.compile(
    r"\(?[-+]?(?:nan|inf|\d+(?:\.\d*)?(?:e[-+]?\d+)?)(?:[-+](?:nan|inf|\d+(?:\.\d*)?(?:e[-+]?\d+)?)j\)?)?|True|False"
)
_TYPES = {each.torch for each in DTYPES.values()}
_RIGHT = ("passed", "not_bound", "skipped")


def find_row(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the row of a kernel: the one with a finding, where two libraries have it.

    Raises:
        UsageError: the document has none of that name.
    """
    rows = [row for row in document["kernels"] if row.get("name") == name]
    if not rows:
        bad = [row["name"] for row in document["kernels"] if row.get("outcome") not in _RIGHT]
        raise UsageError(
            f"the record has no kernel {name}", hint=f"what it found: {', '.join(dict.fromkeys(bad[:5])) or 'nothing'}"
        )
    return next((row for row in rows if row["outcome"] != "passed"), rows[0])


def render_script(document: Mapping[str, Any], row: Mapping[str, Any]) -> str:
    """Return a script that asks torch the failing element on a Mac; else one that runs the kernel again here."""
    said = f"{row['name']}, torch {document.get('torch')}: {row['outcome']}. {row.get('reason', '')}"
    head = ["#!/usr/bin/env python3", repr(plain(said)), ""]
    element = _element(row)
    if element is None:
        values = {
            "TARGET": _target(document),
            "KERNEL": row["name"],
            "SEED": int(document.get("seed") or 0),
            "MORE": _large(row),
        }
        template = _RUN
    else:
        values, template = element, _ASK
    lines = [f"{name} = {value if name == 'INPUTS' else repr(value)}" for name, value in values.items()]
    return "\n".join([*head, *lines, "", template.read_text(encoding="utf-8")])


def _large(row: Mapping[str, Any]) -> list[str]:
    """Return the option with which a finding of large tensors is found again."""
    return ["--large"] if "moved" in row.get("inputs", {}) else []


def _target(document: Mapping[str, Any]) -> str:
    version = document.get("torch")
    return f"torch=={version}" if version else str(document.get("target"))


def _element(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the operator's expression and the failing element's inputs, if torch alone can compute it.

    The expression is our own row's, looked up by its name: a record is somebody's file, and no code of it is written.
    """
    said = row.get("reference", {})
    found = load_references().get(said.get("name", ""), {})
    if said.get("form") != "expression" or found.get("family") not in ELEMENTWISE:
        return None
    known = {each.get("expr") for each in (found, found.get("complex", {}))}
    expression, types = said.get("expression"), said.get("types", {})
    if not expression or expression not in known or not set(types.values()) <= _TYPES:
        return None
    inputs = {name: str(row.get("inputs", {}).get(name, "")) for name in free_names(expression)}
    if not inputs or not all(len(value) < 99 and _NUMBER.fullmatch(value) for value in inputs.values()):
        return None
    return {
        "EXPRESSION": expression,
        "INPUTS": "{" + ", ".join(f"{name!r}: {_literal(value)}" for name, value in inputs.items()) + "}",
        "TYPES": {name: types[name] for name in inputs if name in types},
        "BOUND": float(row.get("bound_ulp") or 4.0),
        "SEEN": str(row.get("where", {}).get("got", "")),
    }


def _literal(number: str) -> str:
    """Return a number, as `_NUMBER` has it, as an expression of Python.

    >>> _literal("1000.0"), _literal("-inf"), _literal("(1+nanj)"), _literal("True"), _literal("007")
    ('1000.0', "float('-inf')", "complex('1+nanj')", 'True', '7')
    """
    if number in ("True", "False"):
        return number
    kind = "complex" if "j" in number else "float" if "n" in number else ""
    if kind:
        return f"{kind}({number.strip('()')!r})"
    return number.lstrip("+") if set(number) & {".", "e"} else str(int(number))


def _explained(document: Mapping[str, Any], row: Mapping[str, Any]) -> list[str]:
    """Return what is known of the cause: the rows of known_issues.yaml that mean the kernel in this release."""
    version, name = document.get("torch"), str(row["name"])
    kind = str(row["outcome"])
    meant = [each for each in load_known() if each.means(name) and each.is_of(str(version) if version else None)]
    meant = [each for each in meant if kind == "known" or kind in each.outcomes]
    if not meant:
        return []
    lines = [f"- {in_markdown(each.title)}: {in_markdown(each.why)}." for each in meant]
    calls = [f"- {in_code(each.call)}" for each in meant if each.call and not each.not_seen]
    said = (
        f"**Through the operator**: on torch {NEWEST}'s official wheel, run on Linux, this is wrong, after "
        '`torch.set_default_device("mps")` and `F = torch.nn.functional`:'
    )
    reached = [said, "", *calls, ""] if calls else []
    return ["**Cause**", "", *lines, "", *reached]


def _effect(row: Mapping[str, Any]) -> str:
    """Return what goes wrong; that it is known here says nothing to whoever reads an issue."""
    kind = str(row["outcome"])
    if kind == "known":
        kind = "wrong" if row.get("reference") else "race"
    return {"wrong": "wrong result", "out_of_bounds": "access out of bounds"}.get(kind, kind.replace("_", " "))


def render_issue(document: Mapping[str, Any], row: Mapping[str, Any], script: str, file: str) -> str:
    """Return the text of an issue, in Markdown: what, how to see it, and how it was found."""
    name = str(row["name"])
    found = "\n".join([str(row.get("reason", "")), *(f"{k}: {v}" for k, v in row.get("inputs", {}).items())])
    asks = "EXPRESSION" in script
    needs = (
        "needs torch on a Mac; exit 1 means wrong"
        if asks
        else "needs mps-build on Linux; exit 1 means that it was found again"
    )
    options = ["--kernel", str(row["name"]), "--seed", str(int(document.get("seed") or 0)), *_large(row)]
    pattern = f"verify_kernels {_target(document)} {' '.join(options)}"
    return "\n".join(
        [
            f"# [MPS] Metal kernel {in_markdown(name)}: {in_markdown(_effect(row))}",
            "",
            f"The kernel {in_code(name)} of torch {in_markdown(str(document.get('torch')))} does this:",
            "",
            code_block(found),
            "",
            f"**To reproduce:** {in_code(f'python {file}')} (attached; {needs}).",
            "",
            *_explained(document, row),
            "**How it was found:** the kernel's own bitcode, taken from the wheel's metallib, was compiled for a "
            "processor and executed there, its result held against torch on the CPU in float64. "
            "It was not run on a GPU.",
            "",
            f"{in_code(pattern)} (mps-build) shows it again; digest of the instructions: "
            f"{in_code(str(row.get('body', '')))}.",
            "",
        ]
    )
