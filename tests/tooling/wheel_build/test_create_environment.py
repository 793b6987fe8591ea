"""What the environment holds is what pip lists; no answer is an error, and never an empty environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.common import git
from mps_build.common.errors import BuildEnvironmentError, SourceError
from mps_build.common.git import succeeds
from mps_build.common.process import Captured, Command
from mps_build.wheel_build.steps import create_environment
from mps_build.wheel_build.steps.create_environment import installed_versions


def _pip(tmp_path: Path, body: str) -> Command:
    script = tmp_path / "pip"
    script.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    script.chmod(0o755)
    return Command(argv=(str(script),))


def test_the_versions_are_those_that_pip_names(tmp_path: Path) -> None:
    assert installed_versions(_pip(tmp_path, "echo ninja==1.13.0; echo cmake==4.1.2")) == {
        "cmake": "4.1.2",
        "ninja": "1.13.0",
    }


def test_a_pip_that_fails_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BuildEnvironmentError, match="disk I/O error"):
        installed_versions(_pip(tmp_path, "echo cmake==4.1.2; echo disk I/O error >&2; exit 1"))


def test_a_pip_that_does_not_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(command: Command, *, timeout_seconds: float) -> Captured:
        said = f"no answer within {timeout_seconds:g} seconds"
        return Captured(argv=command.argv, stdout="", stderr=said, exit=None, timed_out=True)

    monkeypatch.setattr(create_environment, "capture", never)
    monkeypatch.setattr(git, "capture", never)

    with pytest.raises(BuildEnvironmentError, match="no answer within 300 seconds"):
        installed_versions(Command(argv=("pip", "list")))
    with pytest.raises(SourceError, match="no answer within 60 seconds"):
        succeeds(Command(argv=("git", "merge-base", "--is-ancestor", "a", "b")))
