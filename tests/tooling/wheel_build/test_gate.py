"""The gate, on the 19 recorded configures of the real 2.6.0 (tests/recorded/darwin_configure)."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from mps_build.common.cmake_summary import parse_configure
from mps_build.common.errors import GateError
from mps_build.common.process import Command
from mps_build.common.recipe.model import Gate
from mps_build.common.reporting import SilentReporter
from mps_build.wheel_build.gate import ConfigureRun, check_gate, judge
from mps_build.wheel_build.steps.configure import configure

CASES = sorted(
    path for path in (Path(__file__).parents[2] / "recorded" / "darwin_configure").iterdir() if path.is_dir()
)
WANTED = Gate(use_mps=True, can_compile_metal=True, openmp=False)
FIXED_BY_NAME = {
    "off_no_xcrun": "xcode-select --install",
    "off_sdk_12_1": "newer Xcode",
    "on_jit": "--allow-jit-shaders",
    "on_jit_old_metal": "Xcode 15",
    "off_no_fw_sdk": "DEVELOPER_DIR",
    "off_no_fw_sys": "sandbox",
    "on_no_graph": "MetalPerformanceShadersGraph",
    "stale_jit_then_metal": "fresh build folder",
}


def _run(case: Path) -> ConfigureRun:
    cache = case / "CMakeCache.txt"
    return ConfigureRun(
        log_text=(case / "configure.log").read_text(encoding="utf-8"),
        cache_text=cache.read_text(encoding="utf-8") if cache.is_file() else "",
        facts=None,
        build=case,
    )


def _passes(case: Path) -> bool:
    """What case.json expects, but for the two that the gate stops whatever it says: no MPSGraph, a stale answer."""
    expected = json.loads((case / "case.json").read_text(encoding="utf-8"))
    if case.name in ("on_no_graph", "stale_jit_then_metal"):
        return False
    return bool(expected["mps"]) and expected["metal"] == "aot" and bool(expected["finished"])


def test_all_recorded_configures_are_here() -> None:
    assert len(CASES) == 19
    assert sum(map(_passes, CASES)) >= 3


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_recorded_configure_passes_or_stops_as_it_should(case: Path) -> None:
    if _passes(case):
        check_gate(_run(case), WANTED, fresh=False)
        return

    with pytest.raises(GateError) as stopped:
        check_gate(_run(case), WANTED, fresh=False)

    assert FIXED_BY_NAME.get(case.name, "") in f"{stopped.value} {stopped.value.hint}"


def test_shaders_compiled_at_first_use_pass_where_they_are_allowed() -> None:
    case = next(case for case in CASES if case.name == "on_jit")

    check_gate(_run(case), WANTED.model_copy(update={"can_compile_metal": False}), fresh=False)


def test_an_openmp_that_was_not_requested_is_a_mismatch() -> None:
    case = next(case for case in CASES if case.name == "on_metal")
    facts = parse_configure(*(getattr(_run(case), name) for name in ("log_text", "cache_text")))

    keys = [each.key for each in judge(facts, WANTED.model_copy(update={"openmp": True}), written=None)]

    assert keys == ["OpenMP"]


def test_the_variable_that_cmake_itself_holds_must_agree_with_the_summary() -> None:
    case = next(case for case in CASES if case.name == "on_metal")
    facts = parse_configure(*(getattr(_run(case), name) for name in ("log_text", "cache_text")))

    keys = [each.key for each in judge(facts, WANTED, written={"USE_MPS": "OFF"})]

    assert keys == ["USE_MPS"]


def test_a_standard_or_an_openmp_that_nobody_says_is_a_mismatch() -> None:
    case = next(case for case in CASES if case.name == "on_metal")
    log = _run(case).log_text.replace("USE_OPENMP ", "USE_OPENMPX")
    facts = parse_configure(log, "")
    wanted = WANTED.model_copy(update={"cxx_standard": "17"})

    unsaid = {each.key: each.found for each in judge(facts, wanted, written=None)}
    said = judge(facts, wanted, written={"USE_MPS": "1", "CMAKE_CXX_STANDARD": "17"})

    assert unsaid == {"C++ standard": "not said", "OpenMP": "not said"}
    assert said == ()  # an undefined USE_OPENMP is CMake's OFF


def test_a_configure_that_never_read_the_overrides_is_stopped(tmp_path: Path) -> None:
    command = Command(argv=(sys.executable, "-c", "print('configured')"), cwd=tmp_path, environ={})

    with pytest.raises(GateError, match=r"did not read our overrides\.cmake"):
        configure(command, build=tmp_path, log=tmp_path / "log", reporter=SilentReporter(), new_python=False)
