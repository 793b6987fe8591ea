"""`op_coverage`: what a verification measured of each operator, the session, real trees and the official wheel."""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from git_history import ENVIRON, repository
from mps_build import cli
from mps_build.commands.op_coverage import unpack_needed
from mps_build.common.errors import SourceError
from mps_build.common.records.device_record import Case, Record, Torch, write_record
from mps_build.inspection.coverage.rules import classify, measure
from mps_build.inspection.coverage.tree import NEEDED, facts_of_tree
from small_records import RECORDED, operator, recorded


def record(*cases: Case, device: str = "mps") -> Record:
    return Record(
        tool="t",
        statement="On this Mac.",
        verdict="regressed",
        exit_code=10,
        partial=False,
        device=device,
        target={},
        started="2026-11-21T00:00:00+00:00",
        seconds=1.0,
        cases=cases,
    )


def case(name: str, outcome: str, reason: str = "") -> Case:
    return Case.model_validate({"id": name, "layer": "layouts", "outcome": outcome, "reason": reason})


def test_a_record_adds_what_was_measured_of_each_operator() -> None:
    reported = measure(
        record(
            case("add:layout:3", "passed"),
            case("add:gradient:4", "failed", "differs"),
            case("elu:second_gradient:1", "failed", "differs"),
            case("elu:dtype:1", "passed"),
            case("cumsum:out:0", "failed", "differs"),
            case("layout-topk-grad", "known", "differs"),
            case(
                "kthvalue:common:0",
                "skipped",
                "The operator 'aten::kthvalue.values' is not currently implemented for the MPS device",
            ),
            case("linalg_svd:common:0", "passed"),
            case("issue-131750", "failed", "differs"),
        ),
        ("add.Tensor", "add_.Tensor", "elu", "elu_backward", "cumsum", "cumsum.out", "topk", "kthvalue", "linalg_svd"),
        on_cpu=frozenset({"linalg_svd", "untouched"}),
    )

    assert {name: each.word for name, each in reported.items()} == {
        "add.Tensor": "suspect",  # right in one case, wrong in another
        "elu": "suspect",
        "elu_backward": "wrong",  # every case that asks it fails
        "cumsum.out": "wrong",
        "topk": "wrong",
        "kthvalue.values": "refused",
        "linalg_svd": "fell back",
    }


def test_the_words_of_a_fallback_name_its_operator() -> None:
    said = (
        "UserWarning: The operator 'aten::col2im' is not currently supported on the MPS backend "
        "and will fall back to run on the CPU."
    )

    assert measure(record(case("x", "passed", said)), ())["col2im"].word == "fell back"


def test_the_suite_describes_most_operators_that_mps_runs_by_the_names_of_the_dispatcher() -> None:
    files = (Path(__file__).parents[2] / "device" / "operators").glob("*.py")
    described = set(re.findall(r"\w+", " ".join(file.read_text(encoding="utf-8") for file in files)))
    runs = [row.name for row in classify(recorded("v2.6.0-source")) if row.status == "kernel"]
    cases = [
        case(f"{name}:{way}:0", "passed") for name in described for way in ("common", "gradient", "out", "inplace")
    ]

    assert len(measure(record(*cases), runs)) > 0.8 * len(runs)


def test_the_session_compares_saved_documents_and_writes_a_page_that_needs_nothing_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, answer = tmp_path / "page.html", tmp_path / "answer.json"
    sides = [str(RECORDED / "v1.13.1-source.json"), "--against", str(RECORDED / "v2.6.0-source.json")]
    status = cli.main("op_coverage", [*sides, "--html", str(page), "--json", str(answer)])

    printed, document = capsys.readouterr().out, json.loads(answer.read_text())
    assert status == 0
    assert "MPS runs 473 of the 1112 overloads that have a CPU kernel (42.5%)" in printed
    assert Counter(row["status"] for row in document["operators"])["kernel"] == 473
    assert len(document["changes"]) == 819
    html = page.read_text()
    assert "42.5% → 66.1%" in html
    assert "http" not in html.replace("http://www.w3.org", "").replace("http-equiv", "")
    again = cli.main("op_coverage", [str(answer), "--json", str(tmp_path / "again.json")])
    assert (again, json.loads((tmp_path / "again.json").read_text())["facts"]) == (0, document["facts"])


def test_a_record_of_another_torch_is_joined_with_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, answer = tmp_path / "record.json", tmp_path / "answer.json"
    write_record(record(case("cumsum:layout:3", "passed")).model_copy(update={"torch": Torch(version="2.11.0")}), path)
    sides = [str(RECORDED / "v2.6.0-source.json"), "--record", str(path)]
    status = cli.main("op_coverage", [*sides, "--json", str(answer), "--html", str(tmp_path / "page.html")])

    printed, document = capsys.readouterr().out, json.loads(answer.read_text())
    assert status == 0
    assert "the record is of torch 2.11.0, the operators are of 2.6.0a0" in printed
    assert {row["name"]: row.get("measured") for row in document["operators"]}["cumsum"] == "right"
    assert "On this Mac." in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("make", "status", "said"),
    [
        ("folder", 4, "is not PyTorch source tree: aten/src/ATen/native/native_functions.yaml is missing"),
        ("old", 12, "has no torchgen/, so it is older than 1.12"),
        ("broken", 4, "does not read native_functions.yaml"),
        ("text.json", 2, "text.json:1: is not JSON"),
        ("other.json", 2, "is not a document of op_coverage"),
        ("damaged.json", 2, "is a damaged document"),
        ("torch-1-py3-none-any.whl", 2, "cannot be read: is not a zip file"),
        ("empty-1-py3-none-any.whl", 2, "holds no torch/include/ATen/ops/*_ops.h"),
        ("without-1-py3-none-any.whl", 12, "was built without MPS"),
        ("sample", 2, "sample is not PyTorch"),
        ("v9.9.9", 2, "no recipe 'v9.9.9'"),
    ],
)
def test_bad_input_says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: str, status: int, said: str
) -> None:
    path = tmp_path / make
    native = path / "aten" / "src" / "ATen" / "native"
    if make in ("folder", "old", "broken"):
        native.mkdir(parents=True)
    if make in ("old", "broken"):
        (native / "native_functions.yaml").write_text("- func: abs(Tensor self) -> Tensor\n")
    if make == "broken":
        (path / "torchgen").mkdir()
        (path / "torchgen" / "__init__.py").write_text("raise RuntimeError('not this Python')\n")
    documents = {"text.json": "no JSON", "other.json": "{}", "damaged.json": '{"schema": "mps-build/op_coverage/1"}'}
    if make in documents:
        path.write_text(documents[make])
    if make.startswith("torch-"):
        path.write_text("no zip")
    if make.startswith(("empty-", "without-")):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("torch/version.py", "")
            if make.startswith("without-"):
                archive.writestr("torch/include/ATen/ops/abs_ops.h", operator("abs", "", "at::Tensor", "int a"))
    argument = make if make in ("sample", "v9.9.9") else str(path)

    assert cli.main("op_coverage", [argument]) == status
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_of_a_commit_only_what_is_read_is_unpacked(tmp_path: Path) -> None:
    files = {f"{folder}/file.txt": folder for folder in NEEDED if folder != "version.txt"} | {"version.txt": "9.9.9\n"}
    commit = repository(tmp_path / "upstream", {**files, "third_party/large.txt": "not needed"})
    (tmp_path / "tree").mkdir()
    unpack_needed(tmp_path / "upstream", commit, tmp_path / "tree", ENVIRON)

    found = {
        path.relative_to(tmp_path / "tree").as_posix() for path in (tmp_path / "tree").rglob("*") if path.is_file()
    }
    assert found == set(files)


def test_a_commit_that_is_no_pytorch_is_said(tmp_path: Path) -> None:
    commit = repository(tmp_path / "upstream", {"README": "hello"})

    with pytest.raises(SourceError, match="cannot be read as PyTorch"):
        unpack_needed(tmp_path / "upstream", commit, tmp_path, ENVIRON)


TREES = os.environ.get("MPS_BUILD_TREES")


@pytest.mark.slow
@pytest.mark.skipif(not TREES, reason="MPS_BUILD_TREES names no folder with the real 1.13.1 and 2.6.0 trees")
@pytest.mark.parametrize("version", ["1.13.1", "2.6.0"])
def test_a_real_tree_says_what_was_recorded_of_it(version: str) -> None:
    reported = facts_of_tree(Path(TREES or "") / version, label=f"PyTorch {version}, source")

    assert reported.document() == recorded(f"v{version}-source").document()


@pytest.mark.slow
def test_the_official_wheel_says_what_was_recorded_of_it(tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    status = cli.main("op_coverage", ["torch==2.6.0", "--python", "3.12", "--json", str(answer)])

    assert status == 0
    assert json.loads(answer.read_text())["facts"] == recorded("v2.6.0-wheel").document()
