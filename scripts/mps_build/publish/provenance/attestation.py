"""A Sigstore bundle beside a wheel: what it attests, who signed it, and whether the signature holds.

The chain to Sigstore's root and the transparency log's proof are checked by the `sigstore` library,
offline, with the root that it brings; the rest is read here, so that it can be said plainly.
"""

from __future__ import annotations

import base64
import importlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mps_build.common.errors import UsageError, reason_of
from mps_build.common.interpreters import line_that_adds
from mps_build.common.json_text import parse_json, read_text

PREDICATE = "https://slsa.dev/provenance/v1"
ISSUER = "https://token.actions.githubusercontent.com"
_PAYLOAD = "application/vnd.in-toto+json"
# https://github.com/sigstore/fulcio/blob/main/docs/oid-info.md
_FIELDS = {
    "issuer": "1.3.6.1.4.1.57264.1.8",
    "signer": "1.3.6.1.4.1.57264.1.9",
    "runner": "1.3.6.1.4.1.57264.1.11",
    "repository": "1.3.6.1.4.1.57264.1.12",
    "commit": "1.3.6.1.4.1.57264.1.13",
    "ref": "1.3.6.1.4.1.57264.1.14",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attestation:
    """What a bundle says; `identity` holds the certificate's fields (issuer, signer, runner, repository, commit, ref).

    Attributes:
        subjects: sha256 of each file it is about, with the file's name.
        signature_holds: the payload was signed with the certificate's key. Whose certificate it is, that alone
            does not tell.
    """

    predicate: str
    subjects: tuple[tuple[str, str], ...]
    identity: dict[str, str] = field(default_factory=dict)
    signature_holds: bool = False


def read_attestation(path: Path) -> Attestation:
    """Return what the bundle says.

    Raises:
        UsageError: it cannot be read, or is not an attestation in a DSSE envelope.
    """
    bundle = _bundle(path)
    try:
        envelope = bundle["dsseEnvelope"]
        payload = base64.b64decode(envelope["payload"], validate=True)
        signatures = [base64.b64decode(each["sig"], validate=True) for each in envelope["signatures"]]
        certificate = base64.b64decode(_certificate(bundle["verificationMaterial"]), validate=True)
        statement = parse_json(payload)
        subjects = tuple((str(each["digest"]["sha256"]), str(each.get("name", ""))) for each in statement["subject"])
        predicate = str(statement["predicateType"])
        kind = str(envelope["payloadType"])
    except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
        raise UsageError(
            f"{path} cannot be read as an attestation: {error!r}", hint="download it again from beside the wheel"
        ) from error
    if kind != _PAYLOAD or len(signatures) != 1:
        raise UsageError(f"{path} holds {kind!r} with {len(signatures)} signatures, not one in-toto statement")
    x509 = _library("cryptography.x509")
    try:
        loaded = x509.load_der_x509_certificate(certificate)
        identity = _identity(loaded, x509)
    except ValueError as error:
        raise UsageError(f"{path}: its certificate cannot be read: {reason_of(error)}") from error
    return Attestation(
        predicate=predicate,
        subjects=subjects,
        identity=identity,
        signature_holds=_holds(loaded.public_key(), signatures[0], _pae(kind, payload)),
    )


def check_chain(path: Path, *, repository: str, trusted_root: Path | None) -> None:
    """Check the whole bundle against Sigstore's root, offline: chain, log, time, signature, repository.

    Raises:
        UsageError: it does not hold, or the `sigstore` library is not there.
    """
    models, verify = _library("sigstore.models"), _library("sigstore.verify")
    policy = _library("sigstore.verify.policy")
    try:
        if trusted_root:
            verifier = verify.Verifier(trusted_root=models.TrustedRoot.from_file(str(trusted_root)))
        else:
            verifier = verify.Verifier.production(offline=True)
        wanted = policy.AllOf(
            [policy.OIDCIssuerV2(ISSUER), policy.OIDCSourceRepositoryURI(f"https://github.com/{repository}")]
        )
        verifier.verify_dsse(models.Bundle.from_json(json.dumps(_bundle(path))), wanted)
    except Exception as error:  # the library documents neither which errors a strange root raises, nor a strange bundle
        said = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(f"Sigstore's trusted root does not confirm it: {said}") from error


def _bundle(path: Path) -> dict[str, Any]:
    """Return the one bundle of a file: JSON, or the single JSON line that `gh attestation download` writes."""
    try:
        lines = [line for line in read_text(path).splitlines() if line.strip()]
        text = lines[0] if len(lines) == 1 else "\n".join(lines)
        document = parse_json(text)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} cannot be read: {reason_of(error)}", hint="give one bundle of Sigstore, as JSON"
        ) from error
    if not isinstance(document, dict):
        raise UsageError(f"{path} is not a Sigstore bundle", hint="it is the wheel's name with .sigstore.json")
    return document


def _certificate(material: dict[str, Any]) -> str:
    if "certificate" in material:
        return str(material["certificate"]["rawBytes"])
    return str(material["x509CertificateChain"]["certificates"][0]["rawBytes"])  # before version 0.3


def _identity(certificate: Any, x509: Any) -> dict[str, str]:
    found = {}
    for name, dotted in _FIELDS.items():
        try:
            extension = certificate.extensions.get_extension_for_oid(x509.ObjectIdentifier(dotted))
        except x509.ExtensionNotFound:
            continue
        found[name] = _utf8_string(extension.value.value)
    return found


def _utf8_string(der: bytes) -> str:
    """Return the text of a DER UTF8String.

    >>> _utf8_string(b"\\x0c\\x03abc")
    'abc'
    """
    length, start = der[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(der[2:start], "big")
    if der[0] != 0x0C or len(der) != start + length:
        raise ValueError("an extension is not UTF8String")
    return der[start:].decode("utf-8")


def _pae(kind: str, payload: bytes) -> bytes:
    """Return what DSSE signs: https://github.com/secure-systems-lab/dsse/blob/master/protocol.md"""
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)


def _holds(key: Any, signature: bytes, message: bytes) -> bool:
    ec, hashes = (
        _library("cryptography.hazmat.primitives.asymmetric.ec"),
        _library("cryptography.hazmat.primitives.hashes"),
    )
    exceptions = _library("cryptography.exceptions")
    if not isinstance(key, ec.EllipticCurvePublicKey):
        return False  # Fulcio's certificates for workflows hold P-256 keys
    try:
        key.verify(signature, message, ec.ECDSA(hashes.SHA256()))
    except exceptions.InvalidSignature:
        return False
    return True


def check_libraries() -> None:
    """Refuse, before any file is read, to check an attestation where nothing can.

    Raises:
        UsageError: `sigstore` is not installed.
    """
    for name in ("sigstore.models", "sigstore.verify", "cryptography.exceptions"):
        _library(name)


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            f"{name.split('.', maxsplit=1)[0]} is not installed here: the attestation cannot be checked",
            hint=line_that_adds("sigstore>=4.1", session="verify_provenance"),
        ) from error
