"""The front page: short, and every command of the tool is in one of its five tasks."""

from __future__ import annotations

import re
from pathlib import Path

from mps_build import __version__
from mps_build.commands.shared.catalogue import COMMANDS, TASKS
from PIL import Image

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_repositorys_own_sessions_are_named_in_contributing() -> None:
    own = set(re.findall(r"@nox.session.*\ndef (\w+)\(", (ROOT / "noxfile.py").read_text(encoding="utf-8")))

    assert own
    assert not own & set(COMMANDS), "a command is named by its module alone"
    assert {name for name in own if f"`{name}`" not in CONTRIBUTING} == set()


def test_the_front_page_is_short_and_shows_each_task() -> None:
    assert len(README.splitlines()) <= 110
    for task, commands in list(TASKS.items())[:-1]:
        assert any(f"nox -s {name}" in README for name in commands), task


def test_the_page_that_says_it_never_ran_on_a_mac_is_linked_above_everything_else() -> None:
    assert README.index("never run on a Mac") < README.index("## Two commands")
    assert "docs/reference/evidence.md" in README


def test_the_picture_of_a_page_is_one_that_this_version_wrote() -> None:
    """`tests/tooling/fakes/browser.py` renews it, and leaves in it what the page says of its writer."""
    with Image.open(ROOT / "docs" / "images" / "report.png") as picture:
        assert f"Written by mps-build {__version__} " in picture.info["Comment"]


def test_a_user_whose_model_is_wrong_finds_the_two_commands() -> None:
    part = README[README.index("NaN or wrong results on MPS") :]
    commands = re.search(r"```sh\n(.*?)```", part, re.DOTALL)

    assert commands is not None
    assert [line.split()[2] for line in commands[1].splitlines()] == ["verify_mps", "verify_training"]
    assert "--script train.py" in commands[1]


def test_setup_sh_is_shown_with_the_folder_that_it_takes() -> None:
    setup = (ROOT / "runner" / "setup.sh").read_text(encoding="utf-8")

    assert "--runner FOLDER" in setup
    assert "setup.sh install --dry-run --url URL --runner FOLDER" in README
