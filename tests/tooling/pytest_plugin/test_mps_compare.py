"""`--mps-compare` with a fake torch, which has an `mps` that answers wrongly: the plugin's own runs and its summary."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from mps_build.common.process import Captured, Command, capture
from mps_build.pytest_plugin import known_issues
from mps_build.pytest_plugin.runs import child_arguments, read_answers
from mps_build.pytest_plugin.verdicts import (
    Kind,
    Run,
    Verdict,
    as_markdown,
    is_accepted,
    issues_of,
    judged,
    limit_of,
    needs_operators,
)

_PACKAGE = Path(known_issues.__code__.co_filename).resolve().parents[2]
# Its functions ask the modes of the block that they are called in, as torch's do; `mps` adds 2 where the CPU adds 1.
_TORCH = """
__version__ = "2.6.0"
MODES = []

class device:
    def __init__(self, name): self.type = name

class Generator:
    def __init__(self, device="cpu"): self.device = device

class amp: pass

def answer(function):
    def called(*args, **kwargs):
        if not MODES: return function(*args, **kwargs)
        mode = MODES.pop()
        try: return mode.__torch_function__(function, (), args, kwargs)
        finally: MODES.append(mode)
    return called

@answer
def plus_one(value, device="cpu"):
    return value + (2 if device == "mps" else 1)

@answer
def halved(value, device="cpu"):
    if device == "mps":
        raise NotImplementedError("The operator 'aten::half' is not currently implemented for the MPS device.")
    return value / 2

@answer
def ended(device="cpu"):
    import os
    if device == "mps": os._exit(3)
"""
_MODES = """
import torch
class TorchFunctionMode:
    def __enter__(self): torch.MODES.append(self)
class TorchDispatchMode:
    def __enter__(self): pass
    def __exit__(self, *_): pass
"""
_TESTS = """
import pytest, torch
@pytest.fixture(params=["mps"])
def device(request): return request.param
def test_wrong(device): assert torch.plus_one(1, device=device) == 2
def test_absent(device): assert torch.halved(2, device=device) == 1
def test_wrong_everywhere(device): assert torch.plus_one(1, device=device) == 7
def test_right(device): pass
def test_needs_the_option(pytestconfig, device):
    assert pytestconfig.getoption("--library") == "yes" and torch.plus_one(1, device=device) == 2
"""
_CONFTEST = "def pytest_addoption(parser): parser.addoption('--library')\n"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A library's folder, beside the fake torch that its tests import."""
    torch = tmp_path / "site" / "torch"
    for name, text in {
        "__init__.py": _TORCH + "from . import overrides, serialization\n",
        "overrides.py": _MODES,
        "serialization.py": "def register_package(*_): pass\n",
        "utils/__init__.py": "",
        "utils/_python_dispatch.py": _MODES,
    }.items():
        (torch / name).parent.mkdir(parents=True, exist_ok=True)
        (torch / name).write_text(text, encoding="utf-8")
    tests = tmp_path / "library" / "tests"
    tests.mkdir(parents=True)
    (tests / "test_device.py").write_text(_TESTS, encoding="utf-8")
    (tests / "conftest.py").write_text(_CONFTEST, encoding="utf-8")
    return tmp_path / "library"


def _compared(library: Path, *options: str) -> Captured:
    argv = (
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "mps_build.pytest_plugin",
        "--mps-compare",
    )
    environ = {
        "PATH": os.defpath,
        "PYTHONPATH": f"{library.parent / 'site'}{os.pathsep}{_PACKAGE}",
        "GITHUB_STEP_SUMMARY": str(library / "summary.md"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    return capture(Command(argv=(*argv, *options), environ=environ, cwd=library), timeout_seconds=120)


def test_each_failure_on_mps_is_run_on_the_cpu_and_classified(library: Path) -> None:
    said = _compared(library, "--maxfail=9", "--library", "yes", "--mps-compare-json", "found.json", "tests")

    assert said.exit == 1
    kinds = {
        each["test"].partition("::")[2]: each["kind"]
        for each in json.loads((library / "found.json").read_text())["tests"]
    }
    assert kinds == {
        "test_wrong[mps]": "new",
        "test_absent[mps]": "limit",
        "test_wrong_everywhere[mps]": "cpu",
        "test_needs_the_option[mps]": "new",
    }
    assert "4 tests that fail on mps: 2 new, 1 by limits of the release, 1 on the CPU too" in said.stdout
    assert "aten::half is not implemented for mps" in (library / "summary.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("accepted", "kinds", "is_fine"),
    [
        (None, ["limit"], False),
        ("limits", ["limit"], True),
        ("limits", ["limit", "known"], False),
        ("known", ["limit", "known"], True),
        ("known", ["limit", "cpu"], False),
    ],
)
def test_accepted_failures_are_limits_or_known(accepted: str | None, kinds: list[Kind], *, is_fine: bool) -> None:
    assert is_accepted([Verdict("t", kind, "") for kind in kinds], accepted) == is_fine


def test_the_options_of_the_library_stay_and_those_of_the_run_go() -> None:
    given = [
        "-q",
        "-nauto",
        "-k",
        "a or b",
        "--deselect=x",
        "--junitxml",
        "a.xml",
        "--device=mps",
        "t.py::a",
        "-c",
        "a.toml",
    ]

    assert child_arguments(given, ["t.py::a"]) == ["-q", "--device=mps", "-c", "a.toml"]


def test_a_test_that_ended_its_process_is_the_one_that_began_last(tmp_path: Path) -> None:
    rows = [{"test": "a", "begins": True}, {"test": "a", "failed": None}, {"test": "b", "begins": True}]
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows) + '{"test": "b", "fai', encoding="utf-8")

    assert read_answers(file) == ({"a": Run(None)}, "b")


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        (
            "E  TypeError: Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.",
            True,
        ),
        (
            "E  NotImplementedError: The operator 'aten::qr.out' is not currently implemented for the MPS device.",
            True,
        ),
        ("E  RuntimeError: MPS backend does not support complex128", True),
        ("E  NotImplementedError: Unsupported Border padding mode on MPS", True),
        ("E  AssertionError: Tensor-likes are not close!", False),
        ("E  AssertionError: the device mps is not what was expected", False),
    ],
)
def test_a_limit_is_known_by_its_words(text: str, *, limit: bool) -> None:
    assert (limit_of(text) is not None) == limit


_ROW = {
    "id": "144824",
    "title": "indices beyond their table: gather",
    "link": "https://a/1",
    "operators": ["embedding*"],
}


def test_a_known_issue_is_named_by_the_operator_that_differs() -> None:
    mps, right = Run("E  AssertionError: not close"), Run(None)

    def kind(operator: str) -> str:
        return judged("t", mps, right, Run(None, differ={operator: "differs by 1"}), [_ROW]).kind

    assert [kind(each) for each in ("aten::gather.out", "aten::embedding_dense_backward", "aten::mm")] == [
        "known",
        "known",
        "new",
    ]
    assert issues_of([], [_ROW]) == []


def test_a_row_names_what_python_calls_and_the_dispatcher_a_part_of_it() -> None:
    """Found with `x << 32` on 2.15.0: it dispatches `aten::__lshift__`, and the row of shifts was not named."""
    spelled = {
        "aten::__lshift__.Tensor": "bitwise_*_shift*",
        "aten::__irshift__.Scalar": "bitwise_*_shift*",
        "aten::index_put_": "index_put",
        "aten::native_batch_norm_backward": "batch_norm",
        "aten::log_sigmoid_forward": "log_sigmoid",
        "aten::_softmax_backward_data": "softmax",
        "aten::_prelu_kernel": "prelu",
        "aten::_scaled_dot_product_attention_math_for_mps": "attention_*",
        "aten::_upsample_bilinear2d_aa": "_upsample_bilinear2d_aa",
    }

    def is_named(operator: str, pattern: str) -> bool:
        return bool(issues_of([operator], [{"id": "1", "title": "", "operators": [pattern]}]))

    assert [name for name, pattern in spelled.items() if not is_named(name, pattern)] == []
    assert not is_named("aten::index_put_", "index_add") and not is_named("aten::mm", "matmul*")
    assert not is_named("a_library::softmax", "softmax")  # a library's own


def test_a_row_of_all_operators_is_known_by_what_the_test_says() -> None:
    """Found on 2.6.0: a row of empty tensors, of all operators, made known of all that was new."""
    row = {
        "id": "1",
        "title": "an operator refuses a tensor",
        "operators": ["*"],
        "says": "Placeholder tensor is empty",
    }
    where = {"id": "2", "title": "where all of them are written", "operators": ["gather"]}
    other = Run(None, differ={"aten::where": "differs by 1", "a_library::gate": "differs by 1"})

    def kind(said: str) -> str:
        return judged("t", Run(f"E  RuntimeError: {said}"), Run(None), other, [row, where]).kind

    assert [kind("not close"), kind("Placeholder tensor is empty!")] == ["new", "known"]


@pytest.mark.parametrize(
    ("why", "kind"),
    [
        ("Convolution3D is not supported on MPS", "limit"),
        ("Trying to convert Float8_e4m3fn to the MPS backend but there is no mapping for it.", "limit"),
        ("[srcBuf length] > 0 INTERNAL ASSERT FAILED", "new"),
        ("Placeholder storage has not been allocated on MPS device!", "new"),
    ],
)
def test_an_operator_that_fails_on_mps_alone_is_a_limit_only_if_it_says_so(why: str, kind: Kind) -> None:
    verdict = judged("t", Run("E  AssertionError: None"), Run(None), Run(None, absent={"aten::f": why}), [])

    assert verdict.kind == kind
    assert kind == "limit" or verdict.reason == f"aten::f refuses what the CPU answers: {why}"


def test_what_differs_on_the_cpu_too_or_in_another_way_is_not_called_news() -> None:
    mps = Run("E  AssertionError: 3 mismatched on mps:0")

    assert judged("t", mps, Run("E  AssertionError: 4 mismatched on cpu"), None, []).kind == "cpu"
    other = Run("E  AttributeError: no attribute")
    assert needs_operators(mps, other)
    assert judged("t", mps, other, Run("E  AssertionError: 3 mismatched on mps:0"), []).kind == "undecided"
    assert judged("t", mps, other, Run(None), []).kind == "new"  # the names of the device alone were in the way


def test_a_page_says_where_nothing_fails_and_escapes_what_tests_say() -> None:
    assert "Nothing fails on mps" in as_markdown([], where="torch 2.6.0")
    verdict = judged("t[a|b]", Run("E  ValueError: <b>"), Run(None), Run(None), [])
    assert "t[a\\|b]" in as_markdown([verdict], where="") and "&lt;b>" in as_markdown([verdict], where="")
