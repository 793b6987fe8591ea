"""Runs pip within limits of patience, rate and size: a program of its own, for whichever Python has the pip (3.7 on).

    python limited_pip.py WAIT,WINDOW,RATE,PAGE,BODY,HASH [--from FOLDER] PIP'S ARGUMENTS...

pip obeys a server that asks it to come back tomorrow, without a word; it reads a page without end into memory, and one
that was compressed to a thousandth of its size; and its timeout begins anew with each byte. None of that is an option
of pip's, so the standard library below it is measured: only the time spent waiting for a server counts, not what pip
does with the answer. What pip fetches is printed: from which host, with which hash. HASH is 1 where a file of an index
that gives no strong one is refused, since it would run.
"""

from __future__ import annotations

import email.utils
import http.client
import io
import json
import os
import runpy
import signal
import socket
import sys
import time
import urllib.parse
import urllib.request
import zlib
from typing import Any
from urllib.parse import urlsplit

STATUS = 75
# In the place of pip's command: print how many bytes some files have, as JSON, null where a server does not say.
SIZES = "--sizes"
PAUSE = "mps-build: "
FETCH = "mps-build fetches: "
_STRONG = ("sha256", "sha384", "sha512")
_ENCODINGS = "gzip, deflate"
_refused: list[str] = []
_hosts = ["the server"]


class Refused(KeyboardInterrupt):
    """A server goes past a limit: pip takes any other kind for a reason to try again, or for a fault of its own."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        _refused.append(why)


class _Meter:
    """What came through one connection for one answer, and how long it was waited for."""

    def __init__(self, window: float, rate: float, most: float) -> None:
        self.window, self.rate, self.most = window, rate, most
        self.total = self.count = 0
        self.seconds = 0.0
        self.host = _hosts[-1]

    def take(self, count: int, seconds: float) -> None:
        """Count an answer of the system, and refuse what is too much or too slow."""
        self.total += count
        self.count += count
        self.seconds += seconds
        if self.total > self.most:
            raise Refused(f"{self.host} sends more than {self.most:.0f} bytes, the limit")
        if self.seconds > self.window:
            if self.count < self.rate * self.seconds:
                raise Refused(
                    f"{self.host} sent {self.count} bytes in {self.seconds:.0f} s;"
                    f" less than {self.rate:.0f} bytes a second is given up"
                )
            self.count, self.seconds = 0, 0.0


def limit(wait: float, window: float, rate: float, page: float, body: float, needs_hash: float = 0) -> None:
    """Hold every answer over HTTP in this process to the limits."""
    connection = http.client.HTTPConnection
    readinto, putrequest = socket.SocketIO.readinto, connection.putrequest
    putheader, getresponse = connection.putheader, connection.getresponse

    def meter_of(stream: Any) -> _Meter:
        meter: _Meter = stream.__dict__.setdefault("_meter", _Meter(window, rate, page))
        return meter

    def metered(self: socket.SocketIO, buffer: Any) -> int | None:
        count: int | None = 0
        began = time.monotonic()
        try:
            count = readinto(self, buffer)
        finally:
            meter_of(self).take(count or 0, time.monotonic() - began)
        return count

    def asking(self: Any, method: str, url: str, *arguments: Any, **options: Any) -> None:
        self._is_page, self._is_metadata = True, url.partition("?")[0].endswith(".metadata")
        _hosts[:] = [_host(self)]
        putrequest(self, method, url, *arguments, **options)

    def said(self: Any, header: str, *values: Any) -> None:
        # pip asks for files as they are, and for pages compressed; by what, depends on what is installed.
        if str(header).lower() == "accept-encoding":
            self._is_page = self._is_metadata or values not in (("identity",), (b"identity",))
            values = (_ENCODINGS,) if values not in (("identity",), (b"identity",)) else values
        putheader(self, header, *values)

    def answered(self: Any, *arguments: Any, **options: Any) -> http.client.HTTPResponse:
        response = getresponse(self, *arguments, **options)
        host = _host(self)
        most = page if self._is_page else body
        if response.length is not None and response.length > most:
            raise Refused(f"{host} announces {response.length} bytes; the limit is {most:.0f}")
        if response.fp is not None:
            meter = meter_of(response.fp.raw)
            meter.most = most
        _pause(response, host, wait)
        if self._is_page:
            _decode(response, host, int(page))
        return response

    for owner, name, ours in (
        (socket.SocketIO, "readinto", metered),
        (connection, "putrequest", asking),
        (connection, "putheader", said),
        (connection, "getresponse", answered),
    ):
        setattr(owner, name, ours)


def _host(connection: Any) -> str:
    return str(getattr(connection, "_tunnel_host", None) or connection.host)


def _decode(response: http.client.HTTPResponse, host: str, most: int) -> None:
    """Put a page in the place of its compressed form, before anybody reads it without a bound."""
    encoding = (response.headers.get("Content-Encoding") or "identity").strip().lower()
    if encoding == "identity" or response.fp is None:
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        name = "".join(character for character in encoding[:40] if character.isprintable())
        raise Refused(f"{host} answers in an encoding that was not requested: {name}")
    packed = response.read()
    wide = zlib.MAX_WBITS + 16 if encoding != "deflate" else zlib.MAX_WBITS
    try:
        data = _inflated(packed, wide, host, most)
    except zlib.error:
        if encoding != "deflate":
            raise Refused(f"{host} sends a page that is not the {encoding} it says it is") from None
        data = _inflated(packed, -zlib.MAX_WBITS, host, most)  # some servers leave the frame out
    for name in ("Content-Encoding", "Content-Length", "Transfer-Encoding"):
        del response.headers[name]
    response.headers["Content-Length"] = str(len(data))
    response.fp, response.length, response.chunked = io.BufferedReader(io.BytesIO(data)), len(data), False


def _inflated(packed: bytes, wide: int, host: str, most: int) -> bytes:
    data = b""
    while packed:
        inflater = zlib.decompressobj(wide)
        data += inflater.decompress(packed, most - len(data) + 1)
        if len(data) > most:
            raise Refused(f"{host} sends a page of more than {most} bytes, the limit, in {len(packed)}")
        if not inflater.eof:
            raise zlib.error("cut off")
        packed = inflater.unused_data
    return data


def print_fetches(needs_hash: bool) -> None:
    """Print of each file that pip fetches its host and hash; refuse one without a hash where it needs one.

    The class is pip's own affair, and there since 20.3; with another pip nothing is printed.
    """
    try:
        from pip._internal.network.download import Downloader

        fetch = Downloader.__call__
    except (ImportError, AttributeError):
        return

    def fetching(self: Any, link: Any, *arguments: Any, **options: Any) -> Any:
        if not str(link.filename).endswith(".metadata"):
            _print(link, needs_hash)
        return fetch(self, link, *arguments, **options)

    setattr(Downloader, "__call__", fetching)  # noqa: B010


def _print(link: Any, needs_hash: bool) -> None:
    address = urlsplit(str(link.url_without_fragment))
    host = f"{address.hostname}:{address.port}" if address.port else str(address.hostname)
    hashes = dict(getattr(link, "_hashes", None) or ({link.hash_name: link.hash} if link.hash_name else {}))
    kind = next((name for name in _STRONG if hashes.get(name)), None)
    file = "".join(
        character if character.isprintable() and character != " " else "?" for character in str(link.filename)[:200]
    )
    reported = {"file": file, "host": host, "hash": f"{kind}:{hashes[kind]}" if kind else None, "weak": sorted(hashes)}
    print(f"{FETCH}{json.dumps(reported)}", file=sys.stderr, flush=True)
    if needs_hash and kind is None:
        only = f", only its {' and '.join(sorted(hashes))}" if hashes else ""
        raise Refused(f"{host} gives no sha256 of {file}{only}: it would run unchecked")


def _pause(response: http.client.HTTPResponse, host: str, wait: float) -> None:
    requested = response.headers.get("Retry-After")
    if requested is None or response.status < 400:
        return
    seconds = _seconds(requested)
    shown = "".join(character for character in requested[:40] if character.isprintable())
    why = f"{host} answers {response.status} and asks for a pause of {seconds:.0f} s (Retry-After: {shown})"
    if seconds > wait:
        raise Refused(f"{why}; the longest pause taken is {wait:.0f} s")
    if seconds > 0:
        print(f"{PAUSE}{why}", file=sys.stderr, flush=True)
    else:
        del response.headers["Retry-After"]  # a word that is no time: pip takes it for a fault of its own


def _seconds(requested: str) -> float:
    """Return the seconds that a Retry-After stands for: a number, or a date; 0 for anything else."""
    if requested.strip().isdigit():
        return float(requested.strip()[:12])
    try:
        return max(email.utils.parsedate_to_datetime(requested).timestamp() - time.time(), 0.0)
    except (TypeError, ValueError, IndexError, OverflowError):
        return 0.0


def main(words: list[str]) -> None:
    """Run pip."""
    limits, words = words[0], words[1:]
    folder = None
    if words[:1] == ["--from"]:
        folder, words = words[1], words[2:]
    if "--python" in words:  # pip would start itself anew with that Python, past our limits
        import pip

        at = words.index("--python")
        python = words[at + 1]
        there = ["--from", os.path.dirname(pip.__file__), *words[:at], *words[at + 2 :]]
        os.environ["_PIP_RUNNING_IN_SUBPROCESS"] = "1"
        os.execv(python, [python, os.path.abspath(__file__), limits, *there])
    numbers = [float(each) for each in limits.split(",")]
    limit(*numbers)
    if words[:1] == [SIZES]:
        print(json.dumps(_sizes(words[1:])), flush=True)
        return
    signal.signal(signal.SIGTERM, _end)
    if folder:
        sys.path.insert(0, os.path.dirname(folder))
    # What a lock's own hash is checked against needs none of the index's.
    print_fetches(bool(numbers[5:] and numbers[5]) and "--require-hashes" not in words)
    sys.argv = ["pip", *words]
    try:
        if folder:
            runpy.run_path(folder, run_name="__main__")
        else:
            runpy.run_module("pip", run_name="__main__", alter_sys=True)
    finally:
        if _refused:  # said last, and with a status of its own; pip says no more than that it was cancelled
            print(f"ERROR: {_refused[0]}", file=sys.stderr, flush=True)
            sys.exit(STATUS)


def _sizes(addresses: list[str]) -> list[int | None]:
    """Return the length of each file, queried as pip would: with its certificates, proxies and names."""
    from pip._internal.commands import create_command

    command: Any = create_command("download")
    options, _ = command.parse_args([*addresses])
    found = []
    with command.main_context():
        session = command.get_default_session(options)
        for each in addresses:
            found.append(_size(each, session))
    return found


def _size(address: str, session: Any) -> int | None:
    parts = urllib.parse.urlsplit(address)
    try:
        if parts.scheme == "file":
            return os.path.getsize(urllib.request.url2pathname(parts.path))
        answer = session.head(address, allow_redirects=True, timeout=15)
        return int(answer.headers["Content-Length"]) if answer.ok else None
    except Exception:  # whatever it is: the file is not requested here
        return None


def _end(number: int, frame: object) -> None:
    sys.exit(128 + number)  # pip then removes what it was fetching


if __name__ == "__main__":
    # Our folder's names are not for pip.
    sys.path[:] = [each for each in sys.path if os.path.abspath(each) != os.path.dirname(os.path.abspath(__file__))]
    main(sys.argv[1:])
