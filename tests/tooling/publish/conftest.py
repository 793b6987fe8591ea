"""What the tests of the fleet and of the index start from: a Mac with a runner, and a wheelhouse."""

from __future__ import annotations

from pathlib import Path

import pytest
from fleet_hosts import Mac
from http_servers import TORCH, receipt, wheel
from mps_build.common.wheels.wheel_file import read_wheel


@pytest.fixture
def mac(tmp_path: Path) -> Mac:
    return Mac(tmp_path)


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Path:
    folder = tmp_path / "wheelhouse"
    torch = wheel(folder, "torch", TORCH, requires=("filelock", 'numpy; extra == "opt"'))
    receipt(torch, read_wheel(torch).sha256)
    torch.with_name(f"{torch.name}.sigstore.json").write_text("{}", encoding="utf-8")
    wheel(folder, "torchvision", "0.21.0+mps.g7af6987", requires=("torch==2.6.0", "filelock"))
    wheel(folder, "torchaudio", "2.6.0+mps.gd883142", requires=("torch==2.6.0",))
    return folder
