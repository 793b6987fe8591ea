"""The page's table of versions is what the table of versions says."""

from __future__ import annotations

from pathlib import Path

from mps_build.common.recipe.catalogue import all_recipes
from mps_build.verify.training.libraries import load_versions, table_rows
from packaging.version import Version

PAGE = Path(__file__).parents[3] / "docs" / "verify" / "promises" / "transformers.md"
BEGIN, END = (
    "<!-- version table: held by tests/tooling/test_training_docs.py -->\n",
    "<!-- end of the version table -->",
)


def version_table() -> str:
    """Return the table in Markdown, as it must stand in the page."""
    releases = {
        recipe.version: tuple(recipe.pythons)
        for recipe in all_recipes()
        if recipe.name[:1] == "v" and Version(recipe.version) >= Version("1.13")
    }
    rows = [("torch", "Python", "Accelerate", "Transformers"), ("---",) * 4, *table_rows(load_versions(), releases)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def test_the_page_says_which_versions_go_with_which_torch() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert page.partition(BEGIN)[2].partition(END)[0] == version_table(), f"it should be:\n{version_table()}"
