"""Makes machine code of Metal kernels for processes that run a macOS wheel, when they ask for it.

python -m mps_build.simulation.official.kernel_server SOCKET ZIG: bitcode of a wheel's Metal library, or source text,
comes over the socket; code for arm64 goes back. Bitcode is read, checked and compiled by a closed process (as a wheel's
kernels are verified); this one only asks, links and keeps. Code is kept by the digest of its bitcode, for all wheels.

A request is three numbers of 64 bits (what, an address, how many bytes follow) and the bytes. An answer is two numbers
(the bytes of a text, and of what was made) and both; where nothing was made, the text says why.
"""

from __future__ import annotations

import hashlib
import os
import socket
import struct
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from mps_build.common.process import Command, capture, watched
from mps_build.common.workspace import cache_folder
from mps_build.inspection.limits import Malformed

from ...kernels.code.compiled import Code, Refused
from ...kernels.code.compiler import Processor, translator_version
from ...kernels.execution.closed import Ended, OurFault, Reader
from ...kernels.execution.sandbox import SandboxUnavailable
from ...kernels.execution.servers import servers
from ...kernels.execution.store import Store, make_private
from ..builder.kernels import CALLED, linked
from ..python import metal_source

MACHINE: Processor = "aarch64"
# native/linux/machine.h has the same.
ASK_NAMES, ASK_KERNEL, ASK_SOURCE = 1, 2, 3
_REQUEST, _ANSWER = struct.Struct("<QQQ"), struct.Struct("<QQ")
MOST_BYTES = 64 << 20
_MOST_REASON = 2000
_SOURCE_TARGET = "aarch64-linux-gnu.2.31"
_COMPILE_SECONDS = 600.0
_WITHOUT = ("-fno-sanitize=all", "-g0", "-fno-exceptions", "-fno-rtti")
VARIABLE = "MPS_BUILD_KERNEL_SERVER"

Answer = tuple[bytes, bytes]


@dataclass(slots=True)
class Kernels:
    """What is made of bitcode and of text, once for each.

    Attributes:
        reader: the socket of the program that starts closed processes.
        home: where compiled kernels, and libraries of source text, are kept.
        zig: the compiler of source text.
    """

    reader: Path
    home: Path
    zig: Path
    _open: Reader | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _store: Store = field(init=False)

    def __post_init__(self) -> None:
        self._store = Store(self.home / "kernels", f"simulated {translator_version(MACHINE)}")

    def answer(self, what: int, base: int, data: bytes) -> Answer:
        """Return what a request is answered with. Never raises for what it holds."""
        if what == ASK_NAMES:
            return " ".join(CALLED).encode(), b""
        if what == ASK_KERNEL:
            return self._kernel(data, base)
        if what == ASK_SOURCE:
            return self._source(data)
        return f"the kernel server does not know request {what}".encode(), b""

    def _kernel(self, bitcode: bytes, base: int) -> Answer:
        code = self._code(bitcode)
        if isinstance(code, Refused):
            return code.reason.encode()[:_MOST_REASON], b""
        try:
            line, data = linked(code, base)
        except Malformed as error:
            return str(error).encode()[:_MOST_REASON], b""
        return line.encode(), data

    def _code(self, bitcode: bytes) -> Code | Refused:
        kept = self._store.load(bitcode)
        if kept is not None:
            return kept
        with self._lock:
            try:
                if self._open is None:
                    self._open = Reader(self.reader)
                code = self._open.compile(bitcode, simulated=True, machine=MACHINE)
            except (Ended, OurFault, SandboxUnavailable, OSError) as error:
                # A process has a limit of time and memory for all that it compiles: the next kernel gets a new one.
                if self._open is not None:
                    self._open.close()
                self._open = None
                return Refused(reason=f"it could not be compiled: {error}", fault="not_compiled")
        self._store.save(bitcode, code)
        return code

    def _source(self, source: bytes) -> Answer:
        try:
            return b"", str(self._library(source.decode("utf-8"))).encode()
        except (metal_source.Unsupported, UnicodeDecodeError) as error:
            return str(error).encode()[:_MOST_REASON], b""

    def _library(self, text: str) -> Path:
        """Return a shared library of a Metal source text.

        Raises:
            Unsupported: it cannot be compiled.
        """
        folder = self.home / "sources"
        make_private(folder)
        digest = hashlib.sha256("\0".join((text, str(self.zig), _SOURCE_TARGET, _translator())).encode()).hexdigest()
        library = folder / f"{digest[:32]}.so"
        if library.is_file():
            return library
        with tempfile.TemporaryDirectory(dir=folder, prefix=".") as scratch:
            file, made = Path(scratch, "kernels.cpp"), Path(scratch, "kernels.so")
            if metal_source.needs_expansion(text):
                plain = Path(scratch, "plain.cpp")
                plain.write_text(metal_source.without_includes(text), encoding="utf-8")
                text = self._zig("c++", *metal_source.EXPANSION, str(plain))
            file.write_text(metal_source.translated(text), encoding="utf-8")
            # As C++ to an object, and that linked as C: no kernel needs a C++ library, which zig would compile first.
            flags = [each for each in metal_source.FLAGS if each != "-shared"]
            unlinked = Path(scratch, "kernels.o")
            self._zig("c++", "-target", _SOURCE_TARGET, *flags, *_WITHOUT, "-c", "-o", str(unlinked), str(file))
            # A function that no library of the process has is an error here, not when the kernel is loaded.
            self._zig("cc", "-target", _SOURCE_TARGET, "-shared", "-Wl,-z,defs", "-o", str(made), str(unlinked), "-lm")
            made.replace(library)
        return library

    def _zig(self, *words: str) -> str:
        command = Command(argv=(str(self.zig), *words), environ=dict(os.environ))
        answer = capture(command, timeout_seconds=_COMPILE_SECONDS)
        if not answer.ok:
            raise metal_source.Unsupported(metal_source.errors_of(answer.stderr) or "its compiler could not be run")
        return answer.stdout


def _translator() -> str:
    digest = hashlib.sha256(metal_source.SHIM.read_bytes())
    digest.update(Path(metal_source.__file__).read_bytes())
    return digest.hexdigest()


def serve(path: Path, zig: Path) -> None:
    """Answer whoever connects, for as long as this process lives."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen(64)
        # Of this thread: a program that is watched ends with the thread that started it.
        with servers(cache_folder() / "kernels", None, {}) as started:
            kernels = Kernels(reader=started.reader, home=cache_folder() / "simulation" / "official", zig=zig)
            while True:
                connection = listening.accept()[0]
                threading.Thread(target=_talk, args=(connection, kernels), daemon=True).start()


def _talk(connection: socket.socket, kernels: Kernels) -> None:
    with connection, suppress(EOFError, ConnectionError):
        while True:
            what, base, size = _REQUEST.unpack(_exactly(connection, _REQUEST.size))
            if size > MOST_BYTES:
                text, data = f"a request of {size} bytes, of at most {MOST_BYTES}".encode(), b""
                connection.sendall(_ANSWER.pack(len(text), 0) + text)
                return
            text, data = kernels.answer(what, base, _exactly(connection, size))
            connection.sendall(_ANSWER.pack(len(text), len(data)) + text + data)


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts, left = [], size
    while left:
        part = connection.recv(min(left, 1 << 20))
        if not part:
            raise EOFError
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


@contextmanager
def kernel_server(zig: Path, environ: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Run the server beside a block; yields the variables of a process that asks it.

    Args:
        environ: zig's whole environment.

    Who asks waits until it has begun, which takes a second or two.
    """
    with tempfile.TemporaryDirectory(prefix="mps-metal-") as folder:
        path, log = Path(folder) / "socket", Path(folder) / "log"
        argv = (sys.executable, "-m", __name__, str(path), str(zig))
        own = {
            "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
            **{name: os.environ[name] for name in ("MPS_BUILD_CACHE", "XDG_CACHE_HOME", "HOME") if name in os.environ},
        }
        with watched(Command(argv=argv, environ={**environ, **own}), log=log):
            yield {VARIABLE: str(path)}


def main() -> None:
    """Serve at the path that the command line names, until ended."""
    path, zig = (Path(each) for each in sys.argv[1:])
    serve(path, zig)


if __name__ == "__main__":
    main()
