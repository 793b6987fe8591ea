"""The example recording that ships with the repository: each command that takes a recorded Mac takes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build import cli

EXAMPLE = Path(__file__).parents[3] / "docs" / "host" / "example_mac.json"


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (("doctor", "v2.9.1"), 0),
        (("build_wheel", "v2.9.1", "--dry-run", "--offline"), 0),
        (("verify_mps", "torch==2.9.1"), 3),
    ],
    ids=["doctor", "build_wheel", "verify_mps"],
)
def test_the_example_recording_can_be_tried(
    command: tuple[str, ...],
    status: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("WORK", "CACHE"):
        monkeypatch.setenv(f"MPS_BUILD_{name}", str(tmp_path / name))

    assert cli.main(command[0], [*command[1:], "--host", str(EXAMPLE)]) == status

    assert "an example written after public texts: it is of no real Mac" in capsys.readouterr().out
