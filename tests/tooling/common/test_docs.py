"""The docs: every link leads somewhere, every command that is shown exists, every generated part is up to date."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from mps_build.commands.shared.catalogue import COMMANDS
from mps_build.commands.shared.parser import parser_of

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "README.md"])
SESSIONS = {*COMMANDS, *re.findall(r"^def (\w+)\(session", (ROOT / "noxfile.py").read_text(encoding="utf-8"), re.M)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_and_every_named_page_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text)]
    missing = [link for link in links if link and "://" not in link and not (page.parent / link).exists()]
    named = re.findall(r"`((?:docs|tests|benchmarks|build_recipes|patches|runner|schemas)/[\w./-]+\.\w+)`", text)
    if page.name != "CHANGELOG.md":  # it speaks of what was
        missing += [name for name in named if not (ROOT / name).exists()]

    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_is_shown_exists(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        return
    for line in re.findall(r"nox -s ([^`\n]+)", page.read_text(encoding="utf-8")):
        name, _, rest = line.partition(" -- ")
        name = name.split()[0].rstrip(".,;:)")
        if not re.fullmatch(r"\w+", name) or name.isupper():
            continue
        assert name in SESSIONS, line
        if name in COMMANDS:
            known = {option for action in parser_of(name)._actions for option in action.option_strings}
            assert {word for word in _words(rest) if word.startswith("--") and word != "--"} <= known, line


def _words(text: str) -> list[str]:
    """Return the words of a command line, up to a comment; a quote that the page breaks off counts as a word's."""
    try:
        return [word.partition("=")[0] for word in shlex.split(text.partition(" -- ")[0], comments=True)]
    except ValueError:
        return []
