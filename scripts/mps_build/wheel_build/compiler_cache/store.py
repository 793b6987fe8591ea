"""The store that a fleet's sccache shares: named in one place, tried before the build, left out where it is down."""

from __future__ import annotations

import hashlib
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from mps_build.common.errors import UsageError
from mps_build.common.process import Command, capture

from .store_relay import Store, StoreRelay

_PREFLIGHT_SECONDS = 2.0
_STORE_PREFIXES = (
    *("SCCACHE_REDIS", "SCCACHE_BUCKET", "SCCACHE_ENDPOINT", "SCCACHE_REGION", "SCCACHE_S3", "SCCACHE_MEMCACHED"),
    *("SCCACHE_GCS", "SCCACHE_AZURE", "SCCACHE_GHA", "SCCACHE_WEBDAV", "SCCACHE_OSS", "SCCACHE_MULTILEVEL"),
)
# Wrong objects, another server's settings, a store named in a file: none of them is the caller's to set here.
_NEVER = (
    *("SCCACHE_BASEDIRS", "SCCACHE_DIRECT", "SCCACHE_CONF", "SCCACHE_CACHED_CONF"),
    *("SCCACHE_SERVER_PORT", "SCCACHE_SERVER_UDS", "SCCACHE_IDLE_TIMEOUT"),
)
_AWS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_USER = re.compile(r"://[^/@\s]+@")
_SECRET = re.compile(r"PASSWORD|SECRET|TOKEN|ACCESS_KEY|^SCCACHE_REDIS$|CCACHE_REMOTE_STORAGE")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheChoice:
    """The variables of the compiler cache, which of the caller's are left out, and what to tell.

    Attributes:
        upstream: the Redis that `relayed` stands in front of, while the build runs.
    """

    variables: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    store: str = "local disk"
    warnings: tuple[str, ...] = ()
    upstream: Store | None = None


def choose_store(
    environ: Mapping[str, str], *, shared: bool, answers: Callable[[str, int], str | None] | None = None
) -> CacheChoice:
    """Return how sccache is set for this build; a store that does not answer is left out, with a warning.

    sccache does not start at all, and then no compiler runs, when its store is down (0.16, reproduced:
    neither SCCACHE_IGNORE_SERVER_IO_ERROR nor a longer start-up time helps), so it is tried first.

    Args:
        environ: MPS_BUILD_SHARED_CACHE (redis://[user:password@]host:port or s3://bucket?endpoint=...) is the
            one place; SCCACHE_REDIS*, SCCACHE_BUCKET and SCCACHE_ENDPOINT of the caller's own are taken as well.
        shared: use the store at all; a release does so only with `--shared-cache`: others may write there.
        answers: asks host and port; returns what is wrong, or None.
    """
    address = environ.get("MPS_BUILD_SHARED_CACHE") or _own_address(environ)
    # Two trees that differ in a header alone got one object, with base folders (mozilla/sccache#2863): never.
    dropped = tuple(sorted(name for name in environ if name.startswith(_STORE_PREFIXES) or name in _NEVER))
    warnings = ("SCCACHE_BASEDIRS gives wrong objects: left out",) if "SCCACHE_BASEDIRS" in environ else ()
    # DIRECT: all hosts must agree on it, else their keys differ (docs/fleet/caches.md). CONF: a file of the caller's
    # could name base folders, or a store that nobody wanted to share. IO_ERROR: if the server dies, the compiler runs.
    variables = {
        "SCCACHE_DIRECT": "false",
        "SCCACHE_CONF": os.devnull,
        "SCCACHE_IGNORE_SERVER_IO_ERROR": "1",
        "SCCACHE_IDLE_TIMEOUT": "21600",
    }
    if shared and not address:
        raise UsageError(
            "--shared-cache: no store is named", hint="set MPS_BUILD_SHARED_CACHE=redis://host:6379 or s3://bucket"
        )
    store, upstream = "local disk", None
    if shared and address:
        parsed = _parse_store(address)
        name = parsed["name"]
        problem = (answers or store_problem)(parsed["host"], int(parsed["port"]))
        if problem is None:
            own = {name: environ[name] for name in dropped if name not in _NEVER}
            given = {name: value for name, value in parsed.items() if name.startswith("SCCACHE_")}
            variables |= own | given
            if "SCCACHE_BUCKET" in given or "SCCACHE_BUCKET" in own:
                variables |= {name: environ[name] for name in _AWS if name in environ}
            store = name
            if "SCCACHE_REDIS_ENDPOINT" in given:
                host, port, tls = (
                    parsed["host"],
                    int(parsed["port"]),
                    given["SCCACHE_REDIS_ENDPOINT"].startswith("rediss"),
                )
                upstream = Store(host=host, port=port, tls=tls)
                variables.pop("SCCACHE_REDIS", None)  # the old name of the endpoint: it would go round the relay
        else:
            warnings = (*warnings, f"the shared cache {name} does not answer ({problem}): local disk only")
    # A server keeps the settings it was started with: other settings get another server.
    port = 20_000 + int(hashlib.sha256(repr(sorted(variables.items())).encode()).hexdigest()[:8], 16) % 20_000
    variables["SCCACHE_SERVER_PORT"] = str(port)
    return CacheChoice(variables=variables, dropped=dropped, store=store, warnings=warnings, upstream=upstream)


@contextmanager
def relayed(
    variables: Mapping[str, str], upstream: Store | None, launcher: Path | None, *, report: Callable[[str], None]
) -> Iterator[Mapping[str, str]]:
    """Hold a relay in front of the Redis `upstream` while a build runs; yield the variables that lead through it.

    At the end its sccache server is stopped, and what went wrong is reported in one sentence. Without an `upstream`
    the variables are yielded as they are.
    """
    if upstream is None or launcher is None:
        yield variables
        return
    with StoreRelay(upstream, report=report) as relay, socket.create_server(("127.0.0.1", 0)) as chosen:
        own_server = str(chosen.getsockname()[1])
        chosen.close()
        endpoint = f"tcp://127.0.0.1:{relay.port}"
        through = {**variables, "SCCACHE_REDIS_ENDPOINT": endpoint, "SCCACHE_SERVER_PORT": own_server}
        try:
            yield through
        finally:
            environ = {**os.environ, **through}
            capture(Command(argv=(str(launcher), "--stop-server"), environ=environ), timeout_seconds=60)
            if count := relay.troubles.total():
                report(f"the shared cache {upstream} failed {count} times; the build went on without")


def store_problem(host: str, port: int) -> str | None:
    """Return why nothing answers at host and port within two seconds, or None; a Redis must answer PING."""
    try:
        with socket.create_connection((host, port), timeout=_PREFLIGHT_SECONDS) as connection:
            if port in (80, 443):
                return None
            connection.settimeout(_PREFLIGHT_SECONDS)
            connection.sendall(b"PING\r\n")
            said = connection.recv(64)
    except OSError as error:
        return str(error) or type(error).__name__
    # -NOAUTH and the like are an answer too: sccache brings its own password; HTTP is what an S3 endpoint says.
    return None if said.startswith((b"+PONG", b"-", b"HTTP/")) else "it answers, but not as a store"


def _own_address(environ: Mapping[str, str]) -> str | None:
    redis = environ.get("SCCACHE_REDIS_ENDPOINT") or environ.get("SCCACHE_REDIS")
    if redis:
        return redis.replace("tcp://", "redis://", 1)
    bucket = environ.get("SCCACHE_BUCKET")
    endpoint = environ.get("SCCACHE_ENDPOINT", "")
    return f"s3://{bucket}" + (f"?endpoint={endpoint}" if endpoint else "") if bucket else None


def _parse_store(address: str) -> dict[str, str]:
    """Return host and port to ask, the address as it may be shown (no password), and sccache's variables."""
    try:
        url = urlsplit(address)
        port = url.port
    except ValueError as error:
        raise UsageError(f"the shared cache {address.rpartition('@')[2]!r} is not an address: {error}") from error
    if url.scheme in ("redis", "rediss") and url.hostname:
        found = {"host": url.hostname, "port": str(port or 6379), "name": f"redis {url.hostname}:{port or 6379}"}
        scheme = "tcp" if url.scheme == "redis" else "rediss"
        found["SCCACHE_REDIS_ENDPOINT"] = f"{scheme}://{url.hostname}:{port or 6379}"
        found |= {"SCCACHE_REDIS_USERNAME": unquote(url.username)} if url.username else {}
        found |= {"SCCACHE_REDIS_PASSWORD": unquote(url.password)} if url.password else {}
        return found
    if url.scheme == "s3" and url.hostname:
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        endpoint = query.get("endpoint", "")
        whole = urlsplit(endpoint if "://" in endpoint else f"https://{endpoint or 's3.amazonaws.com'}")
        found = {
            "host": whole.hostname or "",
            "port": str(whole.port or (80 if whole.scheme == "http" else 443)),
            "name": f"s3 {url.hostname}",
            "SCCACHE_BUCKET": url.netloc,
            "SCCACHE_REGION": query.get("region", "auto"),
        }
        found |= {"SCCACHE_ENDPOINT": endpoint} if endpoint else {}
        return found
    raise UsageError(
        f"the shared cache {address.rpartition('@')[2]!r} is neither redis:// nor s3://",
        hint="MPS_BUILD_SHARED_CACHE=redis://host:6379 or s3://bucket?endpoint=host:port&region=auto",
    )


def redacted(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment as it may be published: a receipt lies beside the wheel for all to read."""
    return {
        name: "(hidden)" if _SECRET.search(name) else _USER.sub("://(hidden)@", value)
        for name, value in environ.items()
    }
