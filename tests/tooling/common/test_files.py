"""Files that are not files, that cannot be read, folders that cannot be written: each refused at once, in words."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import pytest
from http_servers import TAG, wheel
from mps_build.cli import main
from mps_build.common.errors import TreeInUse, UsageError
from mps_build.common.files import (
    NotAFile,
    check_writable,
    copy_whole,
    open_regular,
    open_to_append,
    refusal,
    write_whole,
)
from mps_build.common.logs.file import read_log_file
from mps_build.common.process import Command, capture, run_logged
from mps_build.common.workspace import Workspace
from mps_build.verify.bisection.state import load_state
from mps_build.verify.target.wheel import sha256_of
from processes import LONGEST_SECONDS
from small_wheels import torch_files, write_wheel

WHEEL = f"torch-2.6.0-{TAG}.whl"


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """What would wait for a pipe without end fails after half a minute."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise AssertionError("waited for something that nobody writes")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 30)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, previous)


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with pipes under the names that commands ask for, and a wheel to go with them."""
    for name in ("pipe.json", "pipe.yaml", "pipe.mm", WHEEL, "record/record.json", "results/a/build.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(tmp_path / name)
    (tmp_path / "log").write_text("ninja: build stopped\n", encoding="utf-8")
    (tmp_path / "receipt.json").write_text(
        '{"wheel":{},"recipe":{"version":"2.6.0"},"patches":{},"submodules":{},"dirty":[],"profile":"release"}',
        encoding="utf-8",
    )
    shutil.move(wheel(tmp_path / "made", "torch", "2.6.0"), tmp_path / "real.whl")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    return tmp_path


_COMMANDS = [
    "triage pipe.json",
    "triage log --host pipe.json",
    "triage log --recipe ./pipe.yaml",
    "doctor --host pipe.json",
    "doctor ./pipe.yaml",
    "adopt pipe.json --into .",
    "compare pipe.json pipe.json",
    f"compare {WHEEL} {WHEEL}",
    "repro pipe.json case",
    "repro record case",
    "op_coverage pipe.json",
    f"op_coverage {WHEEL}",
    "op_coverage v2.6.0 --record pipe.json --offline",
    f"audit_wheel {WHEEL}",
    f"verify_provenance {WHEEL} --without-attestation",
    "verify_provenance real.whl --receipt pipe.json --without-attestation",
    "verify_provenance real.whl --receipt receipt.json --bundle pipe.json --repository a/b",
    "verify_provenance real.whl --receipt receipt.json --trusted-root pipe.json --repository a/b",
    "publish_index . --output site",
    "matrix ./pipe.yaml",
    "matrix v2.6.0 --json pipe.json",
    "build_wheel ./pipe.yaml --dry-run",
    "build_wheel v2.6.0 --dry-run --host pipe.json",
    f"build_companions v2.6.0 --dry-run --torch {WHEEL}",
    "lock ./pipe.yaml",
    "check_mm pipe.mm --recipe v2.6.0",
    "benchmark_mps --device cpu --host pipe.json",
    f"verify_mps --device cpu --known-issues pipe.yaml --python {sys.executable}",
    f"verify_mps {WHEEL} --device cpu",
    "ci outputs --build pipe.json",
    "ci issues --results results",
]


@pytest.mark.parametrize("line", _COMMANDS)
def test_a_pipe_that_nobody_writes_to_is_refused_at_once(
    line: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *arguments = line.split()

    assert main(command, arguments) == UsageError.exit_code

    said = capsys.readouterr().err
    assert "Errno" not in said
    assert "Traceback" not in said
    assert any(words in said for words in ("it is a pipe, not a file", "is not a file", "is not a wheel"))


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_a_device_is_not_opened(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command, arguments in (("triage", [device]), ("doctor", ["--host", device]), ("repro", [device, "case"])):
        assert main(command, arguments) == UsageError.exit_code
        assert "it is a device, not a file" in capsys.readouterr().err


def test_a_result_takes_the_place_of_no_pipe(folder: Path) -> None:
    assert main("matrix", ["v2.6.0", "--json", "pipe.json"]) == UsageError.exit_code

    assert (folder / "pipe.json").is_fifo()


def test_a_result_goes_to_a_pipe_that_the_shell_made_and_takes_no_place_in_dev(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    write_whole(Path(f"/dev/fd/{writer}"), "result")
    os.close(writer)
    write_whole(Path("/dev/null"), "dropped")

    assert os.read(reader, 100) == b"result"
    assert Path("/dev/null").is_char_device()
    os.close(reader)


def test_a_result_on_dev_stdout_does_not_replace_it_and_stands_after_what_was_printed(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from mps_build.common.files import write_whole\n"
        "print('before'); write_whole(Path('/dev/stdout'), 'result\\n'); print('after')"
    )
    scripts = str(Path(__file__).parents[3] / "scripts")
    with (tmp_path / "out").open("wb") as out:
        argv = [sys.executable, "-c", program]
        subprocess.run(argv, env={"PYTHONPATH": scripts}, stdout=out, check=True, timeout=LONGEST_SECONDS)

    assert (tmp_path / "out").read_text() == "before\nresult\nafter\n"


def test_a_pipe_that_took_a_files_place_after_the_look_is_not_waited_for(
    pipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = (tmp_path / "file").write_bytes(b"x") and (tmp_path / "file").stat()
    monkeypatch.setattr(Path, "stat", lambda *_, **__: status)

    with pytest.raises(NotAFile, match="it is a pipe"):
        open_regular(pipe)


def test_a_link_is_followed_only_where_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    link = tmp_path / "link"
    link.symlink_to("file")

    with open_regular(link) as file:
        assert file.read() == b"x"
    with pytest.raises(NotAFile, match="it is a symbolic link"):
        open_regular(link, follow=False)


def test_a_pipe_as_a_lock_or_a_log_is_a_usage_error(pipe: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    os.mkfifo(tmp_path / "work" / "lock")

    with pytest.raises(NotAFile) as lock, Workspace(root=tmp_path / "work").held():
        pass
    with pytest.raises(NotAFile) as log:
        run_logged(Command(argv=("true",)), log=pipe)
    for caught in (lock, log):
        assert "it is a pipe, not a file" in str(refusal(caught.value))


def test_a_lock_still_names_its_holder(tmp_path: Path) -> None:
    held = Workspace(root=tmp_path).held
    with held(), pytest.raises(TreeInUse, match=f"process {os.getpid()}"), held():
        pass


@pytest.mark.parametrize("reader", [load_state, sha256_of, lambda path: copy_whole(path, path.with_name("copy"))])
def test_no_reader_waits(reader: object, pipe: Path) -> None:
    assert callable(reader)
    with pytest.raises((UsageError, NotAFile), match="it is a pipe"):
        reader(pipe)


def test_a_copy_is_no_link(tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    source.write_bytes(b"before")
    copy_whole(source, copy)
    with source.open("r+b") as file:
        file.write(b"after!")

    assert copy.read_bytes() == b"before"
    assert copy.stat().st_ino != source.stat().st_ino


def test_what_was_appended_is_there_again(tmp_path: Path) -> None:
    write_whole(tmp_path / "log", "one\n")
    with open_to_append(tmp_path / "log") as file:
        file.write(b"two\n")
        file.seek(0)
        assert file.read() == b"one\ntwo\n"


def test_a_log_comes_from_a_pipe_of_the_shells() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"FAILED: x.o\n")
    os.close(writer)

    assert read_log_file(f"/dev/fd/{reader}") == "FAILED: x.o\n"
    os.close(reader)


def test_a_pipe_of_the_shells_that_stays_silent_is_a_usage_error() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"FAILED: x.o\n")

    with pytest.raises(UsageError, match=r"nothing was written to it for 0\.2 seconds"):
        read_log_file(f"/dev/fd/{reader}", silence_seconds=0.2)
    os.close(reader)
    os.close(writer)


def test_standard_input_that_stays_silent_is_a_usage_error(tmp_path: Path) -> None:
    """In a process of its own, whose standard input is a pipe that is open at both ends."""
    program = (
        "import os, sys; from mps_build.common.logs.file import read_log_file as read\n"
        "reader, writer = os.pipe(); os.dup2(reader, 0)\n"
        "for name in ('-', '/dev/stdin'):\n"
        "    try: read(name, silence_seconds=0.2)\n"
        "    except Exception as error: print(type(error).__name__, error)\n"
    )
    scripts = str(Path(__file__).parents[3] / "scripts")
    found = capture(Command(argv=(sys.executable, "-c", program), environ={"PYTHONPATH": scripts}), timeout_seconds=20)

    assert found.stdout.count("UsageError") == 2, found
    assert found.stdout.count("nothing was written to it for 0.2 seconds") == 2


# /proc takes no file from anybody, root included; elsewhere a folder without permissions stands for it.
READ_ONLY = Path("/proc/sys") if Path("/proc/sys").is_dir() else Path("/System")


@pytest.fixture(name="places")
def _places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    return tmp_path


def _refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    status = main(words[0], list(words[1:]))
    said = capsys.readouterr().err
    assert status == 2, said
    assert "Traceback" not in said and "bug" not in said
    return said


def test_a_wheelhouse_that_cannot_be_written_is_refused_before_anything_is_made(
    places: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (places / "file").write_text("")

    for place in (READ_ONLY / "wheelhouse", places / "file", places / "file" / "wheelhouse"):
        said = _refused(capsys, "build_wheel", "sample", "--wheelhouse", str(place))
        assert "--wheelhouse" in said and str(place) in said

    assert not (places / "work").exists()


@pytest.mark.parametrize(
    ("variable", "what"), [("MPS_BUILD_WORK", "the work folder"), ("MPS_BUILD_CACHE", "the cache")]
)
def test_work_and_cache_are_tried_too(
    places: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, what: str
) -> None:
    monkeypatch.setenv(variable, str(READ_ONLY / "place"))

    said = _refused(capsys, "build_wheel", "sample")

    assert what in said and f"set {variable}" in said


def test_an_index_in_a_read_only_folder_is_refused(places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheelhouse = places / "wheelhouse"
    wheelhouse.mkdir()
    write_wheel(wheelhouse, torch_files())

    assert "--output" in _refused(capsys, "publish_index", str(wheelhouse), "--output", str(READ_ONLY / "site"))


@pytest.mark.parametrize(
    "refuse",
    [
        lambda folder: (folder / "file" / "below").read_text(),
        lambda folder: (folder / "file").mkdir(),
        lambda folder: folder.read_bytes(),
        lambda folder: (folder / ("n" * 300)).write_text(""),
    ],
)
def test_what_the_system_refuses_is_the_users_to_fix_and_named(
    places: Path, refuse: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (places / "file").write_text("")
    monkeypatch.setattr("mps_build.commands.dev.matrix.all_recipes", lambda: refuse(places))

    status = main("matrix", ["--json", str(places / "answer.json")])

    document = json.loads((places / "answer.json").read_text(encoding="utf-8"))
    assert (status, document["cause"]) == (2, "usage"), document
    assert document["error"].startswith("/")
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_wheel_is_exit_2(places: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel = write_wheel(places, torch_files())
    wheel.chmod(0)

    assert wheel.name in _refused(capsys, "audit_wheel", str(wheel))


def test_a_missing_file_of_ours_is_still_a_bug() -> None:
    assert refusal(FileNotFoundError(2, "No such file or directory", "/ours")) is None
    assert isinstance(refusal(PermissionError(13, "Permission denied", "/theirs")), UsageError)


def test_nothing_is_left_behind_and_nothing_is_made(tmp_path: Path) -> None:
    check_writable(tmp_path / "a" / "b", what="it", hint="none")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("repro", ("{path}", "a-case")),
        ("triage", ("{path}",)),
        ("compare", ("{path}", "{path}")),
        ("adopt", ("{path}", "--name", "x", "--into", ".")),
        ("doctor", ("--host", "{path}")),
        ("op_coverage", ("{path}",)),
    ],
)
def test_a_missing_file_is_named_without_an_error_number(
    command: str, arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "absent.json"

    status = main(command, [one.format(path=path) for one in arguments])

    said = capsys.readouterr().err
    assert status == 2
    assert "absent.json" in said
    assert "Errno" not in said
