"""The diagnosis before any case: every cause is distinguished, and each has its exit code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from macs import specimens
from mps_build.common.known_issues import is_too_old, macos_floor, said_floor
from mps_build.common.process import Captured
from mps_build.common.recipe.catalogue import all_recipes
from mps_build.host.triage.device_texts import real_floor
from mps_build.verify.target.diagnosis import HostFacts, host_obstacle, observe_host, read_probe, torch_obstacle


class Text:
    def __init__(self, category: str) -> None:
        self.category, self.stop = category, False


def judge_text(text: str, exit_code: int | None, signal_name: str | None) -> Text:
    zero = "MPS allocated: 0 bytes, other allocations: 0 bytes" in text
    return Text("virtual_gpu_unusable" if zero else "gpu_fault" if "0000000e" in text else "unknown")


def mac(**facts: Any) -> HostFacts:
    base: dict[str, Any] = {"system": "Darwin", "macos": "15.3", "chip": "Apple M3", "virtual": False}
    return HostFacts(**{**base, "rosetta": False, "apple_silicon": True, "document": {}, **facts})


def said(*stages: Mapping[str, Any], exit: int | None = 0, stderr: str = "") -> Captured:
    return Captured(
        argv=("python",), stdout="".join(json.dumps(stage) + "\n" for stage in stages), stderr=stderr, exit=exit
    )


PYTHON = {"stage": "python", "machine": "arm64", "version": "3.11.7"}
TORCH = {"stage": "import", "torch": "2.13.0", "commit": "0" * 40}
DEVICE = {"stage": "device", "built": True, "available": True, "name": "Apple M3"}
RIGHT = {"stage": "compute", "wrong": None}


def obstacle(answer: Captured, host: HostFacts | None = None, device: str = "mps") -> tuple[int, str]:
    found = torch_obstacle(read_probe(answer), host or mac(), device, judge_text)
    return (0, "") if found is None else (found.exit_code, f"{found} {found.hint}")


def test_a_mac_whose_device_computes_has_no_obstacle() -> None:
    assert obstacle(said(PYTHON, TORCH, DEVICE, RIGHT)) == (0, "")


@pytest.mark.parametrize(
    ("answer", "host", "code", "words"),
    [
        (said({**PYTHON, "machine": "x86_64"}, TORCH, DEVICE, RIGHT), mac(), 15, "Rosetta"),
        (said(PYTHON, TORCH, {**DEVICE, "built": False, "available": False}), mac(), 12, "built without MPS"),
        (said(PYTHON, TORCH, {**DEVICE, "available": False}), mac(macos="13.6"), 13, "needs 14.0"),
        (said(PYTHON, TORCH, {**DEVICE, "available": False}), mac(), 14, "macOS 15.3 is new enough for it (14.0)"),
        (said(PYTHON, TORCH, {**DEVICE, "available": False}), mac(macos=None), 14, "may not be to blame"),
        (said(PYTHON, TORCH, DEVICE, RIGHT), mac(virtual=True), 16, "virtual machine"),
        (
            said(PYTHON, TORCH, {**DEVICE, "name": "Apple Paravirtual device"}, RIGHT),
            mac(virtual=None),
            16,
            "Paravirtual",
        ),
        (
            said(PYTHON, TORCH, DEVICE, {"stage": "compute", "wrong": "the sum of 1000 ones is 0"}),
            mac(),
            17,
            "sum of 1000",
        ),
        (said(PYTHON, TORCH, DEVICE, exit=-6, stderr="failed assertion"), mac(), 17, "SIGABRT: failed assertion"),
        (said(PYTHON, TORCH, DEVICE, exit=1, stderr="Timeout (0:00:30)!"), mac(), 17, "exit 1"),
        (said(PYTHON, TORCH, DEVICE, RIGHT, stderr="Internal Error (0000000e"), mac(), 17, "wrote of a fault"),
        (
            said(
                PYTHON,
                TORCH,
                DEVICE,
                {"stage": "compute", "wrong": "MPS allocated: 0 bytes, other allocations: 0 bytes"},
            ),
            mac(virtual=None),
            16,
            "no buffers",
        ),
        (said(PYTHON, {"stage": "import", "error": "ImportError: symbol not found"}), mac(), 6, "symbol not found"),
        (said(PYTHON, exit=-11, stderr="dyld"), mac(), 6, "died with SIGSEGV: dyld"),
        (said(PYTHON, exit=None), mac(), 6, "no end within minutes"),
    ],
)
def test_each_cause_is_distinguished(answer: Captured, host: HostFacts, code: int, words: str) -> None:
    found, text = obstacle(answer, host)

    assert found == code
    assert words in text


def test_an_old_macos_is_blamed_with_the_real_floor_and_torchs_own_word() -> None:
    answer = said(PYTHON, {**TORCH, "torch": "2.5.1"}, {**DEVICE, "available": False})

    code, text = obstacle(answer, mac(macos="12.7.6"))

    assert code == 13
    assert "needs 13.0 (its own message says 12.3, which is not enough)" in text


def test_torch_2_15_on_macos_14_is_too_old_though_torch_does_not_ask() -> None:
    assert obstacle(said(PYTHON, {**TORCH, "torch": "2.15.0"}, DEVICE, RIGHT), mac(macos="14.7"))[0] == 13


@pytest.mark.parametrize(
    ("host", "torch", "code"),
    [
        (HostFacts(system="Linux", document={}), None, 3),
        (mac(rosetta=True), None, 15),
        (mac(apple_silicon=False), None, 3),
        (mac(macos="13.6"), "2.9.0", 13),
        (mac(virtual=True), None, 16),
        (mac(), "2.9.0", 0),
    ],
)
def test_the_machine_alone_can_forbid_a_verdict(host: HostFacts, torch: str | None, code: int) -> None:
    found = host_obstacle(host, "mps", torch)

    assert (found.exit_code if found else 0) == code


def test_a_rehearsal_asks_nothing_of_the_machine() -> None:
    assert host_obstacle(HostFacts(system="Linux", document={}), "cpu", None) is None


def test_an_accelerator_that_is_not_there_is_the_hosts_fault() -> None:
    code, text = obstacle(said(PYTHON, TORCH, {**DEVICE, "available": False}), device="cuda")

    assert code == 3
    assert "sees no cuda device" in text


@pytest.mark.parametrize(
    ("torch", "floor", "message"),
    [
        ("1.12.1", "12.3", "12.3"),
        ("2.4.1", "12.3", "12.3"),
        ("2.5.1", "13.0", "12.3"),
        ("2.8.0", "13.0", "13.0"),
        ("2.9.1", "14.0", "14.0"),
        ("2.14.1", "14.0", "14.0"),
        ("2.15.0", "15.0", "15.0"),
        ("2.10.0.dev20251001", "14.0", "14.0"),
        ("1.11.0", None, None),
    ],
)
def test_floor_and_message_of_each_era(torch: str, floor: str | None, message: str | None) -> None:
    assert (macos_floor(torch), said_floor(torch)) == (floor, message)


def test_the_floors_are_those_of_triage_and_of_every_recipe() -> None:
    recipes = [recipe for recipe in all_recipes() if recipe.release is not None]

    assert len(recipes) > 10
    for recipe in recipes:
        assert macos_floor(recipe.version) == recipe.mps_floor == real_floor(recipe.version), recipe.name
        assert recipe.mps_message in (None, said_floor(recipe.version)), recipe.name


# What the whole host's blockers come to here; of several, the first that is met decides.
STATUSES = {"rosetta": 15, "intel_cpu": 3, "macos_too_old_for_wheel": 13, "virtual_gpu": 16}


@pytest.mark.parametrize("host", specimens("hosts"), ids=lambda host: str(host["id"]))
def test_a_recorded_host_is_refused_for_its_own_blocker(host: dict[str, Any], tmp_path: Path) -> None:
    recording = tmp_path / "host.json"
    recording.write_text(json.dumps({"probes": host["probes"]}))

    found = host_obstacle(observe_host(recording), "mps", host["wheel"]["torch"])

    expected = [status for blocker, status in STATUSES.items() if blocker in host["expect"]["blockers"]]
    assert (found.exit_code if found else 0) == (expected[0] if expected else 0)


def test_a_torch_without_a_floor_is_never_too_new_for_a_mac() -> None:
    assert not is_too_old("12.0", "1.11.0")
