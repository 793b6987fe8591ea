"""The table of families: what each is about, and how much is known of it."""

from __future__ import annotations

import ast
from pathlib import Path

from ..families.shared.contracts import load_contracts
from ..judge.references import FAMILIES, load_references


def families_table() -> str:
    """Return the families' folders as a Markdown table: subject, contracts, references."""
    contracts = [each.folder for each in load_contracts()]
    references = [row.get("family") for row in load_references().values()]
    lines = ["| folder | what | contracts | references |", "|---|---|---|---|"]
    for folder in sorted(path.parent for path in FAMILIES.glob("*/contracts.yaml")):
        name = folder.name
        link = f"[{name}](../../scripts/mps_build/kernels/families/{name})"
        lines.append(f"| {link} | {_subject(folder)} | {contracts.count(name)} | {references.count(name)} |")
    return "\n".join(lines)


def _subject(folder: Path) -> str:
    """Return what a family's package says of itself; its binders are not imported for it."""
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
    return text.rstrip(".")
