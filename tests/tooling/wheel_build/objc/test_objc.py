"""The declarations of Apple's frameworks: each row is well formed, each compiles, an SDK's version cuts them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from mm_faults import bare_checker
from mps_build.common.recipe.catalogue import recipes_root
from mps_build.wheel_build.mm.compiler import compile_file
from mps_build.wheel_build.mm.diagnostics import read_output
from mps_build.wheel_build.objc import write_frameworks, write_stubs
from mps_build.wheel_build.objc.headers import OF_C, prefix_header
from mps_build.wheel_build.objc.model import Framework, Interface, load_frameworks, version, words
from mps_build.wheel_build.objc.stubs import imports_of, known_releases
from rows import for_each

FRAMEWORKS = load_frameworks()
TYPES = {each.name: each for one in FRAMEWORKS for each in (*one.classes, *one.protocols)}
# From <stdint.h> and libdispatch.
ELSEWHERE = {"uint64_t", "uint32_t", "uint8_t", "dispatch_data_t", "dispatch_queue_t"}


@for_each(TYPES)
def test_a_row_has_an_argument_for_each_colon(name: str) -> None:
    for method in TYPES[name].methods:
        given = [type_ for type_ in method.arguments if type_ != "..."]
        assert method.selector.count(":") == len(given), method.selector
        assert method.since is None or re.fullmatch(r"\d\d\.\d", method.since), method


def test_no_selector_is_repeated_in_a_type() -> None:
    for each in TYPES.values():
        rows = [(method.selector, method.is_class) for method in each.methods]
        assert len(rows) == len(set(rows)), each.name


def _unknown_words(framework: Framework, before: tuple[Framework, ...]) -> frozenset[str]:
    """Return the names that a framework's rows use and nothing declares (preludes not counted)."""
    declared = {
        name
        for one in (*before, framework)
        for name in (
            *(each.name for each in (*one.classes, *one.protocols)),
            *(each.name for each in one.enums),
            *one.structs,
            *one.aliases,
        )
    }
    used = frozenset(
        word
        for each in (*framework.classes, *framework.protocols)
        for method in each.methods
        for word in method.types - set(each.type_parameters)
    ) | words(*framework.aliases.values())
    prelude = words(*(one.prelude + one.postlude for one in (*before, framework)))
    return used - declared - prelude - OF_C


def test_every_type_in_a_row_is_declared() -> None:
    for index, framework in enumerate(FRAMEWORKS):
        assert _unknown_words(framework, FRAMEWORKS[:index]) <= ELSEWHERE, framework.name


def test_a_class_comes_from_one_that_is_declared() -> None:
    for framework in FRAMEWORKS:
        for each in framework.classes:
            assert each.superclass == "NSObject" or each.superclass in TYPES, each.name


def test_every_class_of_the_official_wheels_is_declared() -> None:
    for release in known_releases():
        for row in imports_of(release).values():
            names = {name.removeprefix("_OBJC_CLASS_$_") for name in row["symbols"] if name.startswith("_OBJC_CLASS_")}
            # Apple's own compiler makes constant literals of these two; no source names them.
            assert names - {"NSConstantArray", "NSConstantIntegerNumber"} <= TYPES.keys() | {"NSObject"}


def test_every_selector_of_the_official_wheels_is_declared() -> None:
    """As `__objc_methname` of libtorch_cpu names them; NSObject's own are in zig's <objc/NSObject.h>."""
    known = {method.selector for each in TYPES.values() for method in each.methods}
    of_nsobject = {"alloc", "autorelease", "copy", "description", "init", "mutableCopy", "new", "release", "retain"}
    of_nsobject |= {"retainCount", "respondsToSelector:", "instancesRespondToSelector:"}
    # Private to Apple, or methods that PyTorch adds: it declares them itself, in categories.
    own = {"setEnableCommitAndContinue:", "printNDArray"}
    fixed = "WithNaNPropagationAndIntFallbackWithPrimaryTensor:secondaryTensor:name:"
    own |= {f"maximum{fixed}", f"minimum{fixed}"}
    recorded = Path(__file__).parents[3] / "recorded" / "selectors.json"
    for release, selectors in json.loads(recorded.read_text(encoding="utf-8")).items():
        assert set(selectors) - known - of_nsobject - own == set(), release


@pytest.mark.zig
def test_the_samples_objective_c_compiles(tmp_path: Path) -> None:
    """The sample's one .mm, in both kinds (shader as source, metallib); ARC is on there, as its CMake says."""
    sample = recipes_root() / "sample"
    (tmp_path / "scale_source.h").write_text('static const char* kScaleSource = "";\n')
    checker = bare_checker(tmp_path, "-fobjc-arc", f"-I{sample / 'include'}", f"-I{tmp_path}", target="27.0")
    for kind in ("-USAMPLE_JIT_COMPILE_SHADERS", "-DSAMPLE_JIT_COMPILE_SHADERS"):
        assert read_output(compile_file(checker, sample / "csrc/mps/scale.mm", kind)) == []
    wrong = tmp_path / "wrong.mm"
    wrong.write_text((sample / "csrc/mps/scale.mm").read_text().replace("offset:0 atIndex:0]", "offset:0 atIndx:0]"))
    assert read_output(compile_file(checker, wrong)) != []


def test_an_older_sdk_knows_neither_the_newer_names_nor_their_macros(tmp_path: Path) -> None:
    old = write_frameworks(tmp_path / "old", sdk="14.5")
    new = write_frameworks(tmp_path / "new")
    names = ("MPSNDArrayIdentity", "MTLMathMode", "reciprocalSquareRootWithTensor")
    for text, expected in ((_all(old.include), 0), (_all(new.include), len(names))):
        assert sum(name in text for name in names) == expected
    assert "#undef __MAC_15_0\n" in prefix_header("14.5")
    assert "#undef __MAC_14_4\n" not in prefix_header("14.5")
    assert "#define __MAC_OS_X_VERSION_MAX_ALLOWED 140500" in prefix_header("14.5")
    assert "conjugateWithTensor" in _all(old.include), "of macOS 14.0"


def _all(folder: Path) -> str:
    return "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.h"))


def test_written_again_the_headers_are_not_touched(tmp_path: Path) -> None:
    made = write_frameworks(tmp_path)
    path = made.include / "Metal" / "Metal.h"
    before = path.stat().st_mtime_ns
    write_frameworks(tmp_path)
    assert path.stat().st_mtime_ns == before


def test_a_stub_names_what_the_wheel_imports_and_no_more(tmp_path: Path) -> None:
    stubs = write_stubs(tmp_path, release="2.6.0", extra={"libc++.1": ["__ZNSt3__1more"]})
    metal = (stubs.frameworks / "Metal.framework" / "Metal.tbd").read_text(encoding="utf-8")
    assert "install-name: '/System/Library/Frameworks/Metal.framework/Versions/A/Metal'" in metal
    assert "_MTLCopyAllDevices" in metal and "MTLCompileOptions" in metal
    assert "_MTLCreateSystemDefaultDevice" not in metal
    assert "__ZNSt3__1more" in (stubs.libraries / "libc++.tbd").read_text(encoding="utf-8")
    assert (stubs.libraries / "libSystem.tbd").is_file() and (stubs.libraries / "libobjc.tbd").is_file()


def test_a_release_between_two_on_record_takes_the_older(tmp_path: Path) -> None:
    assert imports_of("2.7.1") == imports_of("2.6.0")
    assert imports_of("1.13.1") == imports_of(known_releases()[0])


@pytest.mark.zig
def test_every_row_compiles(tmp_path: Path) -> None:
    """Each method is sent, each enum constant named, each function called: a row that cannot be used fails here."""
    checker = bare_checker(tmp_path, target="27.0")
    file = tmp_path / "rows.mm"
    file.write_text(_use_all(), encoding="utf-8")
    wrong = [said for said in read_output(compile_file(checker, file)) if said.kind == "error" or "objc" in said.flag]
    assert [f"{said.line}: {said.text}" for said in wrong] == []


@pytest.mark.zig
def test_a_row_with_a_type_that_is_none_does_not_compile(tmp_path: Path) -> None:
    checker = bare_checker(tmp_path, target="27.0")
    path = checker.frameworks.include / "Metal" / "Metal.h"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("- (void)endEncoding;", "- (MTLNothing *)endEncoding;"), encoding="utf-8")
    file = tmp_path / "rows.mm"
    file.write_text("#include <Metal/Metal.h>\n", encoding="utf-8")
    assert any(said.file == str(path) for said in read_output(compile_file(checker, file)) if said.kind == "error")


def _use_all() -> str:
    lines = [f"#include <{one.name}/{one.name}.h>" for one in FRAMEWORKS if one.name != "os"]
    lines += ["#include <os/log.h>", "#include <os/signpost.h>", "template <typename T> T any();"]
    for number, each in enumerate(TYPES.values()):
        lines.append(f"void use_{number}() {{")
        lines += [f"  {_send(each, method.selector, method.arguments, method.is_class)};" for method in each.methods]
        lines.append("}")
    for one in FRAMEWORKS:
        for enum in one.enums:
            lines += [
                f"static_assert(({enum.type}){name} == ({enum.type}){value});" for name, value in enum.constants.items()
            ]
        for function in one.functions:
            given = ", ".join(
                f"any<{type_.removeprefix('const ') if 'io_string_t' not in type_ else 'char *'}>()"
                for type_ in function.arguments
            )
            lines.append(f"void call_{function.name}() {{ (void)({function.name}({given}), 0); }}")
    return "\n".join(lines) + "\n"


def _send(each: Interface, selector: str, arguments: tuple[str, ...], is_class: bool) -> str:
    kind = each.name if is_class else ("id<%s>" if each.superclass is None else "%s *") % each.name
    receiver = each.name if is_class else f"any<{kind}>()"
    types = [_plain(type_, each) for type_ in arguments if type_ != "..."]
    words = selector.split(":")
    if not types:
        return f"(void)[{receiver} {selector}]"
    sent = " ".join(f"{word}:any<{type_}>()" for word, type_ in zip(words, types, strict=False))
    return f"(void)[{receiver} {sent}]"


def _plain(type_: str, each: Interface) -> str:
    for name in each.type_parameters:
        type_ = re.sub(rf"\b{name}\b", "id", type_)
    return type_


def test_versions_compare_as_numbers() -> None:
    assert version("9.0") < version("14.0") < version("14.4")
