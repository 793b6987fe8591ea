"""What the words of a compiler mean: a mistake, or a gap of our declarations."""

from __future__ import annotations

import pytest
from mps_build.wheel_build.mm.diagnostics import (
    Known,
    apple_header,
    concerns,
    judge,
    nearest,
    newer_than_target,
    read_output,
)
from mps_build.wheel_build.objc.model import load_frameworks

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


def test_apples_headers_are_known_by_their_form() -> None:
    assert apple_header("UIKit/UIKit.h") == "UIKit"
    assert apple_header("MetalPerformanceShaders/MPSImage.h") == "MetalPerformanceShaders"
    assert apple_header("torch/torch.h") is None
