"""What ccache's own remote storage does when its store is down, refuses, hangs, trickles or answers noise.

nox -s benchmark -- ccache_store [--files 12]

Prints, for each fault and protocol, the wall seconds of the worst file and how many files failed to compile. It is the
reason why the fleet's relay stays (docs/fleet/caches.md); nothing is written to results.json. Needs ccache and gcc.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

TIMEOUTS = "|connect-timeout=200|operation-timeout=1000"


def _noise(connection: socket.socket) -> None:
    connection.recv(9)
    connection.sendall(b"220 mail ready\r\n" * 50)
    connection.close()


def _trickle(connection: socket.socket) -> None:
    connection.recv(100)
    for byte in b"$100000000\r\n":
        time.sleep(1)
        try:
            connection.sendall(bytes([byte]))
        except OSError:
            return


FAULTS: dict[str, Callable[[socket.socket], None] | None] = {
    "down": None,
    "refuses": lambda connection: connection.close(),
    "noise": _noise,
    "hangs": lambda connection: time.sleep(600),
    "trickles": _trickle,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=12)
    files = parser.parse_args().files
    print(f"no store: {_compile('', files)}")
    for fault, act in FAULTS.items():
        for protocol in ("redis", "http"):
            with socket.create_server(("127.0.0.1", 0)) as server:
                port = server.getsockname()[1] if act else 1
                if act:
                    threading.Thread(target=_serve, args=(server, act), daemon=True).start()
                print(f"{fault}, {protocol}: {_compile(f'{protocol}://127.0.0.1:{port}{TIMEOUTS}', files)}", flush=True)


def _serve(server: socket.socket, act: Callable[[socket.socket], None]) -> None:
    while True:
        try:
            connection, _ = server.accept()
        except OSError:
            return
        threading.Thread(target=act, args=(connection,), daemon=True).start()


def _compile(store: str, files: int) -> str:
    """Compile `files` small files with an empty local cache, and say what it cost."""
    worst, failed = 0.0, 0
    with tempfile.TemporaryDirectory() as folder:
        environ = {**os.environ, "CCACHE_DIR": f"{folder}/cache", "CCACHE_REMOTE_STORAGE": store}
        for number in range(files):
            source = Path(folder) / f"f{number}.c"
            source.write_text(f"int f{number}(int x) {{ return x * {number}; }}\n", encoding="utf-8")
            began = time.monotonic()
            argv = ("ccache", "gcc", "-c", str(source), "-o", str(source.with_suffix(".o")))
            failed += subprocess.run(argv, env=environ, capture_output=True, check=False).returncode != 0
            worst = max(worst, time.monotonic() - began)
    return f"worst file {worst:.2f} s, {failed} of {files} failed"


if __name__ == "__main__":
    main()
