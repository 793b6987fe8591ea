"""What a kernel may declare: every function of the official wheels, and no other name or type."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from mps_build.kernels.code.model import _LLVM, TENSORS
from mps_build.kernels.code.signatures import is_known

RECORDED = json.loads((Path(__file__).parents[2] / "recorded" / "air_functions.json").read_text())["functions"]


def _is_allowed(name: str, kind: str) -> bool:
    return bool(TENSORS.fullmatch(name) or _LLVM.fullmatch(name) or is_known(name, kind))


def test_every_function_of_the_official_wheels_is_known() -> None:
    assert len(RECORDED) > 300
    assert [row for row in RECORDED if not _is_allowed(*row)] == []


@pytest.mark.parametrize("change", ["ptr", "i64", "...", "double", "<3 x float>"])
def test_no_function_is_known_with_another_type(change: str) -> None:
    """By rule, over all of them: another result, another parameter, one more, one less."""
    for name, kind in RECORDED:
        if not name.startswith("air.") or TENSORS.fullmatch(name):
            continue
        result, _, parameters = kind[:-1].partition(" (")
        each = parameters.split(", ") if parameters else []
        others = [f"{change} ({parameters})", f"{result} ({', '.join([*each, change])})"]
        others += [f"{result} ({', '.join([*each[:at], change, *each[at + 1 :]])})" for at in range(len(each))]
        if each:
            others.append(f"{result} ({', '.join(each[:-1])})")
        known = [other for other in others if other != kind and is_known(name, other)]
        assert all([name, other] in RECORDED or name.startswith("air.atomic.") for other in known), (name, known)


@pytest.mark.parametrize(
    "name",
    ["system", "air.", "air.system", "air.exp", "air.exp.f64", "air.exp.f32.f32", "air.exp.f32\n", "air.convert.f.f32",
     "rt_exp", "air.fast_fast_exp.f32", "llvm.read_register.i64", "llvm.eh.sjlj.setjmp", "dlopen", "air.exp.v9f32"],
)  # fmt: skip
def test_no_other_name_is_known(name: str) -> None:
    kinds = {kind for _, kind in RECORDED}

    assert not any(_is_allowed(name, kind) for kind in kinds)
