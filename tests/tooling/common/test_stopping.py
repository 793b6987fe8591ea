"""A signal to the tool ends all that it started, removes what it fetched, and is reported by the exit status.

Real processes and signals: a tool of one step, whose program starts a compiler in a group of its own, as ninja does.
"""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from processes import LONGEST_SECONDS, environ, wait_until

# The step's program: two descendants, one in a group of its own and one whose parent has ended; each writes its pid.
PROGRAM = """\
import os, subprocess, sys, time
from pathlib import Path
folder = Path(sys.argv[1])
sleeper = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(3600)"
subprocess.Popen([sys.executable, "-c", sleeper, str(folder / "grouped.pid")], process_group=0)
orphan = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1], sys.argv[2]])"
subprocess.run([sys.executable, "-c", orphan, sleeper, str(folder / "orphan.pid")])
(folder / "leader.pid").write_text(str(os.getpid()))
time.sleep(3600)
"""
TOOL = """\
import sys, tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from mps_build import cli
from mps_build.commands import clean
from mps_build.common.process import Command, beside, capture, run_interactive, run_logged
from mps_build.common.workspace import Workspace
folder, how = Path(sys.argv[1]), sys.argv[2]
program = Command(argv=(sys.executable, str(folder / "program.py"), str(folder)))
def work(options, console):
    print("begun")
    with Workspace(root=folder / "tree").held(), tempfile.TemporaryDirectory(dir=folder / "tmp"):
        if how == "logged":
            run_logged(program, log=folder / "log")
        elif how == "captured":
            capture(program, timeout_seconds=3600)
        elif how == "interactive":
            run_interactive(program)
        elif how == "beside":
            with beside(program):
                run_logged(Command(argv=("sleep", "3600")), log=folder / "log")
        else:
            with ThreadPoolExecutor(2) as pool:
                for one in [pool.submit(run_logged, program, log=folder / "log") for _ in range(4)]:
                    one.result()
clean.run = work
raise SystemExit(cli.main("clean", []))
"""


# As the servers of closed processes: a child in a PID namespace (where there are any), which forks into new sessions.
CLOSED = """\
import os, time
from pathlib import Path
from mps_build.kernels.execution import fork_server
def begin(connection):
    os.setsid()
    Path("child").write_text("there")
    time.sleep(3600)
fork_server.isolate()
fork_server.serve("socket", begin)
"""
WATCHER = """\
import sys, time
from pathlib import Path
from mps_build import cli
from mps_build.commands import clean
from mps_build.common.process import Command
from mps_build.common.process import watched
from mps_build.kernels.execution import fork_server
def work(options, console):
    with watched(Command(argv=(sys.executable, sys.argv[1])), log=Path("log")), fork_server.connect("socket", 60):
        time.sleep(3600)
clean.run = work
raise SystemExit(cli.main("clean", []))
"""


@pytest.fixture(autouse=True)
def _signals_are_heard() -> Iterator[None]:
    """Let children hear both signals: what nohup or a script's background started ignores them, and hands that on."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGHUP, signal.SIGINT)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def _started(folder: Path, how: str, program: str = PROGRAM) -> tuple[subprocess.Popen[str], list[int]]:
    """Start the tool, and wait until all of its descendants are there."""
    (folder / "tmp").mkdir()
    (folder / "program.py").write_text(program, encoding="utf-8")
    argv = [sys.executable, "-c", TOOL, str(folder), how]
    pipe, buffered = subprocess.PIPE, environ(PYTHONUNBUFFERED="")
    tool = subprocess.Popen(argv, cwd=folder, env=buffered, stdout=pipe, stderr=pipe, text=True)
    names = ("leader.pid", "grouped.pid", "orphan.pid")
    wait_until(lambda: all(_text(folder / name) for name in names))
    return tool, [int(_text(folder / name)) for name in names]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the program needs process_group")
@pytest.mark.parametrize(
    ("how", "number"),
    [
        ("logged", signal.SIGTERM),
        ("logged", signal.SIGHUP),
        ("logged", signal.SIGINT),
        ("captured", signal.SIGTERM),
        ("beside", signal.SIGTERM),
        ("threads", signal.SIGTERM),
    ],
)
def test_a_signal_ends_the_whole_tree_and_leaves_nothing(tmp_path: Path, how: str, number: signal.Signals) -> None:
    tool, pids = _started(tmp_path, how)
    assert all(map(_runs, pids))
    assert list((tmp_path / "tmp").iterdir())

    tool.send_signal(number)
    _, said = tool.communicate(timeout=LONGEST_SECONDS)  # the programs sleep for longer

    assert tool.returncode == 128 + number, said
    assert not [pid for pid in pids if _runs(pid)]
    assert not list((tmp_path / "tmp").iterdir())
    assert "Traceback" not in said
    assert "to go on: nox -s clean" in said


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the program needs process_group")
def test_a_signal_is_reported_also_where_the_reader_of_standard_output_has_gone(tmp_path: Path) -> None:
    tool, pids = _started(tmp_path, "logged")
    assert tool.stdout is not None and tool.stderr is not None
    tool.stdout.close()  # what was printed waits in the tool's buffer

    tool.terminate()
    with tool.stderr:
        said = tool.stderr.read()

    assert (tool.wait(LONGEST_SECONDS), "interrupted by SIGTERM" in said) == (143, True), said
    assert not [pid for pid in pids if _runs(pid)]


@pytest.mark.slow  # waits for what does not end
@pytest.mark.skipif(sys.version_info < (3, 11), reason="the program needs process_group")
def test_a_program_on_the_callers_terminal_decides_on_ctrl_c_and_ends_by_sigterm(tmp_path: Path) -> None:
    """As a shell does, it goes on after Ctrl-C; the tool then still hears SIGTERM."""
    deaf = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    tool, (leader, grouped, orphan) = _started(tmp_path, "interactive", deaf + PROGRAM)
    try:
        tool.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert tool.poll() is None and _runs(leader)

        tool.send_signal(signal.SIGTERM)
        tool.wait(LONGEST_SECONDS)
    finally:
        os.kill(orphan, signal.SIGKILL)  # in the terminal's session, and nobody's child: it ends with the terminal
        tool.kill()
        _, said = tool.communicate(timeout=LONGEST_SECONDS)

    assert tool.returncode == 143, said
    assert not _runs(leader) and not _runs(grouped)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the program needs process_group")
def test_a_terminal_that_is_closed_ends_it_too(tmp_path: Path) -> None:
    """What is printed then fails, and must not be taken for a failing disk."""
    (tmp_path / "tmp").mkdir()
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, "-c", TOOL, str(tmp_path), "logged"], environ())
    names = ("leader.pid", "orphan.pid", "grouped.pid")
    wait_until(lambda: all(_text(tmp_path / name) for name in names))
    descendants = [int(_text(tmp_path / name)) for name in names]

    os.close(terminal)
    ended: list[int] = []
    wait_until(lambda: bool(ended) or _ended(pid, ended))

    assert ended == [129]
    assert not [each for each in descendants if _runs(each)]
    assert not list((tmp_path / "tmp").iterdir())


def _ended(pid: int, status: list[int]) -> bool:
    found, how = os.waitpid(pid, os.WNOHANG)
    if found:
        status.append(os.waitstatus_to_exitcode(how))
    return bool(found)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the program needs process_group")
def test_a_program_ends_with_a_tool_that_is_killed(tmp_path: Path) -> None:
    tool, (leader, grouped, orphan) = _started(tmp_path, "logged")

    tool.kill()
    tool.communicate()

    wait_until(lambda: not _runs(leader) and not _runs(orphan))
    if _runs(grouped):  # in a group of its own, with nobody left who knows of it
        os.kill(grouped, signal.SIGKILL)


@pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="closed processes need Linux")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_closed_process_ends_with_the_tool_however_that_ends(tmp_path: Path, number: signal.Signals) -> None:
    program = tmp_path / "closed.py"
    program.write_text(CLOSED, encoding="utf-8")
    argv = [sys.executable, "-c", WATCHER, str(program)]
    tool = subprocess.Popen(argv, cwd=tmp_path, env=environ(), stderr=subprocess.PIPE, text=True)
    wait_until(lambda: bool(_text(tmp_path / "child")))
    assert len(_running(program)) >= 2

    tool.send_signal(number)
    _, said = tool.communicate(timeout=LONGEST_SECONDS)

    if number == signal.SIGKILL:
        wait_until(lambda: not _running(program))
    else:
        assert (tool.returncode, _running(program)) == (128 + number, []), said


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the program needs process_group")
@pytest.mark.slow  # seconds until it is killed
def test_what_ignores_SIGTERM_is_killed_and_a_second_signal_does_not_disturb(tmp_path: Path) -> None:
    """nox sends SIGINT, and SIGTERM 0.3 s later."""
    deaf = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    tool, pids = _started(tmp_path, "logged", deaf + PROGRAM)

    tool.send_signal(signal.SIGINT)
    time.sleep(0.3)
    tool.send_signal(signal.SIGTERM)
    _, said = tool.communicate(timeout=LONGEST_SECONDS)

    assert tool.returncode == 130, said
    assert not [pid for pid in pids if _runs(pid)]
    assert not list((tmp_path / "tmp").iterdir())


def test_a_tool_under_nohup_does_not_hear_SIGHUP(tmp_path: Path) -> None:
    program = "import os, signal; from mps_build.common.stopping import signals_raise\n"
    program += "with signals_raise(): os.kill(os.getpid(), signal.SIGHUP)\nprint('went on')"
    argv = ["nohup", sys.executable, "-c", program]
    done = subprocess.run(argv, cwd=tmp_path, env=environ(), capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "went on\n")


def test_a_fork_of_ours_ends_by_the_signal_itself() -> None:
    program = (
        "import os, signal, time; from mps_build.common.stopping import signals_raise\n"
        "there, tell = os.pipe()\n"
        "with signals_raise():\n"
        "    if not (pid := os.fork()):\n"
        "        os.write(tell, b'.')  # Python drops what arrives before\n"
        "        time.sleep(60)\n"
        "    os.read(there, 1)\n"
        "    os.kill(pid, signal.SIGTERM)\n"
        "    print(os.WTERMSIG(os.waitpid(pid, 0)[1]))\n"
    )
    argv = [sys.executable, "-c", program]
    done = subprocess.run(argv, env=environ(), capture_output=True, text=True, check=False, timeout=LONGEST_SECONDS)

    assert (done.stdout, done.stderr) == ("15\n", "")


def _running(program: Path) -> list[int]:
    """Return who runs a program: those in a namespace do not know the numbers that they have here."""
    argv = [sys.executable, str(program)]
    return [each.pid for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"] == argv]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")  # where nobody adopts it, it stays as a zombie
    return not (state.exists() and state.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z")
