"""The line that adds a package to this copy of mps-build, for each way that it was installed."""

from __future__ import annotations

import json
import shlex
import sys
from importlib import metadata
from pathlib import Path

import pytest
from mps_build.common import interpreters
from mps_build.common.interpreters import adding, line_that_adds

SOURCE = "git+https://example.org/mps-build"


@pytest.mark.parametrize(
    ("folder", "file", "line"),
    [
        ("tools/mps-build", "uv-receipt.toml", f"uv tool install --force --with 'ziglang>=0.17' {SOURCE}"),
        ("venvs/mps-build", "pipx_metadata.json", "pipx inject mps-build 'ziglang>=0.17'"),
        ("uv/archive-v0/x3Y", "pyvenv.cfg", f"uvx --with 'ziglang>=0.17' --from {SOURCE} mps-build"),
        ("my env", "pyvenv.cfg", "'{prefix}/bin/python' -m pip install 'ziglang>=0.17'"),
    ],
)
def test_each_kind_of_environment_has_its_own_line(tmp_path: Path, folder: str, file: str, line: str) -> None:
    prefix = tmp_path / folder
    prefix.mkdir(parents=True)
    (prefix / file).touch()

    said = adding("ziglang>=0.17", prefix=prefix, source=SOURCE)

    assert said == line.format(prefix=prefix)
    assert "ziglang>=0.17" in shlex.split(said)


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        ({"url": "https://example.org/mps-build", "vcs_info": {"vcs": "git"}}, SOURCE),
        ({"url": "file:///home/me/mps-build", "dir_info": {}}, "/home/me/mps-build"),
        (None, "mps-build"),
    ],
)
def test_the_source_is_the_one_that_it_came_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, origin: dict[str, object] | None, source: str
) -> None:
    class Found(metadata.Distribution):
        def read_text(self, filename: str) -> str | None:
            return json.dumps(origin) if origin else None

        def locate_file(self, path: object) -> Path:
            raise AssertionError

    monkeypatch.setattr(interpreters, "in_checkout", lambda: False)
    monkeypatch.setattr(metadata, "distribution", lambda name: Found())
    (tmp_path / "uv-receipt.toml").touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))

    assert line_that_adds("pillow", session="x") == f"`uv tool install --force --with pillow {source}`"


def test_a_clone_has_its_session() -> None:
    assert line_that_adds("llvmlite>=0.50", session="verify_kernels") == "`nox -s verify_kernels` installs it by itself"
