"""What an index serves is printed with its host and hash; without a hash nothing of it runs unless it is trusted."""

from __future__ import annotations

import hashlib
import ipaddress
import json
import ssl
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from http_servers import Act, index_of, page, served
from mps_build import cli
from mps_build.common.errors import BuildEnvironmentError, RefusedForSafety, SourceError, UsageError
from mps_build.common.reporting import SilentReporter
from mps_build.common.wheels.download import fetch_wheel
from mps_build.common.wheels.pip_call import EXECUTED, LIMITS, certificate_fault, limited_pip
from mps_build.verify.bisection.versions import Index, Venvs
from mps_build.verify.target import environments, resolve, wheel
from mps_build.verify.target.environments import EnvironmentStore
from mps_build.verify.target.interpreter import describe_interpreter
from small_wheels import write_wheel

FILE = "torch-2.15.0-cp313-cp313-macosx_14_0_arm64.whl"
ANY = "torch-2.15.0-py3-none-any.whl"
ENVIRON = {"PATH": "/usr/bin", "PIP_CONFIG_FILE": "/dev/null", "no_proxy": "127.0.0.1"}
WHAT_RUNS = {
    "verify_mps": ["--device", "cpu", "--only", "x"],
    "verify_training": ["--device", "cpu"],
    "benchmark_mps": ["--device", "cpu"],
    "verify_kernels": ["--python", "3.13"],
    "op_coverage": ["--python", "3.13"],
}


class Reports(SilentReporter):
    """Keeps the lines it is reported."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)


@pytest.fixture(autouse=True)
def _pip_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_CERT", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MPS_BUILD_WORK", str(tmp_path / "work"))


def wheel_of(tmp_path: Path, name: str = FILE) -> bytes:
    return write_wheel(tmp_path, {"torch/__init__.py": b""}, name=name).read_bytes()


def index(data: bytes, *, by: str, name: str = FILE) -> Act:
    """Return an index whose page gives the file's hash `by` sha256, md5 or nothing, or as JSON."""
    fragment = f"#{by}={hashlib.new(by, data).hexdigest()}" if by in ("sha256", "md5") else ""
    hashes = {"sha256": hashlib.sha256(data).hexdigest()} if by == "json" else {}
    files = [{"filename": name, "url": f"/torch/{name}", "hashes": hashes}]
    text = json.dumps({"meta": {"api-version": "1.0"}, "name": "torch", "files": files}).encode()
    listed: Act | None = None
    if by.startswith("json"):
        listed = lambda handler: page(handler, text, kind="application/vnd.pypi.simple.v1+json")  # noqa: E731
    return index_of("torch", name, lambda handler: page(handler, data), fragment=fragment, listed=listed)


def fetch(tmp_path: Path, said: Reports, *, runs: bool, refresh: bool = False) -> Path:
    cache, log = tmp_path / "kept", tmp_path / "log"
    limits = EXECUTED if runs else LIMITS
    found = fetch_wheel(
        "torch==2.15.0", python="3.13", cache=cache, log=log, reporter=said, refresh=refresh, limits=limits
    )
    return found.path


@pytest.mark.parametrize("by", ["sha256", "json"])
def test_host_file_and_hash_are_printed_and_the_wheel_may_run(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, said = wheel_of(tmp_path), Reports()
    with served(index(data, by=by)) as (address, _):
        monkeypatch.setenv("PIP_INDEX_URL", f"{address}/simple")
        assert fetch(tmp_path, said, runs=True).read_bytes() == data

    digest = hashlib.sha256(data).hexdigest()
    assert said.lines == [f"{FILE} from {address.removeprefix('http://')}, sha256 {digest}"]


def test_without_a_hash_that_is_printed_and_it_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, said = wheel_of(tmp_path), Reports()
    with served(index(data, by="none")) as (address, requested):
        monkeypatch.setenv("PIP_INDEX_URL", f"{address}/simple")
        with pytest.raises(RefusedForSafety, match=f"gives no sha256 of {FILE}: it would run unchecked") as caught:
            fetch(tmp_path, said, runs=True)
        assert "/torch/" + FILE not in requested and "--trust" in str(caught.value.hint)

        assert fetch(tmp_path, said, runs=False).read_bytes() == data  # to be looked at
        assert "which gives no hash of it" in said.lines[-1]
        with pytest.raises(RefusedForSafety):
            fetch(tmp_path, said, runs=True)  # nor from the cache


def test_md5_alone_is_no_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = Reports()
    with served(index(wheel_of(tmp_path), by="md5")) as (address, requested):
        monkeypatch.setenv("PIP_INDEX_URL", f"{address}/simple")
        with pytest.raises(RefusedForSafety, match=f"gives no sha256 of {FILE}, only its md5"):
            fetch(tmp_path, said, runs=True)
        assert "/torch/" + FILE not in requested
    assert "which gives only its md5" in said.lines[-1]


def stop(*arguments: object, **options: object) -> Path:
    raise UsageError("fetched")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command ends where it has its wheel; pip is ours, since a venv of its own takes seconds."""
    own = lambda store: (*limited_pip(sys.executable, limits=store.limits), "--no-input")  # noqa: E731
    monkeypatch.setattr(wheel, "own_pip", own)
    monkeypatch.setattr(resolve, "make_environment", stop)
    monkeypatch.setattr("mps_build.commands.verify_kernels.read_libraries", stop)
    monkeypatch.setattr("mps_build.commands.op_coverage.facts_of_wheel", stop)


def ran(command: str, tmp_path: Path, *more: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str, bool]:
    """Return the exit status of a command, its error, and whether the wheel was fetched."""
    name = ANY if "--device" in WHAT_RUNS[command] else FILE
    with served(index(wheel_of(tmp_path, name), by="none", name=name)) as (address, requested):
        monkeypatch.setenv("PIP_INDEX_URL", f"{address}/simple")
        result = tmp_path / "a.json"
        status = cli.main(command, ["torch==2.15.0", *WHAT_RUNS[command], *more, "--json", str(result)])
        return status, json.loads(result.read_text())["error"], "/torch/" + name in requested


# One for each of two ways to a wheel; the others go one of them.
_OTHERS = ("verify_training", "benchmark_mps", "op_coverage")


@pytest.mark.parametrize(
    "command", [pytest.param(each, marks=pytest.mark.slow) if each in _OTHERS else each for each in WHAT_RUNS]
)
def test_no_command_runs_what_has_no_hash(
    command: str, quick: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status, error, is_fetched = ran(command, tmp_path, monkeypatch=monkeypatch)
    assert (status, is_fetched) == (21, False)
    assert "it would run unchecked" in error


@pytest.mark.slow
@pytest.mark.parametrize("command", WHAT_RUNS)
def test_every_command_runs_it_where_it_is_trusted(
    command: str, quick: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ran(command, tmp_path, "--trust", monkeypatch=monkeypatch) == (2, "fetched", True)


@pytest.mark.slow
def test_neither_does_a_version_of_a_bisection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(index(wheel_of(tmp_path, ANY), by="none", name=ANY)) as (address, _):
        found = Index(arguments=("--index-url", f"{address}/simple"), environ=ENVIRON)
        python = {"2.15.0": Path(sys.executable)}
        venvs = Venvs(folder=tmp_path / "b", index=found, python_of=python)
        with pytest.raises(RefusedForSafety):
            venvs.fetch("2.15.0")
        trusting = Venvs(folder=tmp_path / "b", index=found, python_of=python, trust=True)
        assert trusting.fetch("2.15.0").name == ANY


def test_neither_does_what_a_torch_requires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = write_wheel(tmp_path, {"pytest/__init__.py": b""}, name="pytest-9.0-py3-none-any.whl").read_bytes()
    act = index_of("pytest", "pytest-9.0-py3-none-any.whl", lambda handler: page(handler, data))
    with served(act) as (address, _):
        environ = {**ENVIRON, "PIP_INDEX_URL": f"{address}/simple"}
        store = EnvironmentStore(cache=tmp_path / "store", environ=environ, log=tmp_path / "log", reporter=Reports())
        pip = (*limited_pip(sys.executable, limits=store.limits), "download", "-d", str(tmp_path / "to"))
        with pytest.raises(RefusedForSafety, match=r"gives no sha256 of pytest-9\.0"):
            environments._install("Install x", pip, ("pytest",), store)


@pytest.fixture
def own_certificate(tmp_path: Path) -> ssl.SSLContext:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(timezone.utc)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now - timedelta(days=1), now + timedelta(days=9))
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    made = builder.add_extension(x509.SubjectAlternativeName([address]), False).sign(key, hashes.SHA256())
    path = tmp_path / "own.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context


@pytest.mark.slow
def test_a_bad_certificate_is_called_that(
    own_certificate: ssl.SSLContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(index(wheel_of(tmp_path), by="sha256"), tls=own_certificate) as (address, requested):
        monkeypatch.setenv("PIP_INDEX_URL", f"{address}/simple")
        monkeypatch.setenv("PIP_RETRIES", "0")
        with pytest.raises(SourceError, match=r"certificate of 127\.0\.0\.1 is not accepted: self.signed") as caught:
            fetch(tmp_path, Reports(), runs=False)
        assert "PIP_CERT" in str(caught.value.hint)

        own = lambda store: (*limited_pip(sys.executable, limits=store.limits), "--no-input")  # noqa: E731
        monkeypatch.setattr(wheel, "own_pip", own)
        environ = {**ENVIRON, "PIP_INDEX_URL": f"{address}/simple", "PIP_RETRIES": "0"}
        store = EnvironmentStore(cache=tmp_path / "store", environ=environ, log=tmp_path / "log", reporter=Reports())
        python = describe_interpreter(Path(sys.executable), environ=environ)
        with pytest.raises(BuildEnvironmentError, match=r"certificate of 127\.0\.0\.1 is not accepted: self.signed"):
            wheel.fetch_wheel("torch==2.15.0", python, store)
        assert requested == []


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1)",
            "has expired",
        ),
        ("certificate verify failed: Hostname mismatch, certificate is not valid for 'a'. (_ssl.c:1)", "Hostname"),
        ("There was a problem confirming the ssl certificate: x - skipping", "x - skipping"),
        ("SSLCertVerificationError", "it cannot be verified"),
    ],
)
def test_every_word_for_a_bad_certificate_is_known(text: str, reason: str) -> None:
    fault = certificate_fault(text, wanted="torch")
    assert fault is not None and reason in fault[0]


def test_another_trouble_of_the_network_is_no_bad_certificate() -> None:
    for text in ("[SSL: WRONG_VERSION_NUMBER] wrong version number", "Connection refused", "Read timed out."):
        assert certificate_fault(text, wanted="torch") is None
