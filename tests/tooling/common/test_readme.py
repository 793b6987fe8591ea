"""What the README says of the tool is what the tool is."""

from __future__ import annotations

import re
from pathlib import Path

from mps_build.common import errors

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_session_is_in_the_table_and_no_other() -> None:
    sessions = set(re.findall(r"@nox.session.*\ndef (\w+)\(", (ROOT / "noxfile.py").read_text(encoding="utf-8")))
    table = README[README.index("| session |") : README.index("## Releases")]
    named = set(re.findall(r"`(\w+)`", "\n".join(line.split("|")[1] for line in table.splitlines() if "|" in line)))

    assert named == sessions


def test_every_exit_code_is_in_the_table() -> None:
    table = README[README.index("## Exit codes") : README.index("## What has been proved where")]
    codes = {int(code) for code in re.findall(r"\| (\d+) \|", table)}

    assert {error.exit_code for error in errors.MpsBuildError.__subclasses__()} <= codes


def test_every_page_that_the_readme_names_is_there() -> None:
    for name in re.findall(r"`([\w./]+\.(?:md|json))`", README):
        assert (ROOT / name).is_file(), name
