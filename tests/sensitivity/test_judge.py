"""How a plant is judged that no case was written for: which cases are asked, and what counts as a catch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from catalogue import FILES
from device_suite.cases import Case
from judge_plants import Record, choose, first_catch, load_plot
from planting import Plot
from suite_in_process import DEVICE_TESTS, Suite

plot = Plot()


@plot.called(torch.Tensor.imag.__get__)
def imaginary(hit: Any, func: Any, x: Any) -> Any:
    hit()
    return func(x) + 1


@plot.called(torch.neg)
def clumsy(hit: Any, func: Any, x: Any) -> Any:
    if x.dim() == 1:
        raise RuntimeError("the plant itself fails here")
    hit()
    return func(x) + 1


def _asked_of(*cases: Case) -> Suite:
    suite = Suite(())
    suite.cases = list(cases)
    return suite


def test_a_plant_at_a_property_is_asked_of_the_cases_that_read_it() -> None:
    case = Case("read", "complex", lambda x: torch.complex(x, x).imag, lambda d: (d.normal(3),))
    suite = _asked_of(case)
    assert Record(suite).cases_for(plot.places["imaginary"], suite) == [case]


def test_a_failure_before_a_plant_did_harm_is_no_catch_and_does_not_end_the_search() -> None:
    line = Case("line", "smoke", lambda x: torch.neg(x), lambda d: (d.normal(3),))
    table = Case("table", "smoke", lambda x: torch.neg(x), lambda d: (d.normal(3, 4),))
    assert first_catch(_asked_of(line, table), plot, "clumsy", [line, table]).case.id == "table"


def test_the_plants_of_a_sample_are_chosen_from_all_files() -> None:
    chosen = choose([], "", "crossed-conditions", blind=False)
    blind = choose([], "", "", blind=True)

    assert len({id(plot) for plot, _ in chosen}) > 3
    assert {name for _, name in chosen} < {name for _, name in blind}
    with pytest.raises(ValueError, match="no plant is chosen"):
        choose([], "nothing is called this", "", blind=False)


def test_a_plant_of_the_catalogue_is_loaded_from_its_path_alone() -> None:
    """As `verify_mps --plant` does it: no other folder of these is on the path."""
    code = "import sys; from device_suite.plants import Plant; print(Plant(sys.argv[1]).hits)"
    argv = [sys.executable, "-c", code, f"{FILES[0].parent / 'attention_masks.py'}:issue_184180"]
    told = subprocess.run(argv, cwd=DEVICE_TESTS, capture_output=True, text=True, check=False)

    assert (told.returncode, told.stdout, told.stderr) == (0, "0\n", "")


def test_files_of_one_name_in_two_folders_are_two_files(tmp_path: Path) -> None:
    """The second file's plants had never been judged: the first one's were, twice."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "plants_1.py").write_text(f"plot = {folder!r}\n")

    assert [load_plot(tmp_path / folder / "plants_1.py") for folder in ("one", "two")] == ["one", "two"]
