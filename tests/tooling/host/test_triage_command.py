"""The triage command: any file, any bytes, and an exit status of 0 whatever was found."""

from __future__ import annotations

import gzip
import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.common import strict_yaml
from mps_build.common.errors import UsageError
from mps_build.host.triage import explain, render
from mps_build.host.triage.log import may_match, read_log, required_literals
from mps_build.host.triage.rules import CAUSES, load_catalogue

RECORDED = Path(__file__).parents[2] / "recorded"

KILLED = "FAILED: a.o\nclang++: error: unable to execute command: Killed: 9\nninja: build stopped: subcommand failed.\n"
FAULT = "Error: command buffer exited with error status.\n\tInternal Error (0000000e:Internal Error)\n"


def _triage(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    assert main("triage", [*arguments, "--json", str(tmp_path / "out.json")]) == 0
    return dict(json.loads((tmp_path / "out.json").read_text("utf-8")))


def _log(tmp_path: Path, content: bytes | str) -> str:
    path = tmp_path / "a.log"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def test_a_known_cause_comes_with_its_fix_and_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = _triage(tmp_path, _log(tmp_path, KILLED))

    printed = capsys.readouterr().out
    assert document["cause"] == "B59"
    assert document["first_error"] == {"line": 2, "text": "clang++: error: unable to execute command: Killed: 9"}
    assert document["exit_code"] == 0
    assert document["hint"] == document["fix"]
    assert document["category"] is None
    assert "cause B59" in printed
    assert document["fix"] in printed


def test_a_complaint_that_configure_survived_is_not_the_first_error(tmp_path: Path) -> None:
    configure = "bash: line 1: xcrun: command not found\n-- Build files have been written to: /b\n"
    log = _log(tmp_path, configure + "[1/2] Building a.o\nFAILED: a.o\na.cpp:1:2: error: expected ';'\n")

    assert _triage(tmp_path, log)["first_error"]["text"] == "a.cpp:1:2: error: expected ';'"
    assert _triage(tmp_path, _log(tmp_path, configure + "ninja: build stopped\n"))["first_error"]["line"] == 1


def test_every_known_cause_is_listed_and_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = load_catalogue().causes
    listed = _triage(tmp_path, "--causes")["causes"]
    assert sorted(line.split()[0] for line in listed if line.startswith("  ")) == sorted(row.id for row in rows)

    row = rows[0]
    explained = "\n".join(_triage(tmp_path, "--causes", row.id.lower())["causes"])
    assert all(words in explained for words in (row.title, row.cause, row.fix, row.link, "near: "))
    assert any("libomp" in line for line in _triage(tmp_path, "--causes", "LIBOMP rpath")["causes"])
    assert _triage(tmp_path, "--causes")["cause"] is None
    capsys.readouterr()
    assert main("triage", ["--causes", "no such words"]) == 2 and main("triage", []) == 2
    assert "--causes" in capsys.readouterr().err


def test_no_known_cause_is_an_answer_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = _triage(tmp_path, _log(tmp_path, "FAILED: a.o\na.cpp:1:2: error: expected ';'\n"))

    assert document["cause"] is None
    assert document["first_error"]["line"] == 2
    assert "no known cause" in capsys.readouterr().out


@pytest.mark.parametrize(
    "content",
    [
        KILLED.encode() + b"\xff\xfe\x00 no UTF-8 \xc3(\n",
        b"\xef\xbb\xbf" + KILLED.encode(),
        KILLED.encode("utf-16"),
        gzip.compress(KILLED.encode()),
        KILLED.replace("\n", "\r\n").encode(),
    ],
    ids=["broken UTF-8", "UTF-8 with a mark", "UTF-16", "gz", "CRLF"],
)
def test_any_bytes_are_read(tmp_path: Path, content: bytes) -> None:
    assert _triage(tmp_path, _log(tmp_path, content))["cause"] == "B59"


def test_standard_input_is_read_compressed_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for content in (KILLED.encode(), gzip.compress(KILLED.encode())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert _triage(tmp_path, "-")["cause"] == "B59"


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("missing.log", "No such file"),
        (".", "Is a directory"),
        ("cut.gz", "end-of-stream"),
        ("bad.gz", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_usage_error(
    tmp_path: Path, argument: str, words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    packed = gzip.compress(KILLED.encode() * 50)
    Path("cut.gz").write_bytes(packed[:-20])
    Path("bad.gz").write_bytes(packed[:15] + b"\0\0\0\0\0\0" + packed[21:])

    assert main("triage", [argument]) == UsageError.exit_code

    printed = capsys.readouterr().err
    assert words in printed
    assert "hint: give a log file" in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize("argument", ["--recipe=9.9", "--macos=Sonoma", "--torch=newest", "--exit=SIGSEGV"])
def test_an_option_that_means_nothing_is_a_usage_error(tmp_path: Path, argument: str) -> None:
    wanted = 0 if argument == "--recipe=9.9" else UsageError.exit_code  # any version rules rows out, known or not

    assert main("triage", [_log(tmp_path, KILLED), argument]) == wanted


def test_a_recipe_that_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    assert main("triage", [_log(tmp_path, KILLED), "--recipe", "sampel"]) == UsageError.exit_code


def test_a_processs_text_is_judged_with_what_is_known_of_it(tmp_path: Path) -> None:
    log = _log(tmp_path, FAULT)

    document = _triage(tmp_path, log, "--exit", "0")
    assert (document["category"], document["verdict"], document["cause"]) == ("gpu_fault", "case", None)
    assert document["detail"] == {"code": "0000000e", "count": 1}
    assert _triage(tmp_path, log, "--exit", "-11")["category"] == "crash"
    assert _triage(tmp_path, log, "--signal", "SIGBUS")["category"] == "crash"


def test_the_host_may_be_a_recording(tmp_path: Path) -> None:
    recording = tmp_path / "mac.json"
    answer = "ProductName:\t\tmacOS\nProductVersion:\t\t12.7.6\nBuildVersion:\t\t21H1320\n"
    probe = {"argv": ["sw_vers"], "stdout": answer, "stderr": "", "exit": 0}
    recording.write_text(json.dumps({"probes": [probe]}), "utf-8")
    log = _log(tmp_path, "RuntimeError: The MPS backend is supported on MacOS 12.3+.\n")

    document = _triage(tmp_path, log, "--host", str(recording), "--torch", "2.5.1")

    assert document["category"] == "os_too_old"
    assert document["detail"] == {"said_floor": "12.3", "real_floor": "13.0"}


def test_without_facts_of_a_process_both_answers_are_given(tmp_path: Path) -> None:
    error = "OMP: Error #15: Initializing a.dylib, but found b.dylib already initialized.\n"

    document = _triage(tmp_path, _log(tmp_path, f"Successfully installed torch-2.3.0\n{error}"))

    assert (document["cause"], document["category"]) == ("N27", "openmp_duplicate")


def test_a_likeness_to_a_cause_in_a_processs_text_is_reported_as_such(tmp_path: Path) -> None:
    document = _triage(tmp_path, _log(tmp_path, "OSError: [Errno 28] No space left on device\n"), "--exit", "1")

    assert (document["category"], document["cause"], document["also"]) == ("unknown", None, ["N4"])


def test_a_tools_figures_join_the_document(tmp_path: Path) -> None:
    text = "Cacheable calls: 2 / 3 (66.67%)\n  Hits: 1 / 2 (50.00%)\n  Misses: 1 / 2 (50.00%)\n"

    assert _triage(tmp_path, _log(tmp_path, text))["tool_output"]["hits"] == 1


def test_a_good_log_has_no_cause_and_no_first_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = _triage(
        tmp_path, _log(tmp_path, KILLED + "[2/2] Linking CXX shared library a\nSuccessfully built torch\n")
    )

    assert (document["cause"], document["first_error"], document["failed"]) == (None, None, False)
    assert "no failure found" in capsys.readouterr().out


@pytest.mark.slow  # a tenth of it is read by default: test_triage_hostile.py
def test_a_huge_log_is_explained_in_linear_time() -> None:
    step = "[1/2] Building CXX object caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/native/error/Copy.cpp.o\n"
    warning = "a.mm:1:2: warning: 'error' is deprecated: use something else [-Wdeprecated-declarations]\n"

    def cost(lines: int) -> float:
        began = time.process_time()
        found = explain(step * lines + KILLED + warning * lines)
        assert found.cause == "B59"
        assert found.first_error is not None
        assert found.first_error.number == lines + 2
        return time.process_time() - began

    small = cost(15_000)
    assert cost(60_000) < 9 * max(small, 0.02)


@pytest.mark.parametrize(
    "text", ["x" * 5_000_000, "CMake Error at " + "/a" * 2_500_000, "\r" * 100_000, "\x1b[" * 100_000]
)
def test_a_log_that_is_no_log_costs_no_more(text: str) -> None:
    def cost(part: str) -> float:
        began = time.process_time()
        assert explain(part).cause is None
        return time.process_time() - began

    small = cost(text[: len(text) // 4])
    assert cost(text) < 9 * max(small, 0.05)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("id: N1\n", "id: N01x\n"), "string should match pattern"),
        (("id: N2\n", "id: N1\n"), "two rows of one id: N1"),
        (("frame: true", "framed: true"), "unknown key"),
        (("releases: '<2.7'", "releases: 'before 2.7'"), "not a range of versions"),
        (("'Bad CPU type in executable'", "'Bad (CPU type'"), "no pattern: Bad (CPU type"),
        (("'\\[Errno 28\\]'", "'<no_such_macro>'"), "no pattern: <no_such_macro>"),
    ],
)
def test_a_fault_in_the_table_is_reported(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    text = CAUSES.read_text("utf-8")
    assert change[0] in text
    (tmp_path / "causes.yaml").write_text(text.replace(*change, 1), "utf-8")

    with pytest.raises(UsageError) as caught:
        load_catalogue(tmp_path / "causes.yaml")

    assert words in str(caught.value)


def test_what_a_person_reads_holds_cause_line_and_notes() -> None:
    lines = render(explain("ld: warning: dylib (/x/libomp.dylib) was built for newer macOS version (15.0)\n" + KILLED))

    assert lines[0].startswith("cause B59: ")
    assert any(line.startswith("  seen in line 3: ") for line in lines)
    assert any(line.startswith("  note B29: ") for line in lines)


def test_the_words_looked_for_first_never_hide_a_match() -> None:
    rows = load_catalogue()
    specimens = strict_yaml.unchecked((RECORDED / "specimens" / "build_logs.yaml").read_text("utf-8"))
    variants = strict_yaml.unchecked((RECORDED / "triage_variants.yaml").read_text("utf-8"))

    with_words = 0
    for row in (*specimens, *variants):
        text = read_log(row["text"]).text
        for pattern in (part for written in rows.patterns() for part in rows.parts(written) if part):
            with_words += bool(required_literals(pattern.pattern))
            assert may_match(pattern.pattern, text) or not pattern.search(text)
    assert with_words > 0


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("abcd", ("abcd",)),
        ("abcde?", ("abcd",)),
        ("abcd(?:efghijkl)?mnop", ("abcd",)),
        (r"abc\.de[fgh]{2}longest", ("longest",)),
        ("abcd|ab", ()),
        ("abcdef|ghijkl", ("abcdef", "ghijkl")),
        (r"(?<!abcdef)gh\d+ijklm", ("ijklm",)),
        ("[]a]+bcde", ("bcde",)),
        (r"\(duplicate .{0,9}? here", ("(duplicate ",)),
    ],
)
def test_required_words_are_those_that_every_match_holds(pattern: str, words: tuple[str, ...]) -> None:
    assert required_literals(pattern) == words


def test_every_effect_that_a_row_explains_is_a_row_or_a_known_id() -> None:
    rows = load_catalogue()
    known = {cause.id for cause in rows.causes} | {"B28"}

    assert {name for cause in rows.causes for name in cause.explains} <= known
