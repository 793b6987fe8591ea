"""PyTorch's own tests in children under the watchdog: what came of each, what a later run does, and the page."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from mps_build.common.errors import OwnFault
from mps_build.verify.suite.request import Limits
from mps_build.verify.upstream.outcomes import UpstreamOutcome, read_outcomes, read_sizes
from mps_build.verify.upstream.run import UpstreamRequest, run_upstream
from mps_build.verify.upstream.summary import (
    UpstreamExplanation,
    explained,
    load_upstream_explanations,
    summed_up,
    upstream_page,
)

_TESTS = """
import beside  # a package that lies beside the interpreter's own
import os, platform, subprocess, time, unittest
class TestMPS(unittest.TestCase):
    def test_passes(self):
        self.assertEqual(platform.mac_ver()[0], "15.2")
        self.assertEqual(subprocess.check_output(["sysctl", "-n", "hw.memsize"]), b"4294967296\\n")
        with open("ran", "a") as file: file.write("x")
    def test_fails(self): self.assertEqual(1, 2)
    @unittest.expectedFailure
    def test_fails_as_expected(self): self.fail()
    @unittest.expectedFailure
    def test_passes_unexpectedly(self): pass
    @unittest.skip("not here")
    def test_is_skipped(self): pass
    def test_crashes(self): os.abort()
    def test_hangs(self): time.sleep(600)
    def test_zz_is_last(self): pass
"""
_CLASSES = """
import unittest
class TestCPU(unittest.TestCase):
    def test_it(self): raise SystemError
class TestMPS(unittest.TestCase):
    def test_it(self): pass
"""


@pytest.fixture(scope="module")
def request_of(tmp_path_factory: pytest.TempPathFactory) -> UpstreamRequest:
    home = tmp_path_factory.mktemp("upstream")
    (home / "pytest.ini").write_text("[pytest]\nxfail_strict = True\n")
    (home / "test" / "nn").mkdir(parents=True)
    (home / "packages").mkdir()
    (home / "packages" / "beside.py").write_text("")
    (home / "test" / "test_mps.py").write_text(_TESTS)
    (home / "test" / "nn" / "test_other.py").write_text(_CLASSES)
    return UpstreamRequest(
        interpreter=Path(sys.executable),
        environ={
            **os.environ,
            "MPS_BUILD_MACOS": "15.2",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(home / "packages"),
        },
        tests=home / "test",
        files=("test_mps.py", "nn/test_other.py"),
        folder=home / "record",
        limits=Limits(memory_bytes=4 << 30, case_seconds=2),
    )


@pytest.fixture(scope="module")
def outcomes(request_of: UpstreamRequest) -> dict[str, UpstreamOutcome]:
    run_upstream(request_of)
    return read_outcomes(request_of.folder)


def test_a_crash_and_a_hang_cost_one_test_each_and_the_next_goes_on(outcomes: dict[str, UpstreamOutcome]) -> None:
    found = {test.id.rpartition("::")[2]: test.outcome for test in outcomes.values() if test.file == "test_mps.py"}

    assert found == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_fails_as_expected": "xfailed",
        "test_passes_unexpectedly": "failed",
        "test_is_skipped": "skipped",
        "test_crashes": "crashed",
        "test_hangs": "timeout",
        "test_zz_is_last": "passed",
    }
    assert "SIGABRT" in outcomes["test_mps.py::TestMPS::test_crashes"].reason


def test_of_other_files_only_the_classes_for_mps_are_run(outcomes: dict[str, UpstreamOutcome]) -> None:
    assert [test for test in outcomes if test.startswith("nn/")] == ["nn/test_other.py::TestMPS::test_it"]


def test_what_has_an_outcome_is_not_run_again(
    request_of: UpstreamRequest, outcomes: dict[str, UpstreamOutcome]
) -> None:
    ran: list[UpstreamOutcome] = []

    run_upstream(request_of, ran.append)

    assert ran == []
    assert (request_of.tests / "ran").read_text() == "x"


@pytest.mark.slow
def test_parts_and_processes_share_the_tests(request_of: UpstreamRequest, tmp_path: Path) -> None:
    chosen = replace(request_of, files=("test_mps.py",), only=("*::test_*pass*", "*::test_f*"), folder=tmp_path)
    halves = []
    for part in (0, 1):
        ran: list[UpstreamOutcome] = []
        run_upstream(replace(chosen, part=(part, 2), jobs=2), ran.append)
        halves.append({test.id for test in ran})

    assert [len(half) for half in halves] == [2, 2]
    assert Counter(test.outcome for test in read_outcomes(tmp_path).values()) == {
        "passed": 1,
        "failed": 2,
        "xfailed": 1,
    }
    assert read_sizes(tmp_path) == {"test_mps.py": 4}


def test_a_failure_has_the_first_row_that_fits_its_id_and_its_words(outcomes: dict[str, UpstreamOutcome]) -> None:
    rows = [
        UpstreamExplanation(id="other", kind="limit", reason="-", message="another", tests=("*::test_fails",)),
        UpstreamExplanation(id="old", kind="limit", reason="-", macos="<15", tests=("*",)),
        UpstreamExplanation(id="numbers", kind="bug", reason="-", lines=("a/B.mm:1",), tests=("*::test_fails",)),
        UpstreamExplanation(id="surprise", kind="limit", reason="a|b", message="Unexpected", tests=("*",)),
    ]

    found = explained(outcomes.values(), rows, macos="15.2")
    sizes = {"test_mps.py": 11, "test_old.py": 99}
    summary = summed_up(
        outcomes.values(), rows, sizes, release="2.6.0", macos="15.2", date="2026-11-26", ran_on="two machines"
    )

    assert {test.rpartition("::")[2]: row.id if row else "" for test, row in found.items()} == {
        "test_fails": "numbers",
        "test_passes_unexpectedly": "surprise",
        "test_crashes": "",
        "test_hangs": "",
    }
    assert (summary.ran, summary.passed, summary.new) == (8, 4, 2)
    page = upstream_page(summary, rows)
    assert "4 of 8 tests passed (50.0%), 2 fail without a reason." in page
    assert "1 leave themselves out. These are 9 of the files' 12 tests for mps; 3 have no outcome yet." in page
    assert "They ran on two machines." in page
    assert "| test_mps.py | TestMPS | 7 | 3 | 1 | 1 |  |  | 2 | 1 |" in page
    assert "| surprise | limit | 1 | a\\|b |" in page
    assert "Official wheels" not in page
    both = upstream_page(summary, rows, [summary.model_copy(update={"release": "2.15.0"})])
    assert both.startswith(page)
    assert "### 2.15.0\n\nPyTorch 2.15.0 as macOS 15.2" in both
    assert "| other |" not in page


def test_a_file_that_cannot_be_imported_is_no_verdict_on_its_tests(request_of: UpstreamRequest, tmp_path: Path) -> None:
    (request_of.tests / "test_broken.py").write_text("import a_module_that_is_not_there")

    with pytest.raises(OwnFault, match=r"test_broken.py: no test could be run: .*a_module_that_is_not_there"):
        run_upstream(replace(request_of, files=("test_broken.py",), folder=tmp_path))

    assert read_outcomes(tmp_path) == {}


def test_the_line_that_says_most_is_said() -> None:
    reason = (
        "Traceback\n  File\nRuntimeError: no -[MPSGraph x]\n\nException: Caused by sample input at 1\n\nTo run it: …\n"
    )
    long_form = ">   f()\nE           Exception: no 'Bool'\nE\nE   To run it: …\n\na.py:1626: Exception"

    assert UpstreamOutcome(id="a", outcome="failed", reason=reason).error == "RuntimeError: no -[MPSGraph x]"
    assert UpstreamOutcome(id="a", outcome="failed", reason=long_form).error == "Exception: no 'Bool'"
    assert (
        UpstreamOutcome(id="a", outcome="timeout", reason="ended by the watchdog: x").error
        == "ended by the watchdog: x"
    )


def test_a_bug_names_where_it_is() -> None:
    with pytest.raises(ValueError, match="a bug needs a public link, or lines of the host code"):
        UpstreamExplanation(id="a", kind="bug", reason="-", tests=("*",))


def test_the_rows_can_be_read() -> None:
    assert load_upstream_explanations()


def test_a_folder_without_outcomes_is_no_success(tmp_path: Path) -> None:
    program = Path(__file__).parents[3] / "benchmarks" / "upstream_tests.py"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (program.parents[1] / "scripts", program.parent)))}

    argv = (sys.executable, str(program), "--sum", "--record", str(tmp_path))
    done = subprocess.run(argv, check=False, env=environ, capture_output=True, text=True)

    assert done.returncode == 1 and "no test was run" in done.stderr
