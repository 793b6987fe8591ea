"""Regressions in normalisation: what each catalogue entry calls its smallest showing case."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases

cases = Cases("regressions")


def test_case(case: Any, ask: Any) -> None:
    ask(case)


@cases.case("issue-131750", issue="131750", make=lambda d: d.normal(6 + d.k, 4), terms=4)
def _row_slice_is_normalised_where_it_lies(x: torch.Tensor) -> Any:
    return F.layer_norm(x[1:3], (4,)), F.layer_norm(x[1:3].clone(), (4,))
