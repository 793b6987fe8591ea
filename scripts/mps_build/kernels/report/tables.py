"""Tables of the pages: the families, and what is known of torch's host code with large tensors."""

from __future__ import annotations

import ast
from pathlib import Path

from ..families.shared.contracts import FOLDER, load_contracts
from ..families.shared.large import Rule, load_rules
from ..judge.references import load_references


def families_table() -> str:
    """Return the families' folders as a Markdown table: subject, contracts, references."""
    contracts = [each.folder for each in load_contracts()]
    references = [row.get("family") for row in load_references().values()]
    lines = ["| folder | what | contracts | references |", "|---|---|---|---|"]
    for name in sorted(set(contracts)):
        link = f"[{name}](../../scripts/mps_build/kernels/families/{name})"
        lines.append(f"| {link} | {_subject(FOLDER / name)} | {contracts.count(name)} | {references.count(name)} |")
    return "\n".join(lines)


def _subject(folder: Path) -> str:
    """Return what a family's package says of itself; its binders are not imported for it."""
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    return text.rstrip(".")


_THEN = {"cuts": "cut", "other": "another kernel", "refuses": "refused"}


def rules_table() -> str:
    """Return all rules as a Markdown table: forms, host functions, what becomes of larger tensors, source."""
    lines = ["| family | kernels | launched by | larger tensors | source |", "|---|---|---|---|---|"]
    for folder, rules in load_rules().items():
        for rule in rules:
            kernels = [each for each in rule.kernels if each != "*"]
            names = ", ".join(f"`{each}`" for each in (*rule.contracts, *kernels))
            host = ", ".join(f"`{each}`" for each in rule.host)
            lines.append(f"| {folder} | {names} | {host} | {_larger(rule)} | {rule.source} |")
    without = sorted({each.folder for each in load_contracts()} - set(load_rules()))
    return "\n".join([*lines, "", f"Without a rule: {', '.join(without)}."])


def _larger(rule: Rule) -> str:
    asks = [f"{_THEN[each.then]} ({each.why or f'`{each.asked}`'})" for each in rule.asks]
    said = [f"launched if `{rule.when}`"] if rule.when else [f"never launched: {rule.never}"] if rule.never else []
    said += [f"launched only if the host code holds `{rule.named}`"] if rule.named else []
    said += [f"launched, and nothing can wrap: {rule.small}"] if rule.small else []
    open_ = [f"not known: {rule.chooses}"] if rule.chooses else []
    return ", ".join([*asks, *said, *open_]) or "launched"
