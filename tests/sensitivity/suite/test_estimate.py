"""What a run says before its first case, and how --op finds cases of the core without running all of them."""

from __future__ import annotations

import functools
import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest
import torch
import torch.nn.functional as F

import engine.estimate
from engine.cases import Case
from engine.dispatch import dispatching, names_in, names_of
from engine.estimate import LONG_COST, Cost, estimate, measured
from engine.sampler import Case as DrawnCase
from engine.selection import Selection

DRAWN = [DrawnCase("exp", "common", 0), DrawnCase("add", "layout", 1)]


def test_what_is_counted_is_what_cases_and_graphs_take_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.estimate, "measured", lambda drawn, device: Cost(case=0.01, key=0.5))
    long = Case("net", "regressions", lambda: 0, limit_seconds=600.0)

    here = estimate([], DRAWN, 20.0, torch.device("cpu"))
    with_long = estimate([long], DRAWN, 20.0, torch.device("cpu"))
    on_gpu = estimate([], DRAWN, 20.0, torch.device("mps"))

    assert (here.cases, here.keys) == (2, 20)
    assert here.low_seconds == here.high_seconds == round(2 * 0.01 + 20 * 0.5, 1)
    assert with_long.high_seconds > here.high_seconds + LONG_COST * 0.01 - 0.1
    assert on_gpu.low_seconds < here.low_seconds < on_gpu.high_seconds
    assert on_gpu.high_seconds / here.high_seconds < 1.5


def test_a_graph_costs_what_the_first_time_on_a_device_took_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the second device is meta, whose answers are no answers; the clock says what each pass took.

    On an H200 the libraries that the first calls loaded were counted as graphs: 65 to 110 s were said, 40 followed.
    """
    seconds = (90.0, 3.0, 9.0, 1.0)  # what loads, on the CPU, on the device, and again

    cost = measured(DRAWN, torch.device("meta"), _clock_of(*seconds))

    assert cost.case == pytest.approx(1.0, abs=0.01)
    assert 0 < cost.key <= 9.0 - 1.0


def test_a_function_that_is_compiled_for_long_does_not_count_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A special function among the cases that were counted on an H200: 603 to 1,019 s were said, 55 followed."""
    monkeypatch.setattr(engine.estimate, "_SHARE", 1)
    drawn = [DrawnCase("add", "common", 0), DrawnCase("exp", "common", 0)] * 8
    loads, on_cpu, again = 8 * [1.0], 8 * [1.0], 8 * [1.0]

    cost = measured(drawn, torch.device("meta"), _clock_of(*loads, *on_cpu, 100.0, *7 * [1.1], *again))

    assert cost.key < 1.0


def _clock_of(*seconds: float) -> Callable[[], float]:
    """Return a clock by which each case takes so many seconds."""
    times = itertools.accumulate(itertools.chain.from_iterable((0.0, one) for one in seconds))
    return lambda: next(times)


def test_watching_what_is_dispatched_does_not_import_torch_compile() -> None:
    """Its import took 5 s of each process of --quick on an H200."""
    engine, _ = Path(estimate.__code__.co_filename).parents[:2]
    program = (
        "import sys, torch\nfrom engine.keys import Dispatched\nmet = Dispatched()\n"
        "with met.watching():\n    torch.ones(2) + 1\n"
        "assert met.keys and 'torch._dynamo' not in sys.modules"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], check=False, cwd=engine.parent, capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr


def _named_in_a_table(x: Any, table: Any = ("softmax", {"inner": lambda y: y.erf()})) -> Any:
    return [getattr(torch, table[0])(x, 0), table[1]["inner"](x)]


def _calls_another(x: Any) -> Any:
    return _named_in_a_table(x)


def test_the_names_of_code_are_those_of_all_that_it_calls_or_holds() -> None:
    inner = functools.partial(F.relu, inplace=True)

    assert {"softmax", "erf"} <= names_in(_calls_another)
    assert {"relu", "digamma"} <= names_in(lambda x, held=(("digamma", 1),): (inner(x), held))
    assert "erf" not in names_in(lambda x: x.exp())


def test_an_operator_is_spelled_as_what_dispatches_it() -> None:
    by_description = {"linear": frozenset({"aten.addmm.default"}), "exp": frozenset({"aten.exp.default"})}

    assert {"addmm", "linear", "linear_"} <= names_of("aten.addmm", by_description)
    assert "exp" not in names_of("aten.addmm", by_description)
    assert names_of("aten.exp.out", by_description) == {"exp", "exp_"}
    assert names_of("", by_description) == frozenset()


def test_what_no_description_dispatches_is_looked_for_by_its_own_name() -> None:
    # Without names every case of the core was run on the CPU to know: minutes.
    by_description = {"vander": frozenset({"aten.cumprod.out"}), "exp": frozenset({"aten.exp.default"})}

    assert dispatching("aten.vander", by_description) == {"vander"}
    assert names_of("aten.vander", by_description) == {"vander", "vander_"}
    assert names_of("aten._foreach_add", by_description) == {"_foreach_add", "_foreach_add_"}


@pytest.mark.parametrize(
    ("options", "left_out"),
    [
        ({"quick": True}, ["scenarios/test_models.py"]),
        ({"layers": ("drawn",)}, ["regressions/test_norms.py", "scenarios/test_models.py", "scenarios/test_smoke.py"]),
        ({"layers": ("drawn",), "only": "issue-1"}, []),
        ({}, []),
    ],
)
def test_a_file_is_not_imported_where_its_layer_is_not_chosen(options: dict[str, Any], left_out: list[str]) -> None:
    files = ["regressions/test_norms.py", "scenarios/test_models.py", "scenarios/test_smoke.py", "test_drawn.py"]
    selection = Selection(**{"only": "", "after": "", "without": "", **options})

    assert [file for file in files if selection.leaves_out(Path(file))] == left_out
