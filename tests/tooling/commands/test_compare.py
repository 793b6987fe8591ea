"""`compare --fail-on new` ends with 10 where something fails that did not; and one Python for two wheels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.commands import compare
from mps_build.commands.shared.parser import parse_options
from mps_build.common.console import Console
from mps_build.common.records.device_record import write_record
from small_records import case, record

COUNTS = {"kernels": 2, "compiled": 2, "bound": 2, "run": 2}


def run(tmp_path: Path, before: Any, after: Any, *more: str) -> tuple[int, dict[str, Any]]:
    paths = tmp_path / "before.json", tmp_path / "after.json"
    for path, each in zip(paths, (before, after), strict=True):
        path.write_text(json.dumps(each), encoding="utf-8") if isinstance(each, dict) else write_record(each, path)
    answer = tmp_path / "answer.json"
    status = main("compare", [*map(str, paths), *more, "--json", str(answer)])
    return status, json.loads(answer.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ("passed", "failed", ["a"]),
        ("skipped", "crashed", ["a"]),
        ("known", "failed", ["a"]),
        ("passed", "known", []),
        ("failed", "failed", []),
        ("failed", "passed", []),
        (None, "failed", ["a"]),
    ],
)
def test_a_new_failure_has_an_exit_status_of_its_own(
    tmp_path: Path, before: str | None, after: str, new: list[str]
) -> None:
    sides = record(*([case("a", before)] if before else []), case("z", "passed")), record(case("a", after))

    status, document = run(tmp_path, *sides, "--fail-on", "new")

    assert (status, document["new_failures"]) == (10 if new else 0, new)
    assert document["cause"] == ("regressed" if new else None)
    assert run(tmp_path, *sides)[0] == 0, "only with the option"


def kernels(*rows: tuple[str, str]) -> dict[str, Any]:
    listed = [{"name": name, "outcome": outcome, "library": "metal_basic", "reason": "off"} for name, outcome in rows]
    return {"target": "t.whl", "torch": "2.15.0", "seed": 0, "coverage": COUNTS, "kernels": listed}


def test_runs_of_kernels_are_compared_too(tmp_path: Path) -> None:
    before = kernels(("a", "passed"), ("b", "wrong"), ("c", "known"))
    after = kernels(("a", "race"), ("b", "passed"), ("c", "known"))

    status, document = run(tmp_path, before, after, "--fail-on", "new")

    assert (status, document["new_failures"]) == (10, ["a"])
    assert [each["id"] for each in document["newly_passing"]] == ["b"]
    assert run(tmp_path, before, before, "--fail-on", "new")[0] == 0


def test_wheels_have_no_failures(tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"

    assert main("compare", ["a.whl", "b.whl", "--fail-on", "new", "--json", str(answer)]) == 2
    assert "about records" in json.loads(answer.read_text(encoding="utf-8"))["error"]


def test_two_wheels_named_by_version_are_taken_for_one_python(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """2.14.1 ends at 3.14, 2.15.0 has 3.15 too."""
    compared = []

    def find_wheel(side: str, python: str | None, console: Console, **_: object) -> tuple[Path, bool]:
        compared.append((side, python))
        tag = "cp" + (python or {"torch==2.14.1": "3.14", "torch==2.15.0": "3.15"}[side]).replace(".", "")
        return Path(f"torch-{side.partition('==')[2]}-{tag}-{tag}-macosx_14_0_arm64.whl"), True

    monkeypatch.setattr(compare, "find_wheel", find_wheel)
    monkeypatch.setattr(Path, "is_file", lambda path: path.suffix == ".whl")

    options = parse_options("compare", ["torch==2.14.1", "torch==2.15.0"])
    found = compare._wheels(["torch==2.14.1", "torch==2.15.0"], options, Console())

    assert [path.name.split("-")[2] for path in found] == ["cp314", "cp314"]
    assert "for Python 3.14, the newest that both have" in capsys.readouterr().out
    assert [path.name.split("-")[2] for path in compare._wheels(["torch==2.15.0"] * 2, options, Console())] == [
        "cp315"
    ] * 2
    assert compared[-1] == ("torch==2.15.0", None)
