"""The judge's own comparison; needs torch, which the other interpreter has."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

compare: Any = import_module("compare")  # in the judge's folder, whose scripts import each other by their bare names


def _abs(x: Any) -> Any:
    return torch.abs(x)


def _compared(got: Any, masks: dict[str, Any], **inputs: Any) -> Any:
    return compare.compare(_abs, inputs, got, {"name": "abs", "masks": masks}, {"ulp": 1})


def test_wrong_numbers_that_an_issue_explains_are_named() -> None:
    x = torch.tensor([1.0, -2.0, float("nan"), 4.0])
    got = torch.tensor([1.0, 2.0, 0.0, 4.0])
    nan = {"nan": lambda x, **_: torch.isnan(x)}

    assert _compared(got, nan, x=x)["explained"] == ["nan"]
    assert _compared(got, {}, x=x)["explained"] == []

    beside = _compared(torch.tensor([1.5, 2.0, 0.0, 4.0]), nan, x=x)
    assert (beside["explained"], beside["wrong"], beside["index"]) == ([], 1, 0)


def test_wrong_whole_numbers_that_an_issue_explains_are_named() -> None:
    x = torch.tensor([-128, -5, 7], dtype=torch.int8)
    least = {"least": lambda want, largest, **_: want == -largest - 1}

    assert _compared(torch.tensor([127, 5, 7], dtype=torch.int8), least, x=x)["explained"] == ["least"]

    beside = _compared(torch.tensor([127, 4, 7], dtype=torch.int8), least, x=x)
    assert (beside["explained"], beside["wrong"], beside["index"]) == ([], 1, 1)


def test_an_error_without_bound_is_in_the_profile() -> None:
    x = torch.linspace(-9, 9, 2000)
    got = torch.abs(x)
    got[1500] = float("inf")

    assert max(_compared(got, {}, x=x)["profile"]) == 1e300


@pytest.mark.parametrize(
    ("x", "shown"),
    [
        ([float("inf"), 1e30, -5.0, 0.0], 2),  # ordinary inputs before extreme ones
        ([float("nan"), float("inf"), 1e30, -1e-20], 3),  # finite before infinite; of these the largest error
        ([float("inf"), float("-inf")], 1),  # nothing else is there: what is wrong all the same
    ],
)
def test_the_element_that_is_shown_has_the_most_ordinary_inputs(x: list[float], shown: int) -> None:
    given = torch.tensor(x)
    got = torch.abs(given).clone()
    got[[each for each in range(len(x)) if x[each] != 0.0]] = -1.0
    if shown == 1:
        got[0] = torch.inf

    found = _compared(got, {}, x=given)

    assert (found["index"], found["inputs"]["x"]) == (shown, repr(given[shown].item()))
