"""A program beside other work: waited for where that ends well, killed where it fails."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from mps_build.common.process import Command, beside
from processes import wait_until


def test_a_program_beside_a_block_is_waited_for(tmp_path: Path) -> None:
    done = tmp_path / "done"

    with beside(Command(argv=("sh", "-c", f"sleep 0.3; echo noise; : > '{done}'; exit 5"))):
        assert not done.exists()

    assert done.exists()


def test_where_the_block_fails_it_is_killed(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    program = Command(argv=("sh", "-c", f"echo $$ > '{pid}.part'; mv '{pid}.part' '{pid}'; exec sleep 3600"))

    with pytest.raises(LookupError), beside(program):
        wait_until(pid.exists)
        raise LookupError

    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_program_that_does_not_start_disturbs_nothing(tmp_path: Path) -> None:
    with beside(Command(argv=(str(tmp_path / "none"),))):
        done = True

    assert done
