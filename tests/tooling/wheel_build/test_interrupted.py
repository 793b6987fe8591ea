"""Ctrl-C in the middle of long work: what is done is kept, and the exact command that goes on is said.

Real processes and real signals; `verify_mps` has its test in test_verify_mps.py.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from git_history import write_history
from processes import LONGEST_SECONDS, entry, environ, wait_until

CHECK = """\
echo x >> {folder}/calls
if [ "$(wc -l < {folder}/calls)" -ge 6 ] && [ ! -e {folder}/interrupted ]; then : > {folder}/reached; sleep 600; fi
[ "$(cat number.txt)" -lt 17 ]
"""
BUILD = """\
import sys, time; from pathlib import Path
from mps_build.wheel_build.steps import create_environment; from mps_build.cli import main
def wait(**_):
    Path({reached!r}).touch(); time.sleep(600)
create_environment.create_environment = wait
raise SystemExit(main("build_wheel", sys.argv[1:]))
"""


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    """Let children hear SIGINT: what was started in the background of a script ignores it, and hands that on."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _interrupted(argv: list[str], *, reached: Path, folder: Path) -> str:
    """Run until `reached` is there, press Ctrl-C once, and return what was said on stderr."""
    reached.unlink(missing_ok=True)
    with subprocess.Popen(
        argv, cwd=folder, env=_environ(folder), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        wait_until(lambda: reached.exists() or process.poll() is not None)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        try:
            _, said = process.communicate(timeout=LONGEST_SECONDS)
        finally:
            process.kill()  # only if it is still there
    assert process.returncode == 130, said
    assert "Traceback" not in said
    return said


def _environ(folder: Path) -> dict[str, str]:
    return environ(MPS_BUILD_WORK=str(folder / "work"), MPS_BUILD_CACHE=str(folder / "cache"))


def _command(said: str) -> list[str]:
    """Return the arguments of the command that is said to go on."""
    return shlex.split(said.partition("to go on: ")[2].splitlines()[0])


def test_a_build_keeps_its_steps_and_names_the_command_that_goes_on(tmp_path: Path) -> None:
    reached = tmp_path / "reached"
    program = BUILD.format(reached=str(reached))
    ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
    argv = [sys.executable, "-c", program, "sample", "--python", ours, "--jobs", "1"]

    said = _interrupted(argv, reached=reached, folder=tmp_path)

    assert _command(said) == ["nox", "-s", "build_wheel", "--", "sample", "--python", ours, "--jobs", "1"]
    kept = tmp_path / "work" / "sample" / "receipts" / "fetch_source.json"
    before = kept.stat().st_mtime_ns
    _interrupted(argv, reached=reached, folder=tmp_path)
    assert kept.stat().st_mtime_ns == before


@pytest.mark.slow  # the build beside it is interrupted by default
@pytest.mark.skipif(sys.platform == "win32", reason="a shell script asks")
def test_a_bisection_goes_on_with_the_command_it_named_and_asks_nothing_again(tmp_path: Path) -> None:
    commits = write_history(tmp_path / "repo", 30, texts={})
    (tmp_path / "check.sh").write_text(CHECK.format(folder=tmp_path), encoding="utf-8")
    started = entry("bisect_mps")
    ask = ["--predicate", f"sh {tmp_path / 'check.sh'}", "--good", commits[0], "--bad", commits[-1]]
    ask += ["--repo", str(tmp_path / "repo"), "--device", "cpu", "--runs", "1"]

    said = _interrupted([*started, *ask], reached=tmp_path / "reached", folder=tmp_path)

    command = _command(said)
    assert command == ["nox", "-s", "bisect_mps", "--", *ask]
    (tmp_path / "interrupted").touch()
    ended = subprocess.run(
        [*started, *command[4:]], cwd=tmp_path, env=_environ(tmp_path), capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "continuing with 5 answers" in ended.stdout
    assert commits[17] in ended.stdout
    assert len((tmp_path / "calls").read_text(encoding="utf-8").splitlines()) <= 1 + 2 + 5 + 3  # one was cut off
