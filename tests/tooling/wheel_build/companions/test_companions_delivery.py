"""A companion wheel: audited with torch outside of it, pinned, and made to compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import small_wheels
from mps_build.inspection.audit import Expectation, audit_wheel
from mps_build.inspection.audit.releases import TORCH_LIBRARIES
from mps_build.wheel_build.companions import smoke
from mps_build.wheel_build.companions.delivery import matching_set
from mps_build.wheel_build.companions.plan import PROJECTS
from small_wheels import plan, torch_wheel


def _companion(folder: Path, **changed: Any) -> Path:
    name = changed.pop("name", "torchvision-0.21.0+mps.g1-cp312-cp312-macosx_13_0_arm64.whl")
    demand = changed.pop("demand", "torch==2.6.0+mps.g1")
    extra = changed.pop("extra", {})
    image = small_wheels.Image(
        file_type=8,
        minos=(13, 0),
        dependencies=tuple(
            (path, "strong") for path in changed.pop("loads", ("@rpath/libtorch_cpu.dylib", "@rpath/libc10.dylib"))
        ),
        **changed,
    )
    info = "torchvision-0.21.0+mps.g1.dist-info"
    headers = ["Metadata-Version: 2.1", "Name: torchvision", "Version: 0.21.0+mps.g1", "Requires-Dist: numpy"]
    headers += [f"Requires-Dist: {demand}"] if demand else []
    files = {
        "torchvision/__init__.py": b"",
        "torchvision/_C.so": small_wheels.macho(image),
        f"{info}/METADATA": "\n".join([*headers, "", ""]).encode(),
        **extra,
    }
    return small_wheels.write_wheel(folder, files, name=name)


def _errors(wheel: Path) -> list[str]:
    expectation = Expectation(
        distribution="torchvision",
        deployment_target="13.0",
        metal_sections={},
        external_libraries=TORCH_LIBRARIES,
        requires=("torch==2.6.0+mps.g1",),
    )
    found = audit_wheel(wheel, profile="strict", expectation=expectation)
    return [f"{finding.rule} {finding.evidence}" for finding in found.findings if finding.level == "error"]


def test_a_companion_that_leaves_torch_outside_is_accepted(tmp_path: Path) -> None:
    assert _errors(_companion(tmp_path)) == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"demand": "torch==2.6.0"}, "N5 Requires-Dist: torch==2.6.0; required: torch==2.6.0+mps.g1"),
        ({"demand": ""}, "N5 Requires-Dist: nothing of torch"),
        ({"extra": {"torchvision/.dylibs/libc10.dylib": b""}}, "P7 is bundled"),
        ({"loads": ("/Users/me/venv/torch/lib/libtorch_cpu.dylib",)}, "P4 loads /Users/me/venv"),
        ({"loads": ("@rpath/libpng16.dylib",)}, "P5 loads @rpath/libpng16.dylib"),
        ({"rpaths": ("/Users/me/venv/lib/torch/lib",)}, "P1 LC_RPATH /Users/me/venv"),
    ],
)
def test_a_companion_that_mixes_torches_or_needs_the_builders_disk_is_rejected(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    assert any(error.startswith(said) for error in _errors(_companion(tmp_path, **changed))), said


def test_a_wheel_without_its_compiled_part_is_named_by_the_pattern_that_nothing_fits() -> None:
    assert PROJECTS["torchvision"].missing_extensions(["torchvision/__init__.py"]) == ("torchvision/_C*.so",)
    assert not PROJECTS["torchvision"].missing_extensions(["torchvision/_C_stable.so"])
    assert not PROJECTS["torchaudio"].missing_extensions(["torchaudio/lib/libtorchaudio.so"])


def test_the_pins_hold_this_torch_and_every_companion_that_fits_it_and_no_other(tmp_path: Path) -> None:
    requested = plan(tmp_path)
    wheelhouse = requested.wheelhouse
    fresh = torch_wheel(wheelhouse, "torchvision-0.21.0+mps.g1eba9b3-cp312-cp312-macosx_13_0_arm64.whl")
    torch_wheel(wheelhouse, "torchaudio-2.6.0+mps.g1eba9b3-cp312-cp312-macosx_13_0_arm64.whl")
    torch_wheel(wheelhouse, "torchaudio-2.6.0+mps.g1eba9b3-cp311-cp311-macosx_13_0_arm64.whl")
    (wheelhouse / "torchaudio-2.5.0-cp312-cp312-macosx_13_0_arm64.whl").write_bytes(b"damaged")

    matched = matching_set(requested, [fresh])

    assert matched.constraints() == (
        "torch==2.6.0+mps.g1eba9b3\ntorchvision==0.21.0+mps.g1eba9b3\ntorchaudio==2.6.0+mps.g1eba9b3\n"
    )


def test_a_right_suppression_passes_and_each_injected_fault_is_seen() -> None:
    def plain(boxes: list[smoke.Box], scores: list[float], threshold: float) -> list[int]:
        return smoke.kept_boxes(boxes, scores, threshold)

    def unsorted(boxes: list[smoke.Box], scores: list[float], threshold: float) -> list[int]:
        return sorted(plain(boxes, scores, threshold))

    def lax(boxes: list[smoke.Box], scores: list[float], threshold: float) -> list[int]:
        return plain(boxes, scores, threshold * 1.1)

    def all_of_them(boxes: list[smoke.Box], scores: list[float], threshold: float) -> list[int]:
        return plain(boxes, scores, 1.0)

    assert smoke.check_nms(plain, where="cpu") == 12
    for fault in (unsorted, lax, all_of_them):
        with pytest.raises(SystemExit, match="torchvision::nms on cpu keeps"):
            smoke.check_nms(fault, where="cpu")


def test_suppression_by_hand() -> None:
    boxes = [(0.0, 0.0, 10.0, 10.0), (0.0, 0.0, 10.0, 9.0), (20.0, 20.0, 30.0, 30.0)]

    assert smoke.overlap(boxes[0], boxes[1]) == 0.9 and smoke.overlap(boxes[0], boxes[2]) == 0.0
    assert smoke.kept_boxes(boxes, [0.5, 0.9, 0.1], 0.7) == [1, 2]
    assert smoke.kept_boxes(boxes, [0.5, 0.9, 0.1], 0.95) == [1, 0, 2]


def test_a_right_filter_passes_and_each_injected_fault_is_seen() -> None:
    assert smoke.filtered([1.0, 0.0, 0.0], [1.0, -0.5], [2.0, 0.0]) == [2.0, 1.0, 0.5]
    assert smoke.check_filter(smoke.filtered, where="filter") == 0.0
    with pytest.raises(SystemExit, match="differs from the plain filter"):
        smoke.check_filter(lambda samples, a, b: smoke.filtered(samples, [*a[:-1], 0.0], b), where="filter")
    with pytest.raises(SystemExit, match="differs from the plain filter by nan"):
        smoke.check_filter(lambda samples, a, b: [float("nan")] * len(samples), where="filter")
    with pytest.raises(SystemExit, match="answers 299 samples"):
        smoke.check_filter(lambda samples, a, b: smoke.filtered(samples, a, b)[1:], where="filter")
