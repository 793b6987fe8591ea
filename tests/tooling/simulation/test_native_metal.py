"""The software Metal's rules, without torch: what it refuses, when it runs, what it protects (`metal_rules.mm`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.common.process import Captured, Command, capture
from mps_build.kernels.machine.build import SOURCES as RUNTIME
from mps_build.simulation.availability import read_availability, table_source
from mps_build.simulation.builder.ninja_file import C_FLAGS, NATIVE, OBJECTIVE_C
from mps_build.wheel_build.mm.compiler import find_zig
from mps_build.wheel_build.objc import write_frameworks

pytestmark = pytest.mark.zig

_RULES = Path(__file__).with_name("metal_rules.mm")
_PARTS = ("elf", "runtime", "foundation", "metal")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the scenarios as a program: the Objective-C++ as one file, since its headers cost the time."""
    folder = tmp_path_factory.mktemp("metal")
    frameworks = write_frameworks(folder / "frameworks")
    sources = [path for part in _PARTS for path in sorted((NATIVE / part).glob("*")) if path.suffix in (".cpp", ".mm")]
    whole = folder / "whole.mm"
    mixed = [path for path in sources if path.suffix == ".mm"]
    whole.write_text("".join(f'#include "{path}"\n' for path in (*mixed, _RULES)), encoding="utf-8")
    table = folder / "availability.cpp"
    table.write_text(table_source(read_availability()), encoding="utf-8")
    plain = [str(path) for path in (table, *sources) if path.suffix == ".cpp"]
    zig, objects = str(find_zig()), []
    for path in sorted(RUNTIME.glob("*.c")):
        objects.append(str(folder / f"{path.stem}.o"))
        _run(zig, "cc", *C_FLAGS, "-c", "-o", objects[-1], str(path))
    folders = (f"-I{path}" for path in (NATIVE, NATIVE / "metal", RUNTIME))
    includes = (*folders, "-include", str(NATIVE / "include/linux_prefix.h"))
    after = (word for path in (NATIVE / "include", frameworks.include) for word in ("-idirafter", str(path)))
    flags = ("-std=gnu++17", "-O0", "-fno-sanitize=all", *OBJECTIVE_C, *includes, *after)
    out = folder / "rules"
    _run(zig, "c++", *flags, "-rdynamic", "-o", str(out), *plain, str(whole), *objects, "-lpthread", "-ldl")
    return out


def _run(*argv: str) -> None:
    done = capture(Command(argv=argv), timeout_seconds=600)
    assert done.ok, done.stderr[-4000:]


def _ran(program: Path, scenario: str, timing: int | None = None, macos: str | None = None) -> Captured:
    variables = {"MPS_BUILD_TIMING": timing, "MPS_BUILD_MACOS": macos}
    environ = {name: str(value) for name, value in variables.items() if value is not None}
    return capture(Command(argv=(str(program), scenario), environ=environ), timeout_seconds=60)


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("after_a_commit", "an encoder of a command buffer that was committed"),
        ("late_encoder", "an encoder is used after endEncoding"),
        ("committed_again", "a command buffer is committed again"),
        ("open_encoder", "a command buffer is committed with an encoder that was not ended"),
        ("not_committed", "waitUntilCompleted of a command buffer that was not committed"),
        ("wrong_index", "index 31 of a buffer is not below 31"),
        ("wrong_offset", "offset 17 lies behind a buffer of 16 bytes (index 0)"),
        ("not_a_buffer", "what is bound at index 0 is not a buffer"),
        ("nothing_bound", "reads or writes outside of its buffers (thread 0, 0, 0, nothing is bound at index 0)"),
        ("nothing_bound_to_much", "kernel doubled: nothing is bound at index 0"),
        ("written_where_nothing_is_bound", "kernel doubled: it reads or writes outside of its buffers"),
        ("too_small", "kernel doubled: its argument at index 0 needs 24 bytes, and has 16"),
        ("outside", "kernel doubled: it reads or writes outside of its buffers (thread 4, 0, 0; address"),
        ("outside_before_others", "kernel doubled: it reads or writes outside of its buffers (thread 4, 0, 0; address"),
        ("outside_of_a_copy", "copyFromBuffer: 32 bytes from 0 of 16 to 0 of 32"),
        ("outside_of_threadgroup_memory", "kernel doubled: it reads or writes outside of its buffers"),
        ("many_bytes", "setBytes takes 4096 bytes at most, not 4097"),
        ("many_threads", "doubled is dispatched with 2048 threads of a threadgroup, of at most 1024"),
        ("not_resident", "doubled reaches a buffer by an argument buffer, and useResource was not sent for it"),
        ("not_signalled", "encodeWaitForEvent: nothing before it signals what is waited for"),
        ("unknown_selector", "there is no -[SimDevice performSelector:withObject:]"),
        ("names_the_operator", "software Metal: aten::add: kernel doubled: it reads or writes outside of its buffers"),
    ],
)
def test_what_metal_refuses_is_an_error_that_says_what_was_wrong(program: Path, scenario: str, words: str) -> None:
    said = _ran(program, scenario)

    assert said.ok, said.stderr
    assert said.stdout.startswith("software Metal: ")
    assert words in said.stdout


@pytest.mark.parametrize(
    ("scenario", "since", "older", "what"),
    [
        ("newer_method", "13.0", "12.3", "-[MTLBuffer gpuAddress]"),
        ("newer_setter", "15.0", "14.4", "-[MTLCompileOptions setMathMode:]"),
        ("newer_getter", "13.3", "13.2", "-[MTLCompileOptions maxTotalThreadsPerThreadgroup]"),
        ("newer_class", "14.0", "13.3", "the class MPSGraphFFTDescriptor"),
        ("newer_constant", "14.0", "13", "MTLLanguageVersion3_1"),
    ],
)
def test_what_a_macos_lacks_is_absent(program: Path, scenario: str, since: str, older: str, what: str) -> None:
    known = scenario != "newer_constant"  # what one can ask for

    assert _ran(program, scenario, macos=since).stdout == "1\n" * known
    refused = f"software Metal: {what} exists since macOS {since}, this answers as {older}\n"
    assert _ran(program, scenario, macos=older).stdout == "0\n" * known + refused


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ("canary_filled", "a5a5a5a5"),
        ("cleared", "0"),
        ("constants", "7 8 7 software Metal: written needs the function constant 2"),
        ("private_storage", "(nil)"),
        ("resident", "8"),
        ("released_early", "42"),
        ("signalled", "3"),
        ("without_an_end_of_waiting", "completed"),
        ("nothing_bound_to_a_reference", "10"),
        ("threadgroup_memory", "done"),
        ("three_numbers", "6"),
        ("after_a_refusal", "42"),
        ("semaphores", "-1 3"),
        ("placed_in_a_heap", "1 1 0"),
        ("signalled_in_time", "01"),
        ("collections", "1 1 2 0 software Metal 1 MTLLibraryErrorDomain"),
        ("queued_at_the_end", "ran with 7, waited"),
    ],
)
@pytest.mark.parametrize("timing", [None, 3])
def test_what_metal_allows_works(program: Path, scenario: str, said: str, timing: int | None) -> None:
    assert _ran(program, scenario, timing).stdout.strip() == said


@pytest.mark.parametrize("scenario", ["behind", "used_after_its_release"])
def test_memory_behind_a_buffer_and_after_its_release_is_closed(program: Path, scenario: str) -> None:
    answer = _ran(program, scenario)

    assert not answer.ok
    assert "software Metal: signal 11 (Segmentation fault), operator (none), selector (none)\n" in answer.stderr
    assert "main" in answer.stderr.splitlines()[-1]


def test_a_copy_to_freed_memory_of_the_cpu_changes_nothing_else_and_is_said(program: Path) -> None:
    plain, drawn = (_ran(program, "written_late", timing) for timing in (None, 1))

    assert plain.stdout == "4 3 0\n0\n"
    words = "copyFromBuffer writes to a tensor of the CPU that was freed before the copy ran (pytorch/pytorch#139550)"
    assert plain.stderr.startswith(f"software Metal: {words}: on a Mac another's memory may change.")
    assert drawn.stdout == f"software Metal: {words.replace(' writes', ': writes')}\n"


def test_a_copy_from_freed_memory_of_the_cpu_reads_the_canary(program: Path) -> None:
    assert _ran(program, "read_late").stdout == "4 a5a5a5a5 0\n0\n"


def test_threads_run_in_rows_where_their_order_is_plain(program: Path) -> None:
    assert _ran(program, "in_rows").stdout.strip() == "4 4 2 024681012141618"
    drawn = {_ran(program, "in_rows", timing).stdout.strip() for timing in range(1, 7)}
    assert drawn == {"4 4 2 024681012141618", "024681012141618"}


def test_the_thread_of_a_row_that_reaches_too_far_is_named(program: Path) -> None:
    said = _ran(program, "outside_in_a_row").stdout

    assert "kernel doubled: it reads or writes outside of its buffers (thread 6, 0, 0; address" in said


def test_nothing_runs_before_its_commit(program: Path) -> None:
    before, _, waited = _ran(program, "runs_after_the_commit").stdout.split()

    assert (before, waited) == ("21", "42")


def test_a_drawn_timing_shows_what_does_not_wait(program: Path) -> None:
    plain, one = (_ran(program, "unwaited", timing).stdout.strip() for timing in (None, 1))

    assert plain.count("2") > one.count("2")  # on a busy machine some are late anyway
    assert one.count("1") > 6


def test_a_drawn_timing_replays(program: Path) -> None:
    one, again, other = (_ran(program, "order_of_threads", timing).stdout for timing in (1, 1, 2))

    assert one == again != other


def test_a_drawn_timing_changes_the_order_of_threads(program: Path) -> None:
    plain, one = (_ran(program, "order_of_threads", timing).stdout.split() for timing in (None, 1))

    assert set(plain) == {"01234567"}
    assert len(set(one)) > 2 and all(sorted(each) == list("01234567") for each in one)
