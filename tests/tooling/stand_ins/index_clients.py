"""Small wheels, a folder served over HTTP, and the clients that read it."""

from __future__ import annotations

import json
import os
import shutil
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.common.process import Captured, Command, capture

TORCH = "2.6.0+mps.g1eba9b3"


TAG = "cp311-cp311-macosx_14_0_arm64"


def wheel(folder: Path, name: str, version: str, *, requires: tuple[str, ...] = (), tag: str = TAG) -> Path:
    """Write a wheel of one module, as small as a client takes."""
    path = folder / f"{name}-{version}-{tag}.whl"
    info = f"{name}-{version}.dist-info"
    headers = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}", "Requires-Python: >=3.9"]
    headers += [f"Requires-Dist: {each}" for each in requires]
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/__init__.py", f"__version__ = {version!r}\n")
        archive.writestr(f"{info}/METADATA", "\n".join(headers) + "\n")
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n")
        archive.writestr(f"{info}/sboms/mps-build.cdx.json", '{"bomFormat": "CycloneDX"}')
        archive.writestr(f"{info}/RECORD", "")
    return path


def receipt(path: Path, sha256: str) -> None:
    path.with_name(f"{path.name}.receipt.json").write_text(json.dumps({"wheel": {"sha256": sha256}}), encoding="utf-8")


@dataclass
class Server:
    address: str
    requests: list[str] = field(default_factory=list)


def publish(wheelhouse: Path, *arguments: str) -> dict[str, Any]:
    site, told = wheelhouse.parent / "site", wheelhouse.parent / "told.json"
    assert main("publish_index", [str(wheelhouse), "--output", str(site), "--json", str(told), *arguments]) == 0
    document: dict[str, Any] = json.loads(told.read_text(encoding="utf-8"))
    return document


def client_environ(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"}


def pip(folder: Path, *arguments: str) -> Captured:
    argv = (sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "download", "--no-cache-dir")
    platform = ("--platform", "macosx_14_0_arm64", "--python-version", "3.11", "--only-binary", ":all:")
    environ = {name: value for name, value in client_environ(folder).items() if not name.endswith("_proxy")}
    command = Command(argv=(*argv, *platform, "-d", str(folder / "got"), *arguments), environ=environ)
    return capture(command, timeout_seconds=120)


def uv(folder: Path, *arguments: str) -> Captured:
    argv = (
        "uv",
        "pip",
        "install",
        "--python",
        sys.executable,
        "--python-platform",
        "aarch64-apple-darwin",
        "--no-cache",
    )
    target = ("--python-version", "3.11", "--target", str(folder / "got"))
    environ = client_environ(folder) | {"MACOSX_DEPLOYMENT_TARGET": "14.0"}
    return capture(Command(argv=(*argv, *target, *arguments), environ=environ), timeout_seconds=120)


needs_uv = pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed")
