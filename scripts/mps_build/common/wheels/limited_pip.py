"""Runs pip within limits of patience, rate and size: a program of its own, for whichever Python has the pip (3.7 on).

    python limited_pip.py WAIT,WINDOW,RATE,PAGE,BODY [--from FOLDER] PIP'S ARGUMENTS...

pip obeys a server that asks it to come back tomorrow, without a word; it reads a page without end into memory; and its
timeout begins anew with each byte. None of that is an option of pip's, so the standard library below it is measured:
only the time spent waiting for a server counts, not what pip does with the answer.
"""

from __future__ import annotations

import email.utils
import http.client
import json
import os
import runpy
import signal
import socket
import sys
import time
import urllib.parse
import urllib.request
from typing import Any

STATUS = 75
# In the place of pip's command: print how many bytes some files have, as JSON, null where a server does not say.
SIZES = "--sizes"
PAUSE = "mps-build: "
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


def limit(wait: float, window: float, rate: float, page: float, body: float) -> None:
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

    def asking(self: Any, *arguments: Any, **options: Any) -> None:
        self._is_page = True
        _hosts[:] = [_host(self)]
        putrequest(self, *arguments, **options)

    def said(self: Any, header: str, *values: Any) -> None:
        # pip asks for files as they are, and for pages compressed.
        if str(header).lower() == "accept-encoding" and values in (("identity",), (b"identity",)):
            self._is_page = False
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


def _pause(response: http.client.HTTPResponse, host: str, wait: float) -> None:
    asked = response.headers.get("Retry-After")
    if asked is None or response.status < 400:
        return
    seconds = _seconds(asked)
    shown = "".join(letter for letter in asked[:40] if letter.isprintable())
    why = f"{host} answers {response.status} and asks for a pause of {seconds:.0f} s (Retry-After: {shown})"
    if seconds > wait:
        raise Refused(f"{why}; the longest pause taken is {wait:.0f} s")
    if seconds > 0:
        print(f"{PAUSE}{why}", file=sys.stderr, flush=True)
    else:
        del response.headers["Retry-After"]  # a word that is no time: pip takes it for a fault of its own


def _seconds(asked: str) -> float:
    """Return the seconds that a Retry-After stands for: a number, or a date; 0 for anything else."""
    if asked.strip().isdigit():
        return float(asked.strip()[:12])
    try:
        return max(email.utils.parsedate_to_datetime(asked).timestamp() - time.time(), 0.0)
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
    limit(*map(float, limits.split(",")))
    if words[:1] == [SIZES]:
        print(json.dumps(_sizes(words[1:])), flush=True)
        return
    signal.signal(signal.SIGTERM, _end)
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
    """Return the length of each file, asked as pip would: with its certificates, proxies and names."""
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
    except Exception:  # whatever it is: the file is not asked for here
        return None


def _end(number: int, frame: object) -> None:
    sys.exit(128 + number)  # pip then removes what it was fetching


if __name__ == "__main__":
    # Our folder's names are not for pip.
    sys.path[:] = [each for each in sys.path if os.path.abspath(each) != os.path.dirname(os.path.abspath(__file__))]
    main(sys.argv[1:])
