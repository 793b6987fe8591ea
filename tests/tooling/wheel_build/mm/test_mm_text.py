"""Loops over collections: the question in their heads, and what is said of it, at the file's own place."""

from __future__ import annotations

from pathlib import Path

import pytest
from mm_faults import bare_checker
from mps_build.wheel_build.mm.compiler import say
from mps_build.wheel_build.mm.diagnostics import Said
from mps_build.wheel_build.mm.text import with_questions


@pytest.mark.parametrize(
    "text",
    [
        "for (int i = 0; i < n; i++) {}",
        "for (auto x in all) {}",
        "for (auto& x : in) {}",
        "for (int in : all) {}",
        "for (size_t in = 0; in < n; in++) {}",
        "for (;;) {}",
        "// for (NSString* x in all) {}",
        'log("for (NSString* x in all)");',
        "wait_for (x in y)",
    ],
)
def test_other_loops_are_left_alone(text: str) -> None:
    assert with_questions(text) is None


@pytest.mark.parametrize(
    ("head", "type_"),
    [
        ("NSString* x", "NSString*"),
        ("NSString *x", "NSString *"),
        ("x", "decltype(x)"),
        ("id<MTLBuffer> x", "id<MTLBuffer>"),
        ("NSDictionary<NSString*, NSNumber*>* each", "NSDictionary<NSString*, NSNumber*>*"),
        ("const NSNumber* x", "const NSNumber*"),
    ],
)
def test_the_type_of_the_loops_variable_is_checked(head: str, type_: str) -> None:
    rewritten = with_questions(f"for ({head} in [self all:in]) {{}}")
    assert rewritten is not None
    assert rewritten.text.startswith(f"for ({head} in ({{ auto mps_build_all = ( [self all:in]); ")
    assert f"mps_build_fits<{type_}, decltype(" in rewritten.text


def test_lines_stay_and_columns_are_given_back() -> None:
    text = "é; for (A* x in f(\n  b)) { g(); } h();\n"
    rewritten = with_questions(text)
    assert rewritten is not None and rewritten.text.count("\n") == text.count("\n")

    def place(line: int, word: str) -> int:
        of_copy = rewritten.text.splitlines()[line - 1].encode().index(word.encode()) + 1
        said = rewritten.said(Said(file="a.mm", line=line, column=of_copy, kind="error", text="x"))
        assert said is not None
        return said.column

    for line, word in ((1, "for"), (1, " f("), (2, "b)"), (2, "g()"), (2, "h()")):
        assert place(line, word) == text.splitlines()[line - 1].encode().index(word.encode()) + 1, word


_HEAD = "#import <Foundation/Foundation.h>\n"


def _said(tmp_path: Path, body: str, head: str = _HEAD) -> list[tuple[int, str, str]]:
    checker = bare_checker(tmp_path, target="13.0")
    file = tmp_path / "a.mm"
    file.write_text(f"{head}{body}\n", encoding="utf-8")
    return [(each.line, each.kind, each.text) for each in say(checker, file) if "auto-var-id" not in each.flag]


@pytest.mark.zig
def test_a_variable_that_no_element_can_be_is_an_error(tmp_path: Path) -> None:
    loops = "for (NSString* x in a) {}\nfor (NSNumber* x in a) {}\nfor (NSNumber* x in d) {}\nfor (NSString* x in d) {}"
    body = f"void f(NSArray<NSNumber*>* a, NSMutableDictionary<NSString*, NSNumber*>* d) {{\n{loops}\n}}"

    assert _said(tmp_path, body) == [
        (3, "error", "the loop's variable is 'NSString *', the elements of the collection are 'NSNumber *'"),
        (5, "error", "the loop's variable is 'NSNumber *', the elements of the collection are 'NSString *'"),
    ]
    assert not list((tmp_path / "scratch").rglob("*.mm"))


@pytest.mark.zig
def test_what_may_be_an_element_and_what_nobody_knows_is_no_mistake(tmp_path: Path) -> None:
    loops = "for (NSString* x in o) {} for (NSObject* x in n) {} for (NSString* x in any) {} for (NSString* x in f) {}"
    arguments = "NSArray<NSObject*>* o, NSSet<NSNumber*>* n, id any, id<NSFastEnumeration> f"

    assert _said(tmp_path, f"void f({arguments}) {{ {loops} }}") == []


@pytest.mark.zig
def test_without_foundation_the_file_says_so_itself(tmp_path: Path) -> None:
    found = _said(tmp_path, "void f(NSArray* a) { for (NSString* x in a) {} }", head="")
    assert found and all("mps_build" not in text for _, _, text in found)


@pytest.mark.zig
def test_an_inherited_method_of_a_mutable_collection_knows_its_types(tmp_path: Path) -> None:
    body = "NSNumber* f(NSMutableDictionary<NSString*, NSNumber*>* d) { return d.allKeys[0]; }"
    assert [(line, kind) for line, kind, _ in _said(tmp_path, body)] == [(2, "error")]


@pytest.mark.zig
@pytest.mark.parametrize(
    ("call", "words"),
    [
        ('[NSString stringWithFormat:@"%s", a]', "format specifies type"),
        ('[NSString stringWithFormat:@"%@ %@", a]', "more '%' conversions"),
        ('[NSException raise:@"x" format:@"%d", a]', "format specifies type"),
        ("[NSArray arrayWithObjects:a, a]", "missing sentinel"),
    ],
)
def test_formats_and_lists_are_held_against_their_arguments(tmp_path: Path, call: str, words: str) -> None:
    ((line, _, text),) = _said(tmp_path, f"void f(NSArray* a) {{ (void)({call}, 0); }}")
    assert line == 2 and words in text
