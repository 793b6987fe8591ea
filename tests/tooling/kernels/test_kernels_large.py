"""--large: 32-bit arithmetic that reaches an address, and what a few threads do past 2**31 and 2**32."""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

from mps_build.kernels.code.compiled import Code
from mps_build.kernels.code.kernel import narrow_parts
from mps_build.kernels.execution import examine_large as module
from mps_build.kernels.execution.examine import Verdict
from mps_build.kernels.families.shared.contracts import Case, Kernel, match_kernel
from mps_build.kernels.judge.references import load_references
from mps_build.kernels.program.values import Values
from small_kernels import GRID, air, bitcode, buffer, builtin, compiled, device

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kernels are executed on Linux")


def text_of(name: str, index: str, *, numel: bool = False) -> str:
    """Return a kernel that doubles; `index` makes %j (i64), the byte of the thread's element, of %i."""
    arguments = [buffer(0, "output"), buffer(1, "input", access="read")]
    parameters = "ptr addrspace(1) %out, ptr addrspace(1) %in, "
    if numel:
        arguments.append(buffer(2, "numel", "uint", access="read", space=2))
        parameters += "ptr addrspace(2) %n, "
    body = f"""
{index}
  %p = getelementptr i8, ptr addrspace(1) %in, i64 %j
  %x = load float, ptr addrspace(1) %p, align 4
  %y = fadd float %x, %x
  %q = getelementptr i8, ptr addrspace(1) %out, i64 %j
  store float %y, ptr addrspace(1) %q, align 4
  ret void"""
    return air(name, f"{parameters}i32 %i", body, [*arguments, builtin(len(arguments), GRID)])


WIDE = "  %w = zext i32 %i to i64\n  %j = shl i64 %w, 2"
NARROW = "  %w = shl i32 %i, 2\n  %j = zext i32 %w to i64"
SIGNED = "  %w = shl i32 %i, 2\n  %j = sext i32 %w to i64"
CALLED = "  %w = call i32 @helper(i32 %i)\n  %j = zext i32 %w to i64"
HELPER = "define internal i32 @helper(i32 %v) noinline {\n  %r = mul i32 %v, 4\n  ret i32 %r\n}"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


def asked(cache: Path, index: str, names: Mapping[str, str] | None = None) -> Verdict:
    """Return what --large says of a form of one element a thread."""
    name = "good_dense_scalar_float_float"
    texts = {name: text_of(name, index), "good_dense_float_float": text_of("good_dense_float_float", WIDE, numel=True)}
    codes = {key: compiled(text) for key, text in texts.items()}
    views = {}
    for key, code in codes.items():
        assert isinstance(code, Code)
        views[key] = match_kernel(key, code.metadata) or Kernel(name=key, metadata=code.metadata)
    case = Case(values=Values(0, name), kernels=views, references=load_references())
    narrow = narrow_parts(bitcode(texts[name]))
    return module.examine_large(views[name], case, device(cache, codes), narrow, set(names or {name: ""}))


def test_only_arithmetic_of_32_bits_that_reaches_an_address_is_a_candidate() -> None:
    assert narrow_parts(bitcode(text_of("k", WIDE))) == []
    assert any("shl i32" in each for each in narrow_parts(bitcode(text_of("k", NARROW))))
    unused = f"{WIDE}\n  %u = mul i32 %i, 12345\n  %v = uitofp i32 %u to float"
    assert narrow_parts(bitcode(text_of("k", unused))) == []


def test_it_is_seen_in_a_helper_too() -> None:
    arguments = "define void @k("
    text = text_of("k", CALLED).replace(arguments, f"{HELPER}\n{arguments}")

    assert narrow_parts(bitcode(text)) != []


def test_wide_arithmetic_is_cleared_without_a_run(cache: Path) -> None:
    assert asked(cache, WIDE).outcome == "passed"


@pytest.mark.parametrize(
    ("index", "outcome", "limit", "right"),
    [
        (NARROW, "wrong", "across 2**32 bytes", "past 2**31 bytes"),
        (SIGNED, "out_of_bounds", "across 2**31 bytes", "below 2**31 bytes"),
    ],
)
def test_an_index_that_wraps_is_found_where_it_wraps(
    cache: Path, monkeypatch: pytest.MonkeyPatch, index: str, outcome: str, limit: str, right: str
) -> None:
    monkeypatch.setattr(module, "_CUT_BY_HOST", ())

    found = asked(cache, index)

    assert (found.outcome, limit in found.reason.partition("; not ")[2]) == (outcome, True)
    assert right in found.reason.partition("; not ")[0]


def test_what_the_host_cuts_is_no_finding(cache: Path) -> None:
    found = asked(cache, NARROW)

    assert found.outcome == "passed"
    assert "torch cuts such tensors" in found.reason


def test_gigabytes_of_tensor_take_little_memory(cache: Path) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    asked(cache, NARROW)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB


def test_a_64_bit_twin_takes_over(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert module._twin("softmax_row_float_u32", {"softmax_row_float_u64"}) == "softmax_row_float_u64"
    assert module._twin("cat_int32_t_float_float", {"cat_int64_t_float_float"}) == "cat_int64_t_float_float"
    assert module._twin("softmax_row_float_u32", {"softmax_row_half_u64"}) is None


def test_a_case_that_cannot_be_moved_far_is_no_finding(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small move agrees by chance, and a large one below every limit does not: nothing was shown."""
    monkeypatch.setattr(module, "_targets", lambda *_: [(1 << 20, "below 2**31 bytes of output")])
    odd = "  %h = lshr i32 %i, 19\n  %k = mul i32 %h, 64\n  %s = shl i32 %i, 2\n"
    odd += "  %w = add i32 %s, %k\n  %j = zext i32 %w to i64"

    found = asked(cache, odd)

    assert found.outcome == "overflow_candidate"
    assert "cannot be moved far" in found.reason


def test_a_strided_form_is_moved_by_its_outer_dimension(cache: Path) -> None:
    """Rows of 3 among 5 lengths: the row's number comes from the sizes, which grow with it."""
    assert module._units(15) == [1, 3, 5]
    assert module._strides(60, 180, 360, 2) == [30]
