"""A relay between sccache and a fleet's Redis: a store that dies, hangs or fills up costs seconds, not the build.

sccache (0.16, measured: docs/fleet/caches.md) waits 60 seconds for *each* file once its store dies or hangs during a
build, and starts no compiler at all when the store is down, or refuses the password, as it starts. ccache's own remote
storage survives a store that is down, but pays its operation timeout for each file when the store hangs. So sccache
talks to this relay, on this machine, for as long as the build runs: the relay asks the store, gives it a few seconds,
and answers "not there" itself where the store does not. Each kind of trouble is reported once, and counted.
"""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

_PATIENCE_SECONDS = 3.0
_FAILURES = 3
_RETRY_SECONDS = 60.0
_LONGEST = 512 * 1024 * 1024  # Redis' own limit of a value
_DEEPEST = 8  # levels of an answer of lists; a GET or SET has one
_MOST_PARTS = 100_000  # sccache asks for one value at a time
_NIL, _OK = b"$-1\r\n", b"+OK\r\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """Where a Redis is, and how it may be shown (no password)."""

    host: str
    port: int
    tls: bool = False

    def __str__(self) -> str:
        return f"redis {self.host}:{self.port}"


class StoreLost(Exception):
    """The store did not answer as a Redis does, or not in time."""


class StoreRelay:
    """A Redis for sccache on this machine, as good as the store behind it; a context manager.

    Args:
        report: gets each kind of trouble once, in a sentence.
        patience: seconds for one question to the store, its whole answer included.
    """

    def __init__(self, store: Store, *, report: Callable[[str], None], patience: float = _PATIENCE_SECONDS) -> None:
        self.store = store
        self.patience = patience
        self.troubles: Counter[str] = Counter()
        self._report = report
        self._lock = threading.Lock()
        self._failures = 0
        self._asleep_until = 0.0
        self._server = _Server(("127.0.0.1", 0), _Session, bind_and_activate=True)
        self._server.relay = self

    def __enter__(self) -> StoreRelay:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), name="store relay", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        """Return where sccache finds the relay, on 127.0.0.1."""
        return int(self._server.server_address[1])

    def is_tried(self) -> bool:
        """True unless the store failed again and again a moment ago."""
        return time.monotonic() >= self._asleep_until

    def answered(self) -> None:
        """Take note of an answer: earlier failures are forgotten."""
        self._failures = 0

    def failed(self, why: str, *, at_once: bool = False) -> None:
        """Take note of a question that the store left open; after several in a row, or `at_once`, it rests a minute."""
        with self._lock:
            self._failures += 1
            if at_once or self._failures >= _FAILURES:
                self._asleep_until = time.monotonic() + _RETRY_SECONDS
        self.trouble(f"{why}: what it would have given is compiled here")

    def trouble(self, what: str) -> None:
        """Count a trouble, and tell it the first time."""
        with self._lock:
            self.troubles[what] += 1
            is_new = self.troubles[what] == 1
        if is_new:
            self._report(f"the shared cache {self.store}: {what}")


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    relay: StoreRelay


class _Session(socketserver.BaseRequestHandler):
    """One connection of sccache's, with a connection of its own to the store."""

    server: _Server

    def setup(self) -> None:
        self.relay = self.server.relay
        self.client = _Wire(self.request)
        self.upstream: _Wire | None = None
        self.greetings: list[bytes] = []  # AUTH and the like: said again on each new connection

    def handle(self) -> None:
        with suppress(OSError, StoreLost):
            while True:
                words = _words(question := self.client.frame(None))
                self.client.send(self._answer(words[0].upper() if words else b"", question), None)

    def finish(self) -> None:
        self._hang_up()

    def _answer(self, command: bytes, question: bytes) -> bytes:
        if command == b"PING":  # sccache says it before each question; the question itself will show
            return b"+PONG\r\n"
        if command == b"CLIENT":  # its library's name and version, which not every Redis takes
            return _OK
        if command in (b"AUTH", b"SELECT"):
            self.greetings.append(question)
            return _OK
        if not self.relay.is_tried():
            return _instead(command)
        try:
            answer = self._ask(question)
        except (OSError, StoreLost) as error:
            self._hang_up()
            self.relay.failed(_reason(error))
            return _instead(command)
        if answer.startswith((b"-NOAUTH", b"-WRONGPASS")):
            return self._refused(answer, command)
        self.relay.answered()
        if answer.startswith(b"-"):
            self.relay.trouble(_sentence(answer))
            return _NIL if command == b"GET" else answer
        return answer

    def _refused(self, answer: bytes, command: bytes) -> bytes:
        self._hang_up()
        self.relay.failed(_sentence(answer), at_once=True)
        return _instead(command)

    def _ask(self, question: bytes) -> bytes:
        deadline = time.monotonic() + self.relay.patience
        if self.upstream is None:
            self.upstream = _Wire(_connect(self.relay.store, self.relay.patience))
            for greeting in self.greetings:
                self.upstream.send(greeting, deadline)
                answer = self.upstream.frame(deadline)
                if answer.startswith(b"-"):
                    return b"-WRONGPASS " + answer[1:]
        self.upstream.send(question, deadline)
        return self.upstream.frame(deadline)

    def _hang_up(self) -> None:
        if self.upstream is not None:
            with suppress(OSError):
                self.upstream.socket.close()
            self.upstream = None


class _Wire:
    """Redis' protocol on a socket, frame by frame; a deadline is a time of the monotonic clock."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._buffer = bytearray()

    def send(self, data: bytes, deadline: float | None) -> None:
        self.socket.settimeout(_left(deadline))
        self.socket.sendall(data)

    def frame(self, deadline: float | None) -> bytes:
        """Return the next whole frame as it came.

        Raises:
            StoreLost: what comes is not a frame, or the connection ends.
            OSError: the connection broke, or the deadline passed.
        """
        parts: list[bytes] = []
        size, open_lists = 0, [1]  # how much each list still lacks, the outermost first; no recursion
        while open_lists:
            line = self._line(deadline)
            if line[:1] not in (b"+", b"-", b":", b"$", b"*"):
                raise StoreLost("it answers, but not as Redis")
            length = self._length(line) if line[:1] in (b"$", b"*") else 0
            if line[:1] == b"$" and length >= 0:
                line += self._exactly(length + 2, deadline)
            parts.append(line)
            size += len(line)
            open_lists[-1] -= 1
            if line[:1] == b"*" and length > 0:
                open_lists.append(length)
            if len(open_lists) > _DEEPEST + 1 or sum(open_lists) + len(parts) > _MOST_PARTS:
                raise StoreLost("it answers, but not as Redis")
            if size > _LONGEST:
                raise StoreLost("it answers without an end")
            while open_lists and not open_lists[-1]:
                open_lists.pop()
        return b"".join(parts)

    def _length(self, line: bytes) -> int:
        try:
            length = int(line[1:])
        except ValueError:
            raise StoreLost("it answers, but not as Redis") from None
        if length > _LONGEST:
            raise StoreLost("it answers, but not as Redis")
        return length

    def _line(self, deadline: float | None) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > 64 * 1024:
                raise StoreLost("it answers, but not as Redis")
            self._more(deadline)
        return self._take(end + 2)

    def _exactly(self, count: int, deadline: float | None) -> bytes:
        while len(self._buffer) < count:
            self._more(deadline)
        return self._take(count)

    def _take(self, count: int) -> bytes:
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        return taken

    def _more(self, deadline: float | None) -> None:
        self.socket.settimeout(_left(deadline))
        data = self.socket.recv(1 << 18)
        if not data:
            raise StoreLost("it closed the connection")
        self._buffer += data


def _connect(store: Store, patience: float) -> socket.socket:
    plain = socket.create_connection((store.host, store.port), timeout=patience)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if not store.tls:
        return plain
    return ssl.create_default_context().wrap_socket(plain, server_hostname=store.host)


def _left(deadline: float | None) -> float | None:
    if deadline is None:
        return None
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("timed out")
    return left


def _words(question: bytes) -> list[bytes]:
    """Return the words of a command that matter here: its name (what follows may be a megabyte).

    >>> _words(b"*2\\r\\n$3\\r\\nGET\\r\\n$1\\r\\nk\\r\\n")
    [b'GET']
    """
    parts = question.split(b"\r\n", 3)
    return [parts[2]] if question.startswith(b"*") and len(parts) > 2 else question.split()[:1]


def _instead(command: bytes) -> bytes:
    """Return what sccache receives where the store gave no answer: a miss, or that nothing was kept."""
    return _NIL if command == b"GET" else b"-ERR the store does not answer\r\n"


def _sentence(answer: bytes) -> str:
    """Return an error answer's text.

    >>> _sentence(b"-OOM command not allowed\\r\\n")
    'OOM command not allowed'
    """
    return answer[1:].decode("utf-8", "replace").strip().rstrip(".")


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
