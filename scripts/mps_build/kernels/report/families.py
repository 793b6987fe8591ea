"""The table of families: what each is about, and how much is known of it."""

from __future__ import annotations

import ast
from pathlib import Path

from ..families.shared.contracts import FOLDER, load_contracts
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
