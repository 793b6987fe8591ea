"""The relay before a fleet's Redis: what a good store says passes through, what a bad one does not costs seconds."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from mps_build.wheel_build.compiler_cache.store_relay import Store, StoreRelay
from processes import LONGEST_SECONDS


class Client:
    """What sccache does: one connection, one question after another."""

    def __init__(self, port: int) -> None:
        self.connection = socket.create_connection(("127.0.0.1", port), timeout=LONGEST_SECONDS)
        self.file = self.connection.makefile("rb")

    def ask(self, *words: bytes) -> bytes:
        said = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        self.connection.sendall(b"*%d\r\n%s" % (len(words), said))
        line = self.file.readline()
        return line + self.file.read(int(line[1:]) + 2) if line.startswith(b"$") and line != b"$-1\r\n" else line


@contextmanager
def store(answer: Callable[[bytes], bytes | None]) -> Iterator[tuple[Store, list[bytes]]]:
    """Serve a store that answers each packet by `answer`; None hangs, b"" hangs up."""
    heard: list[bytes] = []
    over = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection:
            while not over.is_set() and (data := connection.recv(1 << 20)):
                heard.append(data)
                said = answer(data)
                if said == b"":
                    return
                if said is None:
                    over.wait(20)
                else:
                    connection.sendall(said)

    def accept(server: socket.socket) -> None:
        while not over.is_set():
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, args=(server,), daemon=True).start()
        yield Store(host="127.0.0.1", port=server.getsockname()[1]), heard
        over.set()
        server.shutdown(socket.SHUT_RDWR)


@contextmanager
def relay(upstream: Store, *, patience: float = 0.3) -> Iterator[tuple[StoreRelay, Client, list[str]]]:
    reported: list[str] = []
    with StoreRelay(upstream, report=reported.append, patience=patience) as made:
        client = Client(made.port)
        yield made, client, reported
        client.connection.close()


def nobody() -> Store:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return Store(host="127.0.0.1", port=server.getsockname()[1])


def test_what_the_store_says_passes_through_whole() -> None:
    value = b"PK\r\n" * 100_000

    with (
        store(lambda data: b"$%d\r\n%s\r\n" % (len(value), value)) as (upstream, heard),
        relay(upstream, patience=5) as parts,
    ):
        made, client, reported = parts
        assert client.ask(b"GET", b"key") == b"$400000\r\n" + value + b"\r\n"
    assert heard == [b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"]
    assert reported == []
    assert not made.troubles


@pytest.mark.parametrize("command", [b"GET", b"SET"])
def test_a_store_that_is_gone_is_a_miss_and_a_write_error_at_once(command: bytes) -> None:
    with relay(nobody(), patience=3600) as (_, client, reported):
        answers = {client.ask(command, b"key") for _ in range(50)}

    assert answers == {b"$-1\r\n" if command == b"GET" else b"-ERR the store does not answer\r\n"}
    assert len(reported) == 1
    assert "refused" in reported[0]


@pytest.mark.parametrize("answer", [b"*1\r\n" * 5000, b"*9" + b"9" * 11 + b"\r\n", b"$9" + b"9" * 11 + b"\r\n"])
def test_an_answer_of_lists_in_lists_or_of_any_length_is_a_miss(answer: bytes) -> None:
    with store(lambda data: answer) as (upstream, _), relay(upstream) as (_, client, reported):
        assert client.ask(b"GET", b"key") == b"$-1\r\n"

    assert reported == [
        f"the shared cache {upstream}: it answers, but not as Redis: what it would have given is compiled here"
    ]


def test_an_answer_without_an_end_is_a_miss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mps_build.wheel_build.compiler_cache.store_relay._LONGEST", 1000)
    answer = b"*99\r\n" + b"$100\r\n%s\r\n" % (b"x" * 100) * 99

    with store(lambda data: answer) as (upstream, _), relay(upstream, patience=5) as (_, client, reported):
        assert client.ask(b"GET", b"key") == b"$-1\r\n"

    assert "it answers without an end" in reported[0]


def test_a_store_that_hangs_costs_its_patience_three_times_and_then_rests() -> None:
    with store(lambda data: None) as (upstream, heard), relay(upstream, patience=0.2) as (made, client, reported):
        assert {client.ask(b"GET", b"%d" % number) for number in range(20)} == {b"$-1\r\n"}
        assert len(heard) == 3
        assert not made.is_tried()
    assert reported == [f"the shared cache {upstream}: no answer in time: what it would have given is compiled here"]


def test_a_store_that_comes_back_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mps_build.wheel_build.compiler_cache.store_relay._RETRY_SECONDS", 0.0)
    answers = iter([b"", b"", b"", b"$2\r\nok\r\n"])

    with store(lambda data: next(answers)) as (upstream, _), relay(upstream) as (_, client, reported):
        assert [client.ask(b"GET", b"key") for _ in range(4)] == [b"$-1\r\n"] * 3 + [b"$2\r\nok\r\n"]
    assert len(reported) == 1


def test_a_full_store_is_reported_and_the_write_error_passed_on() -> None:
    full = b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"
    with store(lambda data: full) as (upstream, _), relay(upstream) as (made, client, reported):
        assert client.ask(b"SET", b"key", b"value").startswith(b"-OOM")
        assert client.ask(b"SET", b"key", b"value").startswith(b"-OOM")
        assert made.is_tried(), "reading still pays"
    assert reported == [f"the shared cache {upstream}: OOM command not allowed when used memory > 'maxmemory'"]


def test_a_refused_password_is_reported_and_the_store_left_alone() -> None:
    refusal = b"-WRONGPASS invalid username-password pair\r\n"
    with store(lambda data: refusal) as (upstream, heard), relay(upstream) as (_, client, reported):
        assert client.ask(b"AUTH", b"user", b"hunter2") == b"+OK\r\n", "else sccache would not start at all"
        assert {client.ask(b"GET", b"key") for _ in range(5)} == {b"$-1\r\n"}
    assert len(heard) == 1
    assert "WRONGPASS" in reported[0]
    assert "hunter2" not in reported[0]


def test_the_password_goes_before_each_new_connections_first_question() -> None:
    answers = iter([b"+OK\r\n", b"", b"+OK\r\n", b"$2\r\nok\r\n"])

    with store(lambda data: next(answers)) as (upstream, heard), relay(upstream) as (_, client, _):
        client.ask(b"AUTH", b"hunter2")
        client.ask(b"GET", b"key")
        assert client.ask(b"GET", b"key") == b"$2\r\nok\r\n"
    assert [b"AUTH" in each for each in heard] == [True, False, True, False]


@pytest.mark.parametrize(
    "junk", [b"HTTP/1.1 400 Bad Request\r\n", b"$twelve\r\n", b"\x00" * 70_000, b"$99999999999\r\n"]
)
def test_what_is_no_redis_is_a_miss(junk: bytes) -> None:
    with store(lambda data: junk) as (upstream, _), relay(upstream) as (_, client, reported):
        assert client.ask(b"GET", b"key") == b"$-1\r\n"
    assert "not as Redis" in reported[0]


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        (b"*1\r\n" * 8 + b"$1\r\nx\r\n", b"*1\r\n"),  # passed on whole
        (b"*2\r\n:1\r\n*-1\r\n", b"*2\r\n"),
        (b"*1\r\n" * 5000 + b"$1\r\nx\r\n", b"$-1\r\n"),  # deeper than any answer is
        (b"*99999\r\n" * 9, b"$-1\r\n"),  # more parts than any answer has
        (b"$" + b"9" * 5000 + b"\r\n", b"$-1\r\n"),
    ],
)
def test_arrays_in_arrays_end_no_relay(said: bytes, answer: bytes) -> None:
    with store(lambda data: said) as (upstream, _), relay(upstream, patience=5) as (_, client, _):
        assert client.ask(b"GET", b"key") == answer
        assert client.connection.fileno() >= 0


def test_a_value_that_trickles_does_not_hold_the_build() -> None:
    """Each packet comes in time, the whole does not."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        upstream = Store(host="127.0.0.1", port=server.getsockname()[1])

        def trickle() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(100)
                try:
                    connection.sendall(b"$1000\r\n")
                    for _ in range(1000):
                        time.sleep(0.05)
                        connection.sendall(b"x")
                except OSError:
                    return

        threading.Thread(target=trickle, daemon=True).start()
        with relay(upstream, patience=0.4) as (_, client, reported):
            assert client.ask(b"GET", b"key") == b"$-1\r\n"  # not the value, which comes to its end later
    assert "no answer in time" in reported[0]
