"""Registrations by hand, a header's declarations, and what a wheel alone witnesses."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from mps_build.inspection.coverage.rules import classify
from mps_build.inspection.coverage.tree import read_registrations
from mps_build.inspection.coverage.wheel import Compiled, facts_of_wheel, read_headers
from small_records import operator, statuses

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


def test_a_name_that_cannot_be_read_is_reported_with_its_line() -> None:
    assert read_registrations("a/b.mm", REGISTRATIONS).unread == ("a/b.mm:28: lib.impl(computed_name(), …)",)


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


def test_where_a_wheels_witnesses_contradict_each_other_that_is_reported(tmp_path: Path) -> None:
    native = {"MPS": (("abs.out", False), ("svd", True)), "CPU": (("abs.out", False), ("cos", False), ("gru", False))}
    said = facts_of_wheel(small_wheel(tmp_path / "torch-9.9-x.whl"), Compiled(registered=native))

    assert said.checks == ("MPS: headers declare, the library does not register: cos",)
    assert said.notes == ("it carries no torchgen: what its generated composites call is not known",)
    assert [(each.operator, each.falls_back) for each in said.by_hand] == [("svd", True)]
    assert (said.version, statuses(classify(said))["svd"]) == ("9.9", "falls_back_always")


def test_a_wheel_whose_library_or_torchgen_cannot_be_queried_is_read_by_its_headers(tmp_path: Path) -> None:
    wheel = small_wheel(tmp_path / "torch-9.9-x.whl", torchgen__gen="raise ValueError('too new')")
    said = facts_of_wheel(wheel, Compiled(fault="no arm64"))

    assert said.registered["MPS"] == {"abs.out", "cos"}
    assert said.notes[0].startswith("its torchgen could not be queried: WHEEL/torchgen does not read")
    assert said.notes[0].endswith("ValueError: too new")
    assert "registrations by hand are not known: no arm64" in said.notes[1]
