"""Programs in the foreground, with the signals of a terminal, and programs beside ours."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mps_build.common.process import Command, beside, run_in_foreground
from processes import environ, wait_until

TOOL = """\
import sys
from mps_build.common.process import Command
from mps_build.common.stopping import signals_raise
from mps_build.common.process import run_in_foreground
with signals_raise():
    sys.exit(run_in_foreground(Command(argv=(sys.executable, *sys.argv[1:]))))
"""
# Writes each signal that it hears of; ends by itself a while after the first Ctrl-C, as one that saves its state.
PROGRAM = """\
import signal, sys, time
from pathlib import Path
folder, rest = Path(sys.argv[1]), float(sys.argv[2])
reported = []
def handle(number, frame):
    reported.append(signal.Signals(number).name)
    (folder / "reported").write_text(" ".join(reported))
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1):
    signal.signal(number, handle)
(folder / "ready").write_text("")
while not {"SIGINT", "SIGTERM"} & set(reported):
    time.sleep(0.01)
time.sleep(rest)
(folder / "saved").write_text("")
sys.exit(3)
"""


def _arguments(folder: Path, rest: float) -> list[str]:
    (folder / "program.py").write_text(PROGRAM)
    return [sys.executable, "-c", TOOL, str(folder / "program.py"), str(folder), str(rest)]


def _reported(folder: Path) -> str:
    return (folder / "reported").read_text() if (folder / "reported").exists() else ""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_signals_sent_to_us_reach_the_program_which_ends_in_its_own_time(tmp_path: Path, end: signal.Signals) -> None:
    with subprocess.Popen(_arguments(tmp_path, 0.5), env=environ()) as tool:
        wait_until(lambda: (tmp_path / "ready").exists() or tool.poll() is not None)
        for number in (signal.SIGUSR1, signal.SIGQUIT, end):
            tool.send_signal(number)
            wait_until(lambda name=number.name: name in _reported(tmp_path))  # type: ignore[misc]

    assert _reported(tmp_path) == f"SIGUSR1 SIGQUIT {end.name}"
    assert (tool.returncode, (tmp_path / "saved").exists()) == (3, True)


def test_a_second_signal_ends_it(tmp_path: Path) -> None:
    with subprocess.Popen(_arguments(tmp_path, 600), env=environ()) as tool:
        wait_until(lambda: (tmp_path / "ready").exists() or tool.poll() is not None)
        tool.send_signal(signal.SIGINT)
        wait_until(lambda: "SIGINT" in _reported(tmp_path))
        tool.send_signal(signal.SIGTERM)

    assert tool.returncode == 128 + signal.SIGTERM
    assert not (tmp_path / "saved").exists()


def test_ctrl_c_on_the_terminal_reaches_it_once(tmp_path: Path) -> None:
    argv = _arguments(tmp_path, 0.3)
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(argv[0], argv, environ())
    wait_until((tmp_path / "ready").exists)
    os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)

    assert (os.waitstatus_to_exitcode(status), _reported(tmp_path)) == (3, "SIGINT")
    os.close(terminal)


def test_a_program_that_cannot_be_run_has_a_shells_status(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("text")

    assert run_in_foreground(Command(argv=(str(tmp_path / "gone"),))) == 127
    assert run_in_foreground(Command(argv=(str(tmp_path / "plain"),))) == 126
    assert run_in_foreground(Command(argv=("sh", "-c", "kill -USR1 $$"))) == 128 + signal.SIGUSR1


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
