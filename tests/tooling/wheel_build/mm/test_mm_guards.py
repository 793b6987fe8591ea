# ruff: noqa: E501 (a function on one line)
"""Which calls stand behind a check for the version of macOS, and which messages are newer than the target."""

from __future__ import annotations

import pytest
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
