"""Servers on this machine, well-behaved and not, and the clients that read them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import ssl
import sys
import threading
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.common.process import Captured, Command, capture

Act = Callable[[BaseHTTPRequestHandler], None]


@contextlib.contextmanager
def served(act: Act, *, tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[str]]]:
    """Serve every GET by `act`; give the server's address, and the paths that were requested."""
    requested: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            requested.append(self.path)
            self.close_connection = True
            with contextlib.suppress(OSError):  # who queried has gone
                act(self)

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.daemon_threads = True
    server.block_on_close = False
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}", requested
    finally:
        server.shutdown()
        server.server_close()


def page(handler: BaseHTTPRequestHandler, body: bytes, *, kind: str = "text/html") -> None:
    """Answer with a whole page."""
    handler.send_response(200)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def packed(body: bytes, *, encoding: str, data: bytes | None = None) -> Act:
    """A page in a compressed form; `data` is that form, where the server does not do what it says."""
    wide = {"gzip": 31, "deflate": 15, "raw": -15}.get(encoding, 31)
    packer = zlib.compressobj(9, zlib.DEFLATED, wide)
    form = data if data is not None else packer.compress(body) + packer.flush()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/html")
        handler.send_header("Content-Encoding", "deflate" if encoding == "raw" else encoding)
        handler.send_header("Content-Length", str(len(form)))
        handler.end_headers()
        handler.wfile.write(form)

    return answer


def listing(name: str, file: str, *, fragment: str = "") -> bytes:
    """The page of an index with one file; `fragment` is what stands behind its address, such as `#sha256=…`."""
    return f'<!DOCTYPE html><html><body><a href="/{name}/{file}{fragment}">{file}</a></body></html>'.encode()


def index_of(name: str, file: str, act: Act, *, listed: Act | None = None, fragment: str = "") -> Act:
    """An index with one file, which `act` serves; `listed` serves the page that lists it."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if handler.path.endswith(file):
            act(handler)
        else:
            (listed or (lambda handler: page(handler, listing(name, file, fragment=fragment))))(handler)

    return answer


def dripping(*, declared: int | None, kind: str = "application/octet-stream") -> Act:
    """A body that comes byte by byte, twenty a second."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        _head(handler, declared, kind)
        for _ in range(20 * 60):
            handler.wfile.write(b"x")
            time.sleep(0.05)

    return answer


def dripping_head(handler: BaseHTTPRequestHandler) -> None:
    """Headers without an end, byte by byte."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
    for _ in range(60):
        for character in b"X-Header: word\r\n":
            handler.wfile.write(bytes([character]))
            time.sleep(0.05)


def endless(*, declared: int | None = None, kind: str = "application/octet-stream") -> Act:
    """A body as fast as it is read, 256 MB of it at most."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        _head(handler, declared, kind)
        for _ in range(4096):
            handler.wfile.write(b"x" * 65536)

    return answer


def patience(text: str, *, status: int = 503, times: int = 100, then: Act | None = None) -> Act:
    """An answer that asks to come back later, so many times; then another one."""
    left = [times]

    def answer(handler: BaseHTTPRequestHandler) -> None:
        if not left[0] and then is not None:
            then(handler)
            return
        left[0] -= 1
        handler.send_response(status)
        handler.send_header("Retry-After", text)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def _head(handler: BaseHTTPRequestHandler, declared: int | None, kind: str) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", kind)
    if declared is not None:
        handler.send_header("Content-Length", str(declared))
    handler.end_headers()


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
    site, said = wheelhouse.parent / "site", wheelhouse.parent / "reported.json"
    assert main("publish_index", [str(wheelhouse), "--output", str(site), "--json", str(said), *arguments]) == 0
    document: dict[str, Any] = json.loads(said.read_text(encoding="utf-8"))
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
