"""The 19 recorded configures of PyTorch 2.6.0, and what the gate must see in each."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mps_build.common.cmake_summary import ConfigureFacts, parse_configure

RECORDED = Path(__file__).parents[2] / "recorded" / "darwin_configure"
CASES = sorted(path.name for path in RECORDED.iterdir())
MISSING = {
    "off_no_xcrun": ("xcrun",),
    "stale_on_then_no_xcrun": ("xcrun",),
    "off_no_sdk": ("sdk",),
    "off_sdk_12_1": ("sdk_too_old",),
    "off_asked_on": ("sdk_too_old",),  # codespell:ignore asked
    "off_no_fw_sdk": ("mpsgraph_in_sdk",),
    "off_no_fw_sys": ("mpsgraph_in_system",),
    "on_no_graph": ("mpsgraph_in_sdk", "mpsgraph_in_system"),
    "on_jit": ("metal_compiler",),
    "on_jit_old_metal": ("metal_too_old",),
}


def _texts(case: str) -> tuple[str, str]:
    folder = RECORDED / case
    return (folder / "configure.log").read_text("utf-8"), (folder / "CMakeCache.txt").read_text("utf-8")


def _expected(case: str) -> dict[str, Any]:
    return dict(json.loads((RECORDED / case / "case.json").read_text("utf-8")))


def test_all_nineteen_records_are_here() -> None:
    assert len(CASES) == 19


@pytest.mark.parametrize("case", CASES)
def test_a_recorded_configure_is_read_as_it_came_out(case: str) -> None:
    facts = parse_configure(*_texts(case))

    expected = _expected(case)
    assert facts.mps_is_on is expected["mps"]
    assert facts.metal_kind == expected["metal"]
    assert facts.generated is expected["finished"]
    assert facts.missing == MISSING.get(case, ())
    assert bool(facts.reason) is (case not in ("on_metal", "on_sdk_12_3", "setup_py_on", "stale_nofw_then_ok"))
    if facts.generated:
        assert facts.openmp is (case == "linux_off")
        assert facts.cxx_standard == "17"
        assert facts.torch_version is not None
        assert facts.torch_version.startswith("2.6.0")


@pytest.mark.parametrize("case", CASES)
def test_without_the_cache_the_decision_is_the_same_and_the_reason_is_never_a_guess(case: str) -> None:
    with_cache, without = (parse_configure(_texts(case)[0], cache) for cache in (_texts(case)[1], ""))

    assert without.mps_is_on is with_cache.mps_is_on
    assert without.metal_kind == with_cache.metal_kind
    if "mpsgraph_in_sdk" in with_cache.missing or "mpsgraph_in_system" in with_cache.missing:
        assert without.missing in ((), ("mpsgraph",))
    else:
        assert without.missing == with_cache.missing


@pytest.mark.parametrize("case", CASES)
def test_a_log_cut_anywhere_never_claims_more_than_the_whole_one(case: str) -> None:
    log, cache = _texts(case)
    whole = parse_configure(log, cache)
    lines = log.splitlines(keepends=True)

    for end in range(CASES.index(case) % 8, len(lines), 8):  # the logs are alike: among them every line is an end
        cut = parse_configure("".join(lines[:end]), cache)
        assert cut.use_mps in (whole.use_mps, None)
        assert cut.can_compile_metal in (whole.can_compile_metal, None)
        assert cut.sdk_version in (whole.sdk_version, None)
        assert not cut.generated or whole.generated


def test_only_a_leftover_of_the_cache_is_called_stale() -> None:
    stale = {case for case in CASES if parse_configure(*_texts(case)).metal_is_stale}

    assert stale == {"stale_jit_then_metal"}


def test_a_refusal_is_distinguished_from_a_closed_gate() -> None:
    refused = {case for case in CASES if parse_configure(*_texts(case)).mps_switched_off}

    assert refused == {"off_asked_off", "stale_asked_off_then_none"}  # codespell:ignore asked


@pytest.mark.parametrize("case", ["on_metal", "off_no_xcrun", "on_jit"])
@pytest.mark.parametrize("form", ["crlf", "colour", "stamps", "buildkit", "indent", "foreign"])
def test_what_relays_add_to_a_log_changes_nothing(case: str, form: str) -> None:
    log, cache = _texts(case)
    lines = log.splitlines()
    said = {
        "crlf": "\r\n".join(lines),
        "colour": "\n".join(f"\x1b[0m{line}\x1b[K  " for line in lines),
        "stamps": "\n".join(f"2026-10-16T09:12:24.3990503Z {line}" for line in lines),
        "buildkit": "\n".join(f"#21 5.532 {line}" for line in lines),
        "indent": "\n".join(f"      {line}" for line in lines),
        "foreign": "Fetching the tools\nwarning: a cache is cold\n0\n" + log,
    }[form]

    assert parse_configure(said, cache) == parse_configure(log, cache)


def test_of_two_configures_in_one_log_the_last_one_counts() -> None:
    off, on = _texts("off_no_xcrun")[0], _texts("on_metal")[0]

    assert parse_configure(off + on) == parse_configure(on)
    assert parse_configure(on + off) == parse_configure(off)


def test_a_run_killed_half_way_does_not_speak_for_the_next() -> None:
    killed = "$ cmake -G Ninja\n" + "\n".join(_texts("off_no_xcrun")[0].splitlines()[:25])
    whole = "$ cmake -G Ninja\n" + _texts("on_metal")[0]

    assert parse_configure(f"{killed}\n{whole}").missing == ()


def test_a_project_configured_on_the_way_does_not_end_the_outer_one() -> None:
    log, cache = _texts("on_metal")
    lines = log.splitlines()
    half = len(lines) // 2
    protoc = "-- Configuring done (1.0s)\n-- Build files have been written to: /build/build_host_protoc/build"

    nested = "\n".join([*lines[:half], protoc, *lines[half:]])
    assert parse_configure(nested, cache) == parse_configure(log, cache)
    assert parse_configure(nested) == parse_configure(log)


def test_the_metal_4_answer_is_taken_from_the_probes_own_line() -> None:
    log = _texts("on_metal")[0]
    probed = log.replace(
        "-- Machine can compile metal shaders",
        "-- Machine can compile metal shaders\n-- Metal toolchain does not support Metal 4.0",
    )

    assert parse_configure(log).can_compile_metal_40 is None
    assert parse_configure(probed).can_compile_metal_40 is False
    assert parse_configure(probed.replace("does not support", "supports")).can_compile_metal_40 is True


def test_a_log_of_something_else_holds_no_facts() -> None:
    facts = parse_configure("[1/2] Building CXX object a.o\nninja: build stopped: subcommand failed.\n")

    assert facts == replace(_nothing(), reason="the log holds no summary of PyTorch's configure")


def _nothing() -> ConfigureFacts:
    return parse_configure("")
