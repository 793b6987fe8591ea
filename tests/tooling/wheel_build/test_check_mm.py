# ruff: noqa: E501 (what a compiler says is one line)
"""check_mm without a compiler: what its words mean, and which calls stand behind a question for the version."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.common.errors import SourceError
from mps_build.wheel_build.mm.diagnostics import (
    Known,
    apple_header,
    concerns,
    judge,
    nearest,
    newer_than_target,
    read_output,
)
from mps_build.wheel_build.mm.guards import (
    Names,
    function_around,
    guarded,
    implied,
    late_messages,
    late_selectors,
    own_selectors,
    read_names,
)
from mps_build.wheel_build.mm.text import blanked, read_source
from mps_build.wheel_build.mm.tree import configured, find_tree, read_tree, read_wheel_headers
from mps_build.wheel_build.objc.model import load_frameworks

ASK = "is_macos_13_or_newer(MacOSVersion::MACOS_VER_15_0_PLUS)"
GUARDED = {
    "if": f"if ({ASK}) {{ CALL; }}",
    "if without braces": f"if ({ASK}) CALL;",
    "if with more": f"if (x && {ASK}) {{ CALL; }}",
    "else": f"if (!{ASK}) {{ a(); }} else {{ CALL; }}",
    "else if": f"if (x) {{ a(); }} else if ({ASK}) {{ CALL; }}",
    "else of two": f"if (x || !{ASK}) {{ a(); }} else {{ for (;;) {{ CALL; }} }}",
    "ternary": f"auto a = {ASK} ? CALL : b;",
    "ternary, other side": f"auto a = !{ASK} ? b : CALL;",
    "and": f"return {ASK} && CALL;",
    "check": f'TORCH_CHECK({ASK}, "too old"); a(); CALL;',
    "early return": f"if (!{ASK}) {{ return; }} CALL;",
    "variable": f"const bool is_new = {ASK}; if (is_new) {{ CALL; }}",
    "static variable": f"static const auto fits = {ASK}; if (!fits) return; CALL;",
    "variable named by the version": "if (is_macOS_15_0_or_newer) { CALL; }",
    "available": "if (@available(macOS 15.0, *)) { CALL; }",
    "builtin": "if (__builtin_available(macOS 15.1, *)) { CALL; }",
    "responds": "if ([g respondsToSelector:@selector(call)]) { CALL; }",
    "block inside": f"if ({ASK}) {{ run(^(int x) {{ a(); CALL; }}); }}",
    "lambda inside": f"TORCH_CHECK({ASK}); run([&](auto x) {{ CALL; }});",
    "function of the tree": "if (isNewEnough() || !x) { CALL; }",
    "refusing function of the tree": "refuseOld(); CALL;",
    "variable that says old": f"const bool is_old = !{ASK}; if (is_old) {{ return; }} CALL;",
    "branch where it is not old": f"const bool is_old = !{ASK}; if (is_old) {{ a(); }} else {{ CALL; }}",
    "function that says old": "if (!isTooOld()) { CALL; }",
    "else that leaves": "if (@available(macOS 15.0, *)) {\n} else {\n  return;\n}\nCALL;",
}
UNGUARDED = {
    "nothing": "a(); CALL;",
    "older version": "if (is_macos_13_or_newer(MacOSVersion::MACOS_VER_14_0_PLUS)) { CALL; }",
    "the other branch": f"if ({ASK}) {{ a(); }} else {{ CALL; }}",
    "the wrong way round": f"if (!{ASK}) {{ CALL; }}",
    "behind the block": f"if ({ASK}) {{ a(); }} CALL;",
    "check after": f"CALL; TORCH_CHECK({ASK});",
    "check in another branch": f"if (x) {{ TORCH_CHECK({ASK}); }} CALL;",
    "early return for the new": f"if ({ASK}) {{ return; }} CALL;",
    "ternary, other side": f"auto a = {ASK} ? b : CALL;",
    "in a comment": f"// if ({ASK}) {{\n CALL;",
    "in a string": 'log("@available(macOS 15.0, *)"); CALL;',
    "no exit": f"if (!{ASK}) {{ a(); }} CALL;",
    "variable that says old": f"const bool is_old = !{ASK}; if (is_old) {{ CALL; }}",
    "variable that says old, in an else": f"const bool is_old = !{ASK}; if (!is_old) {{ a(); }} else {{ CALL; }}",
    "else that leaves, of another if": f"if ({ASK}) {{ a(); }} else if (x) {{ b(); }} else {{ return; }} CALL;",
    "else that goes on": f"if ({ASK}) {{ a(); }} else {{ b(); }} CALL;",
    "no exit, another variable": "if (!is_macOS_15_0_or_newer || x) { a(); } CALL;",
}
HEADER = """
inline bool isNewEnough() {
  return is_macos_13_or_newer(MacOSVersion::MACOS_VER_15_0_PLUS);
}
inline bool isTooOld() { return !isNewEnough(); }
inline void refuseOld() { TORCH_CHECK_TYPE(isNewEnough(), "macOS 15"); }
"""


def _found(body: str) -> tuple[int, ...]:
    text = f"#include <x>\nnamespace at::native {{\nvoid before() {{ TORCH_CHECK({ASK}); }}\nvoid f(int x) {{\n{body}\n}}\n}}\n"
    source = read_source(text)
    names = read_names(source.text, read_names(blanked(HEADER)))
    return guarded(source, text.index("CALL"), names)


@pytest.mark.parametrize("body", GUARDED.values(), ids=GUARDED.keys())
def test_a_call_behind_a_question_is_guarded(body: str) -> None:
    assert _found(body) >= (15, 0)


@pytest.mark.parametrize("body", UNGUARDED.values(), ids=UNGUARDED.keys())
def test_a_call_that_is_not_behind_the_question_is_not(body: str) -> None:
    assert _found(body) < (15, 0)


def _late(text: str, target: str = "13.0") -> list[tuple[int, str]]:
    late = late_selectors(load_frameworks(), target)
    return [(said.line, said.text.split("'")[1]) for said in late_messages(read_source(text), "a.mm", late)]


def test_a_message_in_a_generic_lambda_is_seen_though_clang_leaves_it_out() -> None:
    text = """make([&](auto graph, auto cached) {
  auto tensor = [graph realPartOfTensor:[graph reshapeTensor:x withShape:a ? b : c name:nil]
                                   name:nil];
  descriptor.preferPackedRows = YES;
});"""
    assert _late(text) == [(2, "realPartOfTensor:name:"), (4, "setPreferPackedRows:")]
    assert _late(text, "14.0") == [(4, "setPreferPackedRows:")]
    assert _late(text, "15.0") == []


def test_a_selector_that_an_older_type_has_as_well_is_clangs_to_judge() -> None:
    late = late_selectors(load_frameworks(), "13.0")
    assert "initWithDevice:" not in late
    assert "convolution3DWithSourceTensor:weightsTensor:descriptor:name:" in late
    assert "setStrideInZ:" not in late, "its class is as new: a message to nil"


def test_what_the_tree_declares_itself_for_any_sdk_is_not_judged() -> None:
    header = """
@interface MPSGraph (VenturaOps)
- (MPSGraphTensor* _Nonnull)convolution3DWithSourceTensor:(MPSGraphTensor* _Nonnull)source
                                            weightsTensor:(void (^)(int, id))weights;
@end
#if !defined(__MAC_14_0) && (!defined(MAC_OS_X_VERSION_14_0))
@interface MPSGraph (SonomaOps)
- (MPSGraphTensor*)conjugateWithTensor:(MPSGraphTensor*)tensor name:(NSString*)name;
@end
#endif
"""
    assert own_selectors(header) == {"convolution3DWithSourceTensor:weightsTensor:"}


def test_the_function_around_a_place_is_found_through_macros_and_lambdas() -> None:
    text = (
        "namespace a {\nTORCH_IMPL_FUNC(sum_out)(const Tensor& x) { run([&]() { CALL }); }\nint g() const { MORE }\n}"
    )
    source = read_source(text)
    assert function_around(source, text.index("CALL")) == "sum_out"
    assert function_around(source, text.index("MORE")) == "g"


def test_a_condition_holds_in_the_branch_where_it_says_so() -> None:
    assert implied(f"!({ASK})", Names(), when=False) == (15, 0)
    assert implied(f"{ASK} == NO", Names(), when=False) == (15, 0)
    assert implied(ASK, Names(), when=False) == ()


KNOWN = Known(load_frameworks(), {})


def _judged(line: str) -> tuple[str, str]:
    (said,) = read_output(line)
    found = judge(said, KNOWN)
    return found.severity, found.text


@pytest.mark.parametrize(
    ("line", "severity", "words"),
    [
        (
            "a.mm:1:2: warning: instance method '-setBufer:offset:atIndex:' not found [-Wobjc-method-access]",
            "error",
            "did you mean 'setBuffer:offset:atIndex:'",
        ),
        (
            "a.mm:1:2: warning: instance method '-waitUntilCompleted:andMore:' not found [-Wobjc-method-access]",
            "unknown",
            "docs/build/check_mm.md",
        ),
        ("a.mm:1:2: warning: 'MPSGraph' may not respond to 'gpuAddress'", "error", "MTLBuffer has"),
        (
            "a.mm:1:2: warning: undeclared selector 'cumulativeSumWithTensr:axis:name:' [-Wundeclared-selector]",
            "error",
            "did you mean 'cumulativeSumWithTensor:axis:name:'",
        ),
        (
            "a.mm:1:2: warning: undeclared selector 'somethingOfTomorrow:' [-Wundeclared-selector]",
            "unknown",
            "somethingOfTomorrow:",
        ),
        ("a.mm:1:2: error: property 'shpe' not found on object of type 'MPSGraphTensorData *'", "error", "shpe"),
        (
            "a.mm:1:2: error: property 'brandNewThing' not found on object of type 'MPSCommandBuffer *'",
            "unknown",
            "brandNewThing",
        ),
        (
            "a.mm:1:2: error: property 'strideInZ' not found on object of type 'MPSGraphPooling2DOpDescriptor *'",
            "error",
            "strideIn",
        ),
        (
            "a.mm:1:2: error: use of undeclared identifier 'MPSDataTypeFlot32'",
            "error",
            "did you mean 'MPSDataTypeFloat32'",
        ),
        ("a.mm:1:2: error: unknown type name 'MTLTensorOfTomorrow'", "error", "docs/build/check_mm.md"),
        (
            "a.mm:1:2: fatal error: 'Vision/Vision.h' file not found",
            "error",
            "Vision is Apple's, and our declarations lack it",
        ),
        ("a.mm:1:2: fatal error: 'ATen/Nothing.h' file not found", "error", "'ATen/Nothing.h' file not found"),
        (
            "a.mm:1:2: error: cannot initialize a parameter of type 'int' with an lvalue of type 'id'",
            "error",
            "cannot initialize",
        ),
    ],
)
def test_what_is_said_becomes_a_mistake_or_a_gap_of_ours(line: str, severity: str, words: str) -> None:
    found, text = _judged(line)
    assert found == severity
    assert words in text


def test_of_warnings_those_about_objective_c_count() -> None:
    about = read_output("a.mm:1:2: warning: object of type 'X' is not compatible [-Wobjc-literal-conversion]")
    style = read_output("a.mm:1:2: warning: nested designators are a C99 extension [-Wc99-designator]")
    assert concerns(about[0]) and not concerns(style[0])


def test_notes_stay_with_what_they_belong_to_and_repetitions_go() -> None:
    line = "a.mm:3:4: error: wrong\nb.h:1:1: note: declared here\n"
    (said,) = read_output(line + line)
    assert (said.line, said.column, said.notes[0].file) == (3, 4, "b.h")


def test_the_version_of_a_call_is_read() -> None:
    (said,) = read_output(
        "a.mm:1:2: warning: 'x:' is only available on macOS 15.0 or newer [-Wunguarded-availability-new]"
    )
    assert newer_than_target(said) == ("x:", "15.0")


def test_a_name_far_from_all_known_is_not_called_misspelt() -> None:
    known = ["padTensor:withPaddingMode:leftPadding:rightPadding:constantValue:name:", "tanhWithTensor:name:"]
    assert nearest("scaledDotProductWithTensor:mask:name:", known) is None
    assert nearest("tanhWithTensor:nme:", known) == "tanhWithTensor:name:"


def test_a_tree_says_its_own_flags(tmp_path: Path) -> None:
    tree = read_tree(_tree(tmp_path))
    assert tree.standard == "20" and tree.release == "2.9.0"
    assert tree.flags == ("-DUSE_MPS", "-fno-objc-arc")
    assert find_tree(tmp_path / "aten/src/ATen/mps/New.mm") == tmp_path.resolve()
    assert find_tree(Path("/nowhere/New.mm")) is None


def test_what_cmake_would_configure_is_written_with_all_off(tmp_path: Path) -> None:
    folder = _tree(tmp_path) / "c10/macros"
    folder.mkdir(parents=True)
    (folder / "cmake_macros.h.in").write_text('#cmakedefine C10_USE_GLOG\n#define A @A@\n#define S "${S}"\n')
    assert dict(configured(tmp_path)) == {
        "c10/macros/cmake_macros.h": '/* #undef C10_USE_GLOG */\n#define A 0\n#define S ""\n'
    }


def _tree(root: Path) -> Path:
    for folder in ("aten/src/ATen/mps", "aten/src/ATen/native/mps"):
        (root / folder).mkdir(parents=True)
    (root / "aten/src/ATen/native/native_functions.yaml").write_text("[]\n")
    (root / "version.txt").write_text("2.9.0a0\n")
    (root / "CMakeLists.txt").write_text(
        'set(CMAKE_CXX_STANDARD 20 CACHE STRING "")\n'
        'string(APPEND CMAKE_OBJCXX_FLAGS " -DUSE_MPS -fno-objc-arc -Wno-unguarded-availability-new")\n'
    )
    return root


def test_no_tree_and_a_tree_without_mps_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is not a PyTorch tree"):
        read_tree(tmp_path)
    (_tree(tmp_path) / "aten/src/ATen/mps").rmdir()
    with pytest.raises(SourceError, match="PyTorch without MPS: aten/src/ATen/mps is missing"):
        read_tree(tmp_path)


def test_another_wheel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="is not a wheel of torch"):
        read_wheel_headers(tmp_path / "numpy-2.0.0-cp312-cp312-macosx_14_0_arm64.whl", tmp_path)
    broken = tmp_path / "torch-2.6.0-cp312-none-macosx_11_0_arm64.whl"
    broken.write_bytes(b"PK")
    with pytest.raises(SourceError, match="cannot be read"):
        read_wheel_headers(broken, tmp_path)


def test_apples_headers_are_known_by_their_form() -> None:
    assert apple_header("UIKit/UIKit.h") == "UIKit"
    assert apple_header("MetalPerformanceShaders/MPSImage.h") == "MetalPerformanceShaders"
    assert apple_header("torch/torch.h") is None
