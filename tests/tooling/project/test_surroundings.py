"""What surrounds a process: no home folder, streams that are closed, full or cut off, no UTF-8. Each has its status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cheap_calls import CALLS, lay_out
from mps_build.common.errors import UsageError
from mps_build.common.files import machine_fault
from mps_build.common.workspace import expanded
from processes import SCRIPTS, entry, environ

ODD = os.fsdecode(b"caf\xe9 \xff\x1b[31m|`x")
FAKES = Path(__file__).parents[1] / "fakes"
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
Results = dict[str, tuple[int, str]]


def _run(argv: list[str], *, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        argv, check=False, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=300
    )


def _run_all(folder: Path, places: dict[Path, str], redirect: str = "", **variables: str) -> dict[Path, Results]:
    """Return what every command did in each place, which has surroundings of cheap_calls.py; all in one process."""
    for place in places:
        place.mkdir(exist_ok=True)
        lay_out(place)
    given = {**environ(PYTHONPATH=f"{SCRIPTS}{os.pathsep}{FAKES}"), "MPS_BUILD_CACHE": "set", **variables}
    command = f'exec "$@" {redirect or ">/dev/null"}'
    words = [f"{names}={place}" for place, names in places.items()]
    argv = ["sh", "-c", command, "sh", sys.executable, str(FAKES / "cheap_calls.py"), *words]
    ran = _run(argv, cwd=folder, env=given)
    assert ran.returncode == 0, ran.stderr.decode()[-2000:]
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    return {place: results[str(place)] for place in places}


# What a process can bring about by itself, and so for one folder after the other.
IN_ONE = ("sound", "sound,homeless", "cut_off", *(["full"] if Path("/dev/full").exists() else []), "sound,absolute")


@pytest.fixture(scope="module")
def in_one(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Results]:
    """What every command did in each of IN_ONE: `sound` is where nothing is odd, `absolute` a folder called ODD."""
    folder = tmp_path_factory.mktemp("in_one")
    places = {folder / (ODD if "absolute" in names else names): names for names in IN_ONE}
    return {places[place]: results for place, results in _run_all(folder, places).items()}


@pytest.fixture(scope="module")
def usual(in_one: dict[str, Results]) -> Results:
    """The statuses where nothing is odd."""
    return in_one["sound"]


SURROUNDINGS: dict[str, tuple[tuple[str, ...], str, dict[str, str], int | None, str]] = {
    # surroundings, redirection, variables, the status that they may bring, what is said then
    "sound,homeless": (("sound", "homeless"), "", {}, 2, "no home folder"),
    "no_stdout": ((), ">&-", {}, 2, "standard output is closed"),
    "no_stderr": (("no_stderr",), ">/dev/null 2>&-", {}, None, ""),
    "nothing": (("no_stderr",), "<&- >&- 2>&-", {}, 2, ""),
    "cut_off": (("cut_off",), "", {}, 141, ""),
    "full": (("full",), "", {}, 19, "no space left: standard output"),
    "ascii": ((), "", dict(ASCII), None, ""),
}


# Makes 4 a pipe whose reader is gone before the command starts: else a small output fits into it.
GONE = "mkfifo gone; (exec 3<gone) & exec 4>gone; wait; "
# These take seconds each: every command is run.
SLOW = ("nothing", "no_stdout", "no_stderr", "ascii")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in SURROUNDINGS]
)
def test_a_surrounding_has_one_status_and_is_never_a_bug(
    name: str, in_one: dict[str, Results], usual: Results, tmp_path: Path
) -> None:
    surroundings, redirect, variables, status, words = SURROUNDINGS[name]
    if "full" in surroundings and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")

    if name in IN_ONE:
        found = in_one[name]
    else:
        (found,) = _run_all(tmp_path, {tmp_path / "a": ",".join(surroundings)}, redirect, **variables).values()

    changed = {command for command in CALLS if found[command][0] != usual[command][0]}
    assert found.keys() == CALLS.keys()
    assert not [command for command, (code, _) in found.items() if code == 1]
    assert not [said for _, said in found.values() if "Traceback" in said or "a bug of" in said]
    assert {found[command][0] for command in changed} <= {status}
    assert all(words in found[command][1] for command in changed)
    assert bool(changed) == (status is not None)


# What reads and writes files by their names, and is there soon.
OF_FILES = ("build_report", "audit_wheel", "compare", "repro", "triage", "adopt", "support", "clean", "publish_index")


@pytest.mark.parametrize(
    ("variables", "commands"),
    [
        pytest.param({}, tuple(CALLS), id="utf_8"),
        pytest.param(ASCII, OF_FILES, id="ascii"),
        pytest.param(ASCII, tuple(CALLS), id="ascii, every command", marks=pytest.mark.slow),
    ],
)
def test_a_folder_whose_name_is_not_utf_8_is_a_folder(
    variables: dict[str, str], commands: tuple[str, ...], in_one: dict[str, Results], usual: Results, tmp_path: Path
) -> None:
    """Inputs, work folder, cache and outputs lie in it; with ASCII alone Python itself knows no better."""
    if variables:
        requested = {**variables, "RUN_ALL_COMMANDS": " ".join(commands)}
        (found,) = _run_all(tmp_path, {tmp_path / ODD: "absolute"}, **requested).values()
    else:
        found = in_one["sound,absolute"]

    assert found.keys() == set(commands)
    assert not [command for command, (code, _) in found.items() if code == 1]
    assert not [said for _, said in found.values() if "\x1b" in said or "\udcff" in said]
    # No address that git is given may hold a control character, and the sample's is a path in here.
    changed = {command: found[command] for command in commands if found[command][0] != usual[command][0]}
    assert all(code == 2 and "holds a control character" in said for code, said in changed.values())


@pytest.mark.parametrize(
    ("tail", "status", "words"),
    [
        (">&4", "141", ""),
        (">&-", "2", "standard output is closed"),
        (">/dev/full", "19", "no space left: standard output"),
        ("2>&-", "0", ""),
        ("2>/dev/full", "0", ""),
        (">&- 2>&-", "2", ""),
        ("<&-", "0", ""),
    ],
)
@pytest.mark.parametrize("command", ["clean", "help"])
def test_python_itself_ends_as_quietly(command: str, tail: str, status: str, words: str, tmp_path: Path) -> None:
    """Python writes what is left when it ends, and would end with 120 and words of its own."""
    if "/dev/full" in tail and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    script = f'{GONE if tail == ">&4" else ""}"$@" {tail}; echo $? >status'
    given = environ(MPS_BUILD_WORK=str(tmp_path), MPS_BUILD_CACHE=str(tmp_path))

    ran = _run(["sh", "-c", script, "sh", *entry(command)], cwd=tmp_path, env=given)

    said = ran.stderr.decode()
    assert (tmp_path / "status").read_text().strip() == status
    assert words in said
    assert "Exception ignored" not in said and "Traceback" not in said
    assert bool(said) == bool(words)


def test_a_result_is_still_written_where_the_reader_has_gone(tmp_path: Path) -> None:
    script = f'{GONE}"$@" >&4'
    given = environ(MPS_BUILD_WORK=str(tmp_path), MPS_BUILD_CACHE=str(tmp_path))

    _run(["sh", "-c", script, "sh", *entry("clean", "--json", "found.json")], cwd=tmp_path, env=given)

    document = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert (document["exit_code"], document["cause"]) == (141, "cut_off")


def test_a_closed_stream_is_not_the_next_file_that_is_opened(tmp_path: Path) -> None:
    """Descriptor 1 is free then, and a file of ours would get what a program prints."""
    log = tmp_path / "build.log"
    log.write_text("error: something failed\n", encoding="utf-8")
    script = 'exec "$@" >&- 2>&-'

    _run(["sh", "-c", script, "sh", *entry("triage", str(log), "--json", "a.json")], cwd=tmp_path, env=environ())

    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["cause"] == "usage"
    assert log.read_text(encoding="utf-8") == "error: something failed\n"


def test_json_is_json_in_any_encoding(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"caf\xc3\xa9-\xff-\xf0\x9f\x98\x80.json")
    odd.write_text("{}", encoding="utf-8")

    ran = _run(entry("adopt", str(odd), "--name", "x", "--json", "-"), env=environ(**ASCII), cwd=tmp_path)

    assert ran.returncode == 2
    assert ran.stdout.isascii()
    assert odd.stem in os.fsdecode(json.loads(ran.stdout)["error"].encode("utf-8", "surrogateescape"))


def test_a_home_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="no home folder for ~nobody-of-this-name"):
        expanded("~nobody-of-this-name/pytorch")


@pytest.mark.parametrize(
    "make",
    [lambda: OSError(5, "Input/output error", "/a"), lambda: OSError(24, "Too many open files"), MemoryError],
)
def test_a_failing_disk_is_the_hosts_fault(make: Callable[[], Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    from mps_build import cli

    def fail() -> None:
        raise make()

    monkeypatch.setattr("mps_build.commands.dev.matrix.all_recipes", fail)

    assert machine_fault(make()) is not None
    assert cli.main("matrix", []) == 3
