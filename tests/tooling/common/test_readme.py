"""The front page: short, and every command of the tool is in one of its five tasks."""

from __future__ import annotations

import re
from pathlib import Path

from mps_build.commands.shared.catalogue import COMMANDS, TASKS

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_every_session_is_a_command_of_a_task_or_one_of_the_repositorys_own() -> None:
    sessions = set(re.findall(r"@nox.session.*\ndef (\w+)\(", (ROOT / "noxfile.py").read_text(encoding="utf-8")))
    own = sessions - set(COMMANDS)

    assert set(COMMANDS) <= sessions
    assert {name for name in own if f"`{name}`" not in CONTRIBUTING} == set(), "CONTRIBUTING names them"


def test_a_session_says_what_its_command_says_and_they_stand_in_the_same_order() -> None:
    text = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    found = re.findall(r'def (\w+)\(session: nox.Session\) -> None:\n    """(.*?)"""', text)
    said = {name: summary for name, summary in found if name in COMMANDS}

    assert list(said) == list(COMMANDS)
    assert said == {name: f"{summary[0].upper()}{summary[1:]}." for name, summary in COMMANDS.items()}


def test_the_front_page_is_short_and_shows_each_task() -> None:
    assert len(README.splitlines()) <= 110
    for task, commands in list(TASKS.items())[:-1]:
        assert any(f"nox -s {name}" in README for name in commands), task


def test_the_page_that_says_it_never_ran_on_a_mac_is_linked_above_everything_else() -> None:
    assert README.index("never run on a Mac") < README.index("## Two commands")
    assert "docs/reference/evidence.md" in README
