"""A server on this machine that behaves as no package server should: slow, without an end, or asking for patience."""

from __future__ import annotations

import contextlib
import ssl
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Act = Callable[[BaseHTTPRequestHandler], None]


@contextlib.contextmanager
def served(act: Act, *, tls: ssl.SSLContext | None = None) -> Iterator[tuple[str, list[str]]]:
    """Serve every GET by `act`; give the server's address, and the paths that were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            asked.append(self.path)
            self.close_connection = True
            with contextlib.suppress(OSError):  # who asked has gone
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
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}", asked
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
        for letter in b"X-Header: word\r\n":
            handler.wfile.write(bytes([letter]))
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
