"""Which operators MPS runs: the dispatcher's order, the readers of sources, headers and verdicts, and real torches.

`tests/recorded/op_coverage` holds what was read of the real 1.13.1 and 2.6.0 trees and of the official 2.6.0 wheel.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from git_history import ENVIRON, repository
from mps_build import cli
from mps_build.coverage.hand_registrations import read_registrations
from mps_build.coverage.headers import read_headers
from mps_build.coverage.measured import load_touch_map, measure
from mps_build.coverage.model import ByHand, Facts, from_document
from mps_build.coverage.rules import Row, classify, compare, compare_kernels, count, gaps
from mps_build.coverage.tree import NEEDED, facts_of_tree
from mps_build.coverage.wheel import Compiled, facts_of_wheel
from mps_build.errors import SourceError
from mps_build.record import Case, Record, Torch, write_record
from mps_build.verbs.op_coverage import unpack_needed

RECORDED = Path(__file__).parents[1] / "recorded" / "op_coverage"
TOUCH_MAP = Path(__file__).parents[1] / "device" / "touch_map.json"


def recorded(name: str) -> Facts:
    return from_document(json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8")), named=name)


def facts(label: str = "a", **registered: str) -> Facts:
    return Facts(
        label=label,
        kind="source",
        version="9.9",
        registered={key: frozenset(names.split()) for key, names in registered.items()},
    )


def statuses(rows: tuple[Row, ...]) -> dict[str, str]:
    return {row.name: row.status for row in rows}


def test_the_order_is_the_dispatchers_own_kernel_then_composites_then_the_fallback() -> None:
    found = classify(
        facts(
            MPS="add.out both",
            CPU="add.out svd both lonely",
            CUDA="svd",
            CompositeExplicitAutograd="zeros both",
            CompositeImplicitAutograd="dropout zeros",
        )
    )

    assert statuses(found) == {
        "add.out": "kernel",
        "both": "kernel",
        "dropout": "composite_implicit",
        "lonely": "falls_back_on_demand",
        "svd": "falls_back_on_demand",
        "zeros": "composite_explicit",
    }
    assert [row.name for row in gaps(found)] == ["svd"]


def test_a_generated_composite_is_worth_what_the_operator_it_calls_is_worth() -> None:
    told = Facts(
        label="a",
        kind="source",
        version="9.9",
        registered={
            "MPS": frozenset({"abs.out"}),
            "CPU": frozenset({"erfc.out", "abs.out"}),
            "CompositeExplicitAutogradNonFunctional": frozenset({"abs", "erfc", "round_trip"}),
            "CompositeExplicitAutograd": frozenset({"erfc_copy.out", "other"}),
        },
        through={
            "abs": "abs.out",
            "erfc": "erfc.out",
            "erfc_copy.out": "erfc",
            "round_trip": "other",
            "other": "round_trip",
        },
    )
    rows = {row.name: row for row in classify(told)}

    assert (rows["abs"].status, rows["abs"].through) == ("composite_explicit", "abs.out")
    assert rows["erfc"].status == rows["erfc_copy.out"].status == "falls_back_on_demand"
    assert rows["round_trip"].status == "composite_explicit"  # a circle ends, and says no more than it knows


def test_what_is_registered_by_hand_goes_before_what_torchgen_wrote() -> None:
    told = Facts(
        label="a",
        kind="source",
        version="9.9",
        registered={"MPS": frozenset({"sgn.out"}), "CPU": frozenset({"sgn.out", "svd", "conv", "mine"})},
        by_hand=(
            ByHand(operator="sgn.out", falls_back=True, where="x:1"),
            ByHand(operator="svd", falls_back=True, where="x:2"),
            ByHand(operator="conv", falls_back=False, refuses=True, where="x:3"),
            ByHand(operator="mine", falls_back=False, where="x:4"),
            ByHand(operator="coalesce", falls_back=False, where="x:5", key="SparseMPS"),
        ),
    )

    assert statuses(classify(told)) == {
        "sgn.out": "falls_back_always",
        "svd": "falls_back_always",
        "conv": "refused",
        "mine": "kernel",
        "coalesce": "elsewhere",
    }


def test_1_13_1_against_2_6_0_every_difference_has_a_reason() -> None:
    old, new = recorded("v1.13.1-source"), recorded("v2.6.0-source")
    before, after = count(classify(old)), count(classify(new))
    changes = compare(old, new)

    assert (before.overloads["kernel"], after.overloads["kernel"]) == (473, 707)
    assert (before.cpu_on_mps, before.cpu, after.cpu_on_mps, after.cpu) == (473, 1112, 696, 1053)
    assert (before.overloads["falls_back_always"], after.overloads["falls_back_always"]) == (22, 7)
    assert [change.name for change in changes if not change.reason] == []
    moved = {change.name: (change.before, change.after) for change in changes}
    assert moved["nonzero"] == ("falls_back_always", "kernel")
    assert moved["cumsum.out"] == ("falls_back_on_demand", "kernel")
    assert moved["_fused_adam_"] == ("elsewhere", "kernel")
    assert moved["col2im"] == ("falls_back_on_demand", "falls_back_always")
    assert "linalg_svd" not in moved  # on the CPU then and now
    reasons = {change.name: change.reason for change in changes}
    assert reasons["cumsum.out"] == "named for MPS in native_functions.yaml"
    assert reasons["cumsum"] == "its out= form has a kernel now"
    assert reasons["col2im"] == "registered by hand (aten/src/ATen/mps/MPSFallback.mm:94)"
    assert reasons["_foreach_sin.out"] == "follows _foreach_sin, which it calls"


def test_the_source_of_2_6_0_and_its_official_wheel_differ_in_one_operator_only() -> None:
    source, wheel = recorded("v2.6.0-source"), recorded("v2.6.0-wheel")
    changes = compare(source, wheel)

    assert [(change.name, change.before, change.after) for change in changes] == [
        ("_slow_conv2d_forward", "refused", "kernel")
    ]
    assert changes[0].reason == "compiled code does not show that a kernel by hand only refuses: the source does"
    assert source.registered["MPS"] == wheel.registered["MPS"]
    assert {(each.operator, each.falls_back) for each in source.by_hand} == {
        (each.operator, each.falls_back) for each in wheel.by_hand
    }
    assert wheel.checks == ()  # headers, torchgen and machine code agree
    assert {section: len(names) for section, names in wheel.kernels.items()} == {
        "metal_basic": 159,
        "metal_bfloat": 196,
    }


def test_a_kernel_that_a_wheel_lost_is_found_and_explained() -> None:
    source, wheel = recorded("v2.6.0-source"), recorded("v2.6.0-wheel")
    mps = wheel.registered["MPS"] - {"cumsum.out", "cumsum", "cumsum_"}
    changes = compare(source, replace(wheel, registered={**wheel.registered, "MPS": mps}))

    assert {change.name: change.after for change in changes if change.name.startswith("cumsum")} == {
        "cumsum": "falls_back_on_demand",
        "cumsum.out": "falls_back_on_demand",
        "cumsum_": "falls_back_on_demand",
    }


def test_metal_kernels_of_two_wheels_are_compared_by_name() -> None:
    wheel = recorded("v2.6.0-wheel")
    other = from_document(wheel.document() | {"kernels": {"metal_basic": ["new_kernel"]}}, named="x")
    basic, bfloat = compare_kernels(wheel, other)

    assert (basic.section, basic.left, basic.right, basic.only_right) == ("metal_basic", 159, 1, ("new_kernel",))
    assert (bfloat.left, bfloat.right) == (196, 0)
    assert compare_kernels(recorded("v2.6.0-source"), wheel) == ()


REGISTRATIONS = """
#define OURS(NAME) m.impl(#NAME, TORCH_FN(NAME##_mps))
#define FALLS(...) m.impl(__VA_ARGS__, torch::CppFunction::makeFromBoxedFunction<&mps_fallback>())
#define TWO(op) OURS(op); OURS(op##_)
static const char* const kNames[] = {"first.out", "second"};
static Tensor says_no(const Tensor& self) {
  TORCH_CHECK(self.defined());
  TORCH_INTERNAL_ASSERT(false, __func__, " should not be called; ever");
}
static Tensor works(const Tensor& self) { return self; }
TORCH_LIBRARY_IMPL(_, MPS, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&mps_error_fallback>()); }
TORCH_LIBRARY_IMPL(aten, CUDA, m) { m.impl("not.ours", works); }
TORCH_LIBRARY_IMPL(quantized, MPS, m) { m.impl("not.aten", works); }
TORCH_LIBRARY_IMPL( aten , MPS , lib ) {
  lib.impl("plain", works);
  // lib.impl("commented", works);
  /* lib.impl("also.commented", works); */
  lib.impl(TORCH_SELECTIVE_NAME("aten::selective"), TORCH_FN(works));
  lib.impl(
      "over.lines",
      torch::CppFunction::makeFromBoxedFunction<&mps_fallback>());
  lib.impl("refuses", says_no);
  lib.impl("errors", torch::CppFunction::makeFromBoxedFunction<&mps_error_fallback>());
  for (const auto* name : kNames) {
    lib.impl(name, torch::CppFunction::makeFromBoxedFunction<&mps_fallback>());
  }
  for (const char* each : {"third", "fourth.out"}) lib.impl(each, works);
  lib.impl(computed_name(), works);
}
TORCH_LIBRARY_IMPL(aten, MPS, m) { TWO(relu); }
TORCH_LIBRARY_IMPL(aten, SparseMPS, m) { m.impl("_coalesce", works); }
"""


def test_registrations_by_hand_are_read_through_macros_and_loops() -> None:
    read = read_registrations("a/b.mm", REGISTRATIONS)
    found = {each.operator: each for each in read.found}

    assert set(found) == {
        *("plain", "selective", "over.lines", "refuses", "errors", "first.out", "second"),
        *("third", "fourth.out", "relu", "relu_", "_coalesce"),
    }
    assert {name for name, each in found.items() if each.falls_back} == {"over.lines", "first.out", "second"}
    assert {name for name, each in found.items() if each.refuses} == {"refuses", "errors"}
    assert found["_coalesce"].key == "SparseMPS"
    assert found["plain"].where == "a/b.mm:15"
    assert read.has_default


def test_a_name_that_cannot_be_read_is_told_with_its_line() -> None:
    assert read_registrations("a/b.mm", REGISTRATIONS).unread == ("a/b.mm:28: lib.impl(computed_name(), …)",)


def operator(name: str, overload: str, result: str, arguments: str, *, old: bool = False) -> str:
    """Return a struct as an _ops.h has it; `old` as up to 2.5."""
    constants = {"name": f"aten::{name}", "overload_name": overload}
    lines = [
        f'  STATIC_CONSTEXPR_STR_INL_EXCEPT_WIN_CUDA({key}, "{value}")'
        if old
        else f'  static constexpr const char* {key} = "{value}";'
        for key, value in constants.items()
    ]
    body = "\n".join(lines)
    return f"struct TORCH_API {name}_{overload} {{\n{body}\n  static {result} call({arguments});\n}};\n"


@pytest.mark.parametrize("old", [True, False])
def test_a_declaration_of_a_header_is_matched_to_the_overload_with_its_arguments(old: bool) -> None:
    tensor, out = "const at::Tensor & self", "at::Tensor & out"
    files = {
        "add_ops.h": operator("add", "Tensor", "at::Tensor", f"{tensor}, const at::Scalar & alpha", old=old)
        + operator("add", "out", "at::Tensor &", f"{tensor}, const at::Scalar & alpha, {out}", old=old)
        + operator("add_", "", "at::Tensor &", "at::Tensor & self", old=old)
        + operator("add", "Scalar", "at::Tensor", f"{tensor}, double value", old=old),
        "add_mps_dispatch.h": "TORCH_API at::Tensor add(const at::Tensor & self, const at::Scalar & alpha=1);\n"
        "TORCH_API at::Tensor & add_out(at::Tensor & out, const at::Tensor & self, const at::Scalar & alpha=1);\n"
        f"TORCH_API at::Tensor & add_outf({tensor}, const at::Scalar & alpha, {out});\n",
        "add_cuda_dispatch.h": "TORCH_CUDA_CPP_API at::Tensor & add_(at::Tensor & self);\n",
        "view_ops.h": operator("view", "", "at::Tensor", f"{tensor}, c10::SymIntArrayRef size", old=old),
        "view_mps_dispatch.h": f"TORCH_API at::Tensor view({tensor}, at::IntArrayRef size);\n"
        f"TORCH_API at::Tensor view_symint({tensor}, c10::SymIntArrayRef size);\n",
        "odd_mps_dispatch.h": "TORCH_API at::Tensor odd(int why);\n",
    }
    registered, operators, strange = read_headers(files)

    assert registered["MPS"] == {"add.Tensor", "add.out", "view"}
    assert registered["CUDA"] == {"add_"}
    assert operators == {"add.Tensor", "add.out", "add_", "add.Scalar", "view"}
    assert strange == ("odd_mps_dispatch.h: none of its 1 declarations is the call of an operator",)


def small_wheel(path: Path, **more: str) -> Path:
    """Return a wheel whose headers declare abs.out and cos for MPS and CPU."""
    tensor, out = "const at::Tensor & self", "at::Tensor & out"
    declared = f"TORCH_API at::Tensor & abs_outf({tensor}, {out});\nTORCH_API at::Tensor cos({tensor});\n"
    with zipfile.ZipFile(path, "w") as archive:
        folder = "torch/include/ATen/ops"
        archive.writestr(f"{folder}/abs_ops.h", operator("abs", "out", "at::Tensor &", f"{tensor}, {out}"))
        archive.writestr(f"{folder}/cos_ops.h", operator("cos", "", "at::Tensor", tensor))
        for key in ("mps", "cpu"):
            archive.writestr(f"{folder}/abs_{key}_dispatch.h", declared)
        for name, text in more.items():
            archive.writestr(name.replace("__", "/") + ".py", text)
            archive.writestr("torchgen/packaged/ATen/native/native_functions.yaml", "")
    return path


def test_where_a_wheels_witnesses_contradict_each_other_that_is_told(tmp_path: Path) -> None:
    native = {"MPS": (("abs.out", False), ("svd", True)), "CPU": (("abs.out", False), ("cos", False), ("gru", False))}
    told = facts_of_wheel(small_wheel(tmp_path / "torch-9.9-x.whl"), Compiled(registered=native))

    assert told.checks == ("MPS: headers declare, the library does not register: cos",)
    assert told.notes == ("it carries no torchgen: what its generated composites call is not known",)
    assert [(each.operator, each.falls_back) for each in told.by_hand] == [("svd", True)]
    assert (told.version, statuses(classify(told))["svd"]) == ("9.9", "falls_back_always")


def test_a_wheel_whose_library_or_torchgen_cannot_be_asked_is_read_by_its_headers(tmp_path: Path) -> None:
    wheel = small_wheel(tmp_path / "torch-9.9-x.whl", torchgen__gen="raise ValueError('too new')")
    told = facts_of_wheel(wheel, Compiled(fault="no arm64"))

    assert told.registered["MPS"] == {"abs.out", "cos"}
    assert told.notes[0].startswith("its torchgen could not be asked: WHEEL/torchgen does not read")
    assert told.notes[0].endswith("ValueError: too new")
    assert "registrations by hand are not known: no arm64" in told.notes[1]


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
    touches = {
        "one": frozenset({"add.Tensor", "mul.Tensor"}),
        "two": frozenset({"mul.Tensor", "cumsum"}),
        "layout-topk-grad": frozenset({"topk", "add.Tensor"}),
        "three": frozenset({"kthvalue", "add.Tensor"}),
        "four": frozenset({"linalg_svd"}),
        "five": frozenset({"topk"}),
    }
    told = measure(
        record(
            case("one", "passed"),
            case("two", "failed", "differs"),
            case("layout-topk-grad", "known", "differs"),
            case(
                "three",
                "skipped",
                "The operator 'aten::kthvalue.values' is not currently implemented for the MPS device",
            ),
            case("four", "passed"),
            case("five", "passed"),
        ),
        touches,
        on_cpu=frozenset({"linalg_svd", "untouched"}),
    )

    assert {name: each.word for name, each in told.items()} == {
        "add.Tensor": "suspect",  # right in one case, among the dispatched of a failing one
        "mul.Tensor": "suspect",
        "cumsum": "wrong",  # every case that dispatches it fails
        "topk": "wrong",  # the failing case is named for it
        "kthvalue.values": "refused",
        "linalg_svd": "fell back",
    }


def test_the_words_of_a_fallback_name_its_operator() -> None:
    said = (
        "UserWarning: The operator 'aten::col2im' is not currently supported on the MPS backend "
        "and will fall back to run on the CPU."
    )

    assert measure(record(case("x", "passed", said)), {})["col2im"].word == "fell back"


def test_the_suites_own_map_is_read() -> None:
    touches = load_touch_map(TOUCH_MAP)

    assert len(touches) > 4000
    assert "add.Tensor" in frozenset().union(*touches.values())
    assert not any(name.startswith("aten.") for names in touches.values() for name in names)


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
    assert "http" not in html.replace("http://www.w3.org", "")
    again = cli.main("op_coverage", [str(answer), "--json", str(tmp_path / "again.json")])
    assert (again, json.loads((tmp_path / "again.json").read_text())["facts"]) == (0, document["facts"])


def test_a_record_of_another_torch_is_joined_with_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, answer = tmp_path / "record.json", tmp_path / "answer.json"
    touched = next(name for name, operators in load_touch_map(TOUCH_MAP).items() if "cumsum" in operators)
    write_record(record(case(touched, "passed")).model_copy(update={"torch": Torch(version="2.11.0")}), path)
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
        ("folder", 4, "is no PyTorch source tree: aten/src/ATen/native/native_functions.yaml is missing"),
        ("old", 12, "has no torchgen/, so it is older than 1.12"),
        ("broken", 4, "does not read native_functions.yaml"),
        ("text.json", 2, "cannot be read"),
        ("other.json", 2, "is no document of op_coverage"),
        ("damaged.json", 2, "is a damaged document"),
        ("torch-1-py3-none-any.whl", 2, "cannot be read: File is not a zip file"),
        ("empty-1-py3-none-any.whl", 2, "holds no torch/include/ATen/ops/*_ops.h"),
        ("without-1-py3-none-any.whl", 12, "was built without MPS"),
        ("sample", 2, "sample is no PyTorch"),
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

    with pytest.raises(SourceError, match="is no PyTorch that can be read"):
        unpack_needed(tmp_path / "upstream", commit, tmp_path, ENVIRON)


TREES = os.environ.get("MPS_BUILD_TREES")


@pytest.mark.slow
@pytest.mark.skipif(not TREES, reason="MPS_BUILD_TREES names no folder with the real 1.13.1 and 2.6.0 trees")
@pytest.mark.parametrize("version", ["1.13.1", "2.6.0"])
def test_a_real_tree_says_what_was_recorded_of_it(version: str) -> None:
    told = facts_of_tree(Path(TREES or "") / version, label=f"PyTorch {version}, source")

    assert told.document() == recorded(f"v{version}-source").document()


@pytest.mark.slow
def test_the_official_wheel_says_what_was_recorded_of_it(tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    status = cli.main("op_coverage", ["torch==2.6.0", "--python", "3.12", "--json", str(answer)])

    assert status == 0
    assert json.loads(answer.read_text())["facts"] == recorded("v2.6.0-wheel").document()
