"""How an injected fault is judged: which cases are run, what counts as a catch, and what a budget caught."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import torch

from catalogue import FILES
from engine.cases import Case
from injecting import Faults
from judging import Injected, Pass, faults_of, first_catch, judge, point
from mutants.judge import wilson
from suite_in_process import DEVICE_TESTS, Suite, requested

faults = Faults()


@faults.called(torch.Tensor.imag.__get__)
def issue_imaginary(hit: Any, func: Any, x: Any) -> Any:
    hit()
    return func(x) + 1


@faults.called(torch.neg)
def issue_clumsy(hit: Any, func: Any, x: Any) -> Any:
    if x.dim() == 1:
        raise RuntimeError("the fault itself fails here")
    hit()
    return func(x) + 1


@faults.called(torch.neg)
def issue_deadly(hit: Any, func: Any, x: Any) -> Any:
    os._exit(3)


def _fault(name: str) -> Injected:
    full = f"issue_{name}"
    return Injected(name, faults.makers[full], lambda: faults.hits[full], faults.places[full])


def _case(name: str, act: Any, *shape: int) -> Case:
    return Case(name, "smoke", act, lambda d: (d.normal(*shape),))


LINE, TABLE = _case("line", lambda x: torch.neg(x), 3), _case("table", lambda x: torch.neg(x), 3, 4)


def test_a_fault_at_a_property_is_tried_on_the_cases_that_read_it() -> None:
    read = _case("read", lambda x: torch.complex(x, x).imag, 3)
    done = Pass(Suite(()), [LINE, read])

    assert done.cases_for(_fault("imaginary").places) == [1]
    assert done.cases_for(()) == [0, 1]


def test_a_failure_in_which_a_fault_did_no_harm_is_no_catch_and_does_not_end_the_search() -> None:
    assert first_catch(Suite(()), _fault("clumsy"), [LINE, TABLE]).case.id == "table"


def test_a_fault_that_ends_the_process_is_caught_and_one_that_nobody_meets_is_not_reached() -> None:
    suite = Suite(())

    assert judge(suite, _fault("deadly"), [TABLE])["verdict"] == "caught"
    assert judge(suite, _fault("imaginary"), [TABLE])["verdict"] == "not reached"
    found = judge(suite, _fault("clumsy"), [LINE, TABLE])
    assert (found["verdict"], found["case"], found["cases"]) == ("caught", "table", 2)


def test_a_point_of_the_curve_counts_what_the_first_cases_catch() -> None:
    done = Pass(Suite(()), [LINE, TABLE])
    rows = [{"rank": 0}, {"rank": 1}, {"rank": None}]

    assert [point(rows, done, count)["caught"] for count in (0, 1, 2)] == [0, 1, 2]
    assert [point(rows, done, count)["keys"] for count in (0, 1, 2)] == [0, 1, 2]


def test_the_interval_holds_the_share_and_narrows() -> None:
    assert wilson(0, 60)[0] == 0 == 1 - round(wilson(60, 60)[1], 9)
    few, many = wilson(6, 10), wilson(60, 100)
    assert few[0] < many[0] < 0.6 < many[1] < few[1]


def test_quick_is_the_beginning_of_the_default_and_the_default_of_more() -> None:
    default, more = requested(), requested(keys=10_500)

    assert 0 < default.quick < default.default == len(default.ids) < len(more.ids)
    assert list(more.ids)[: more.default] == list(default.ids)


@pytest.mark.parametrize("text", ["fresh", "fresh:1", "fresh:x:3", "some"])
def test_what_names_no_faults_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="catalogue or fresh:SEED:COUNT"):
        faults_of(text)


def test_a_fault_of_the_catalogue_is_loaded_from_its_path_alone() -> None:
    """As `verify_mps --inject` does it: no other folder of these is on the path."""
    code = "import sys; from engine.faults import InjectedFault; print(InjectedFault(sys.argv[1]).hits)"
    argv = [sys.executable, "-c", code, f"{FILES[0].parent / 'attention.py'}:issue_184180"]
    done = subprocess.run(argv, cwd=DEVICE_TESTS, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")
