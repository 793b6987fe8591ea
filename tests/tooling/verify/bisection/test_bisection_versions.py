"""A bisection that skips versions with the same kernels: fewer are tested, and the result is right all the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

pytest.importorskip("llvmlite")

from mps_build.common.console import Console
from mps_build.verify.bisection import report
from mps_build.verify.bisection.runner import Answer, Bisection, CannotTest, Prepared
from mps_build.verify.bisection.search import Span, Standing
from mps_build.verify.bisection.state import Stage, State
from mps_build.verify.bisection.versions import KernelsOf
from small_kernels import GRID, air, bitcode, buffer, builtin, wheel

VERSIONS = tuple(f"2.{minor}.0" for minor in range(6, 16))


def _kernel(name: str, factor: float) -> bytes:
    body = f"""
  %j = zext i32 %i to i64
  %p = getelementptr float, ptr addrspace(1) %in, i64 %j
  %x = load float, ptr addrspace(1) %p, align 4
  %y = fmul float %x, {factor}
  %q = getelementptr float, ptr addrspace(1) %out, i64 %j
  store float %y, ptr addrspace(1) %q, align 4
  ret void"""
    arguments = [buffer(0, "output"), buffer(1, "input", access="read"), builtin(2, GRID)]
    return bitcode(air(name, "ptr addrspace(1) %out, ptr addrspace(1) %in, i32 %i", body, arguments))


class Wheels:
    """A wheel for each version: exp by the factor that the version has, tan another in each."""

    def __init__(self, folder: Path, factors: Mapping[str, float]) -> None:
        self.paths = {
            version: wheel(
                folder / version,
                {
                    "exp_dense_float_float": _kernel("exp_dense_float_float", factor),
                    "tan_dense_float_float": _kernel("tan_dense_float_float", number + 2.0),
                },
            )
            for number, (version, factor) in enumerate(factors.items())
        }

    def fetch(self, version: str) -> Path:
        if version not in self.paths:
            raise CannotTest("no wheel")
        return self.paths[version]


class Asker:
    def __init__(self, bad: Sequence[str]) -> None:
        self.bad, self.tested = bad, list[str]()

    def prepare(self, subject: str) -> Prepared:
        return Prepared(subject=subject)

    def ask(self, prepared: Prepared) -> Answer:
        self.tested.append(prepared.subject)
        return Answer(word="bad" if prepared.subject in self.bad else "good")

    def release(self, prepared: Prepared) -> None: ...


def _searched(wheels: Wheels, bad: Sequence[str], operator: str) -> tuple[Standing, Asker, State, KernelsOf]:
    asker = Asker(bad)
    state = State(question={}, good=VERSIONS[0], bad=VERSIONS[-1])
    kernels = KernelsOf(operator=operator, fetch=wheels.fetch, reporter=Console())
    bisection = Bisection(state=state, runner=asker, save=lambda grown: None, runs=1, changed=kernels.changed)
    span = Span(old=VERSIONS[0], new=VERSIONS[-1], candidates=VERSIONS[1:-1])
    bisection.verify_ends(span)
    return bisection.search(span), asker, state, kernels


def _since(first: str) -> tuple[str, ...]:
    return VERSIONS[VERSIONS.index(first) :]


def test_versions_with_the_same_kernels_are_not_tested(tmp_path: Path) -> None:
    wheels = Wheels(tmp_path, {each: 3.0 if each in _since("2.9.0") else 2.0 for each in VERSIONS})

    found, asker, state, kernels = _searched(wheels, _since("2.9.0"), "exp")

    assert (found.last_old, found.first_new) == ("2.8.0", "2.9.0")
    assert sorted(asker.tested) == ["2.15.0", "2.6.0", "2.8.0", "2.9.0"], "the ends, and both sides of the result"
    assert kernels.note("2.8.0", "2.9.0").endswith("differ between 2.8.0 and 2.9.0: exp_dense_float_float")
    stage = Stage(kind="versions", old=VERSIONS[0], new=VERSIONS[-1], candidates=list(VERSIONS[1:-1]), seek="bad")
    assert "2 probes for 8 candidates, besides the ends; 1 not tested" in report.cost(state, stage)
    assert (
        report.cost(state, stage.model_copy(update={"candidates": ["2.8.0"]}))
        == "1 probe for 1 candidate, besides the ends"
    )


def test_a_cause_in_the_host_is_found_although_the_kernels_point_elsewhere(tmp_path: Path) -> None:
    wheels = Wheels(tmp_path, {each: 3.0 if each in _since("2.9.0") else 2.0 for each in VERSIONS})

    found, _, state, kernels = _searched(wheels, _since("2.13.0"), "exp")

    assert (found.last_old, found.first_new) == ("2.12.0", "2.13.0")
    assert not any(probe.as_of for probe in state.probes.values())
    assert "the cause is not in them" in kernels.note("2.12.0", "2.13.0")


@pytest.mark.parametrize("operator", ["exp", "frobnicate"])
def test_nothing_is_skipped_where_kernels_tell_nothing(tmp_path: Path, operator: str) -> None:
    wheels = Wheels(tmp_path, dict.fromkeys(VERSIONS, 2.0))  # of exp none changes at all

    found, _, state, kernels = _searched(wheels, _since("2.11.0"), operator)

    assert (found.last_old, found.first_new) == ("2.10.0", "2.11.0")
    assert not any(probe.as_of for probe in state.probes.values())
    assert ("cannot be compared" in kernels.note("2.10.0", "2.11.0")) == (operator == "frobnicate")


def test_a_version_without_a_wheel_is_tested(tmp_path: Path) -> None:
    wheels = Wheels(tmp_path, {each: 3.0 if each in _since("2.9.0") else 2.0 for each in VERSIONS})
    del wheels.paths["2.10.0"]

    found, asker, _, _ = _searched(wheels, _since("2.9.0"), "exp")

    assert found.first_new == "2.9.0"
    assert "2.10.0" in asker.tested
