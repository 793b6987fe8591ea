"""`pytest -p mps_build.pytest_plugin --mps-compare`: each test that fails on mps is run again on the CPU.

The summary says of each what it is: a limit of the release, a known issue, news, or a failure of the CPU too. It needs
pytest, torch and the standard library; docs/verify/pytest_plugin.md says what it can and cannot do.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from .runs import OUT, WAY, child_arguments, run_again
from .verdicts import Run, Verdict, as_lines, as_markdown, is_accepted, judged, needs_operators


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("mps", "tests on mps, compared with the CPU (mps-build)")
    group.addoption("--mps-compare", action="store_true", help="run each test that fails on mps on the CPU too")
    group.addoption("--mps-compare-json", metavar="FILE", help="write what was found as JSON")
    group.addoption(
        "--mps-compare-accept",
        choices=("limits", "known"),
        help="exit 0 where all failures are limits of the release (known: or known issues)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """In a child that stands for the CPU: before the library's own files are read."""
    if os.environ.get(WAY) == "cpu":
        from .on_the_cpu import map_to_cpu

        map_to_cpu()


def pytest_configure(config: pytest.Config) -> None:
    """Compare in the process that reports, and answer in a child."""
    if way := os.environ.get(WAY):
        config.pluginmanager.register(_Child(way, Path(os.environ[OUT])), "mps_build_child")
    elif config.getoption("--mps-compare") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Comparison(config), "mps_build_comparison")


class _Child:
    """Writes what each test answers, and which has begun."""

    def __init__(self, way: str, out: Path) -> None:
        self._way, self._out = way, out
        self._failed: dict[str, str] = {}

    def _write(self, row: dict[str, Any]) -> None:
        with self._out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, None, None]:
        self._write({"test": item.nodeid, "begins": True})
        row: dict[str, Any] = {}
        if self._way == "operators":
            from .on_the_cpu import checked_operators

            with checked_operators() as seen:
                yield
            row = {"differ": seen.differ, "absent": seen.absent, "unknown": seen.unknown}
        else:
            yield
        self._write({"test": item.nodeid, "failed": self._failed.get(item.nodeid), **row})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.setdefault(report.nodeid, _words(report))


class _Comparison:
    """Remembers what fails, runs it again when all tests have run, and says what it is."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._failed: dict[str, Run] = {}
        self._verdicts: list[Verdict] = []
        self._notes: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.setdefault(report.nodeid, Run(failed=_words(report)))

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._verdicts = self._compared()
        self._write()
        accepted = self._config.getoption("--mps-compare-accept")
        if session.exitstatus == pytest.ExitCode.TESTS_FAILED and is_accepted(self._verdicts, accepted):
            session.exitstatus = pytest.ExitCode.OK

    def _compared(self) -> list[Verdict]:
        config, tests = self._config, list(self._failed)
        if not tests:
            return []
        files = [str(each) for each in getattr(config.option, "file_or_dir", None) or ()]
        options = child_arguments([str(each) for each in config.invocation_params.args], files)
        if config.pluginmanager.hasplugin("xdist"):
            options += ["-n0"]
        if config.pluginmanager.hasplugin("pytest_cov"):
            options += ["--no-cov"]
        place: dict[str, Any] = {"options": options, "folder": config.invocation_params.dir, "root": config.rootpath}
        cpu = run_again("cpu", tests, **place)
        closer = [each for each in tests if needs_operators(self._failed[each], cpu[each])]
        operators = run_again("operators", closer, **place) if closer else {}
        rows = self._known_issues()
        return [judged(each, self._failed[each], cpu.get(each), operators.get(each), rows) for each in tests]

    def _known_issues(self) -> list[dict[str, Any]]:
        try:
            return known_issues()
        except Exception as error:  # a summary without them is worth more than none
            self._notes.append(f"known issues were not read: {error}")
            return []

    def _write(self) -> None:
        if path := self._config.getoption("--mps-compare-json"):
            rows = [
                {"test": each.test, "kind": each.kind, "reason": each.reason, "issues": list(each.issues)}
                for each in self._verdicts
            ]
            document = {"schema": 1, **_circumstances(), "tests": rows}
            Path(path).write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        if page := os.environ.get("GITHUB_STEP_SUMMARY"):
            here = _circumstances()
            where = f"torch {here['torch']}, macOS {here['macos']}, {here['where']}"
            with Path(page).open("a", encoding="utf-8") as file:
                file.write(as_markdown(self._verdicts, where=where))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section("mps compared with the CPU")
        for line in as_lines(self._verdicts) if self._verdicts else ["nothing fails on mps"]:
            terminalreporter.write_line(line)
        for note in self._notes:
            terminalreporter.write_line(note)


def _words(report: pytest.TestReport) -> str:
    """Return what went wrong: the lines that pytest begins with an E, or the last ones."""
    text = report.longreprtext
    said = [line for line in text.splitlines() if line.startswith("E ")]
    return "\n".join(said or text.splitlines()[-5:])


def _circumstances() -> dict[str, str | None]:
    """Return which torch, macOS and device this is; a simulated device says so (scripts/mps_build/simulation)."""
    import torch

    simulated = (
        "official"
        if "MPS_BUILD_KERNEL_SERVER" in os.environ
        else "simulated"
        if "MPS_BUILD_KERNELS" in os.environ
        else None
    )
    return {
        "torch": str(torch.__version__),
        "macos": os.environ.get("MPS_BUILD_MACOS") if simulated else platform.mac_ver()[0] or None,
        "where": simulated or "mac",
    }


def known_issues() -> list[dict[str, Any]]:
    """Return the known issues that hold here: those that `simulate` wrote beside this package, or mps-build's own.

    Raises:
        Exception: they could not be read; mps-build is not installed with what it needs.
    """
    here = _circumstances()
    beside = Path(__file__).with_name("known_issues.json")
    if beside.is_file():
        rows: list[dict[str, Any]] = json.loads(beside.read_text(encoding="utf-8"))
    else:
        from mps_build.common.known_issues import load_issues
        from mps_build.common.recipe.catalogue import data_root

        issues = load_issues(data_root() / "tests/device/known_issues.yaml")
        rows = [{**issue.model_dump(mode="json"), "where": list(issue.places)} for issue in issues]
    return [row for row in rows if _holds(row, here)]


def _holds(row: dict[str, Any], here: dict[str, str | None]) -> bool:
    """Whether a row holds: the chip is not known here, and narrows nothing."""
    return (
        here["where"] in row["where"]
        and "mps" in row["devices"]
        and all(_within(here[name], row.get(name)) for name in ("torch", "macos"))
    )


def _within(version: str | None, wanted: str | None) -> bool:
    from packaging.specifiers import SpecifierSet  # pytest needs it as well
    from packaging.version import Version

    if wanted is None or version is None:
        return wanted is None
    return SpecifierSet(wanted).contains(Version(version).base_version)
