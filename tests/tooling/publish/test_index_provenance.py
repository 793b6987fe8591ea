"""A downloaded wheel, its receipt, its attestation and the recipe: each spoiled in turn."""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import zipfile
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from mps_build.cli import main
from mps_build.commands import verify_provenance
from mps_build.common.receipts import fingerprint
from mps_build.common.recipe.catalogue import find_recipe, patches_root
from mps_build.publish.provenance.attestation import ISSUER, PREDICATE, read_attestation

RECIPE = find_recipe("v2.13.0")
NAME = "torch-2.13.0+mps.gcf30153-cp313-cp313-macosx_14_0_arm64.whl"
SUBMODULES = {"third_party/fmt": "a" * 40}
REPOSITORY = "owner/mps-wheels"


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """A wheel with its receipt beside it, as build_wheel leaves them."""
    patches = {name: fingerprint(patches_root() / name)["sha256"] for name in RECIPE.patches}
    bill = {
        "metadata": {
            "component": {
                "properties": [{"name": "mps-build:commit", "value": RECIPE.commit}],
                "pedigree": {"notes": "; ".join(f"{name} sha256:{digest}" for name, digest in patches.items())},
            }
        },
        "components": [{"bom-ref": "submodule:third_party/fmt", "name": "third_party/fmt", "version": "a" * 40}],
    }
    path = tmp_path / NAME
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("torch/version.py", f"git_version = '{RECIPE.commit}'\n")
        archive.writestr("torch-2.13.0.dist-info/sboms/mps-build.cdx.json", json.dumps(bill))
    receipt: dict[str, Any] = {
        "wheel": {"file": NAME, **fingerprint(path)},
        "recipe": RECIPE.model_dump(mode="json"),
        "commit": RECIPE.commit,
        "profile": "release",
        "lifted": [],
        "settings": {},
        "dirty": [],
        "patches": patches,
        "submodules": SUBMODULES,
    }
    _beside(path, ".receipt.json").write_text(json.dumps(receipt), encoding="utf-8")
    return path


def _beside(wheel: Path, suffix: str) -> Path:
    return wheel.with_name(wheel.name + suffix)


def change(wheel: Path, spoil: Callable[[dict[str, Any]], object]) -> None:
    path = _beside(wheel, ".receipt.json")
    document = json.loads(path.read_text(encoding="utf-8"))
    spoil(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def bundle(wheel: Path, *, digest: str | None = None, spoil_signature: bool = False, **fields: str) -> dict[str, Any]:
    """Return a bundle signed with a key and a certificate of our own: right in all but who vouches for it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    reported = {
        "8": ISSUER,
        "9": f"https://github.com/{REPOSITORY}/.github/workflows/release.yml@refs/tags/v1",
        "11": "github-hosted",
        "12": f"https://github.com/{REPOSITORY}",
        "13": "b" * 40,
        "14": "refs/tags/v1",
    } | fields
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime(2026, 11, 20, tzinfo=timezone.utc)
    name = x509.Name([])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(now).not_valid_after(now + timedelta(minutes=10))
    for number, text in reported.items():
        raw = text.encode()
        length = bytes([len(raw)]) if len(raw) < 128 else b"\x81" + bytes([len(raw)])
        oid = x509.ObjectIdentifier(f"1.3.6.1.4.1.57264.1.{number}")
        builder = builder.add_extension(x509.UnrecognizedExtension(oid, b"\x0c" + length + raw), critical=False)
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
    subject = {"name": wheel.name, "digest": {"sha256": digest or hashlib.sha256(wheel.read_bytes()).hexdigest()}}
    statement = {"_type": "https://in-toto.io/Statement/v1", "subject": [subject], "predicateType": PREDICATE}
    payload = json.dumps(statement | {"predicate": {}}).encode()
    kind = "application/vnd.in-toto+json"
    message = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
    signature = key.sign(message + (b" " if spoil_signature else b""), ec.ECDSA(hashes.SHA256()))
    return {
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {
            "certificate": {"rawBytes": base64.b64encode(certificate).decode()},
            "tlogEntries": [],
        },
        "dsseEnvelope": {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": kind,
            "signatures": [{"sig": base64.b64encode(signature).decode()}],
        },
    }


def attest(wheel: Path, **changes: Any) -> None:
    _beside(wheel, ".sigstore.json").write_text(json.dumps(bundle(wheel, **changes)), encoding="utf-8")


def verify(wheel: Path, *arguments: str) -> tuple[int, dict[str, bool]]:
    reported = wheel.parent / "reported.json"
    code = main("verify_provenance", [str(wheel), "--json", str(reported), *arguments])
    document = json.loads(reported.read_text(encoding="utf-8"))
    return code, {check["claim"]: check["holds"] for check in document.get("checks", [])}


def test_a_wheel_as_it_was_built_holds_all_claims(wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, claims = verify(wheel, "--without-attestation")

    assert code == 0, claims
    assert len(claims) == 11
    assert "no signature was checked" in capsys.readouterr().out


def _rebuilt(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("torch/evil.py", "")


def _other_commit(document: dict[str, Any]) -> None:
    document["commit"] = "c" * 40


@pytest.mark.parametrize(
    ("spoil", "claim"),
    [
        (_rebuilt, "the wheel's sha256 is the receipt's"),
        (
            lambda wheel: change(wheel, lambda reported: reported["wheel"].update(file="other.whl")),
            "the receipt is this wheel's",
        ),
        (lambda wheel: change(wheel, _other_commit), "torch/version.py names the receipt's commit"),
        (lambda wheel: change(wheel, _other_commit), "its bill of materials names the receipt's commit"),
        (lambda wheel: change(wheel, _other_commit), "built from the commit that v2.13.0 pins"),
        (
            lambda wheel: change(wheel, lambda reported: reported["submodules"].update({"third_party/fmt": "d" * 40})),
            "its bill of materials names the receipt's submodules",
        ),
        (
            lambda wheel: change(wheel, lambda reported: reported["patches"].clear()),
            "with exactly the recipe's patches",
        ),
        (
            lambda wheel: change(wheel, lambda reported: reported["patches"].update({"evil.patch": "0" * 64})),
            "its bill of materials names the receipt's patches",
        ),
        (
            lambda wheel: change(wheel, lambda reported: reported["dirty"].append("a.cpp")),
            "from a source tree without local changes",
        ),
        (
            lambda wheel: change(wheel, lambda reported: reported.update(profile="develop")),
            "as a release, with no requirement lifted and no setting changed",
        ),
        (
            lambda wheel: change(wheel, lambda reported: reported["recipe"].update(deployment_target="15.0")),
            "built by v2.13.0 as it stands here",
        ),
    ],
)
def test_each_spoiled_claim_is_named(wheel: Path, spoil: Callable[[Path], None], claim: str) -> None:
    spoil(wheel)

    code, claims = verify(wheel, "--without-attestation")

    assert code == 9
    assert claims[claim] is False


def test_without_a_repository_nothing_is_called_signed(wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("verify_provenance", [str(wheel)]) == 2
    assert "proves nothing without a known signer" in capsys.readouterr().err


def test_a_missing_attestation_does_not_pass(wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, claims = verify(wheel, "--repository", REPOSITORY)

    assert code == 9
    assert claims["an attestation lies beside the wheel"] is False
    # It may be one that its user has just built: nothing else speaks against it.
    said = capsys.readouterr().err
    assert "do not install it" not in said and "--without-attestation" in said
    assert verify(wheel, "--without-attestation")[0] == 0


def _vouched(path: Path, **_: object) -> None:
    """Stands for Sigstore's root, which cannot vouch for a key of ours."""
    assert path.is_file()


def test_a_right_attestation_holds(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_provenance, "check_chain", _vouched)
    attest(wheel)

    code, claims = verify(wheel, "--repository", REPOSITORY)

    assert code == 0, claims
    assert len(claims) == 19


@pytest.mark.parametrize(
    ("changes", "claim"),
    [
        ({"digest": "0" * 64}, "it attests this wheel"),
        ({"spoil_signature": True}, "the certificate's key signed it"),
        ({"8": "https://evil.example"}, "GitHub's identity signed it"),
        ({"12": "https://github.com/owner/other"}, f"for {REPOSITORY}"),
        ({"12": f"https://github.com/{REPOSITORY}-evil"}, f"for {REPOSITORY}"),
        (
            {"9": f"https://github.com/{REPOSITORY}/.github/workflows/checks.yml@refs/heads/x"},
            f"by release.yml of {REPOSITORY}",
        ),
        ({"11": "self-hosted"}, "on a hosted runner, not on a self-hosted Mac"),
    ],
)
def test_each_spoiled_part_of_an_attestation_is_named(
    wheel: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], claim: str
) -> None:
    monkeypatch.setattr(verify_provenance, "check_chain", _vouched)
    attest(wheel, **changes)

    code, claims = verify(wheel, "--repository", REPOSITORY)

    assert code == 9
    assert [each for each, holds in claims.items() if not holds] == [claim]


def test_a_forged_certificate_is_refused_by_sigstores_root(wheel: Path) -> None:
    attest(wheel)
    # Refused for what it is, not for want of a root: the root is there without a network.
    verify_module = importlib.import_module("sigstore.verify")
    assert verify_module.Verifier.production(offline=True)

    code, claims = verify(wheel, "--repository", REPOSITORY)

    assert code == 9
    assert [each for each, holds in claims.items() if not holds] == ["Sigstore's root and log confirm it"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"dsseEnvelope": 1}', '{"dsseEnvelope": {"payload": "%"}}'])
def test_a_bundle_that_is_none_is_named(wheel: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    _beside(wheel, ".sigstore.json").write_text(text, encoding="utf-8")

    assert main("verify_provenance", [str(wheel), "--repository", REPOSITORY]) == 2
    assert ".sigstore.json" in capsys.readouterr().err


def test_the_line_that_gh_downloads_is_read_too(wheel: Path, tmp_path: Path) -> None:
    path = tmp_path / "sha256.jsonl"
    path.write_text(json.dumps(bundle(wheel)) + "\n", encoding="utf-8")

    assert read_attestation(path).signature_holds


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"wheel": 1}'])
def test_a_receipt_that_is_none_is_named(wheel: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    _beside(wheel, ".receipt.json").write_text(text, encoding="utf-8")

    assert main("verify_provenance", [str(wheel), "--without-attestation"]) == 2
    assert ".receipt.json" in capsys.readouterr().err


def test_a_wheel_that_is_no_zip_is_named(wheel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wheel.write_bytes(b"nothing")

    assert main("verify_provenance", [str(wheel), "--without-attestation"]) == 2
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("signer_ref", "ref", "wanted", "holds"),
    [
        ("refs/heads/main", "refs/heads/main", None, True),
        ("refs/tags/v1.2", "refs/tags/v1.2", None, True),
        ("refs/heads/evil", "refs/heads/evil", None, False),
        ("refs/heads/main", "refs/heads/evil", None, False),
        ("refs/heads/evil", "refs/heads/main", None, False),
        ("refs/pull/7/merge", "refs/pull/7/merge", None, False),
        ("refs/heads/main2", "refs/heads/main2", None, False),
        ("refs/tags/wheels", "refs/tags/wheels", None, False),
        ("refs/heads/v1", "refs/heads/v1", None, False),
        ("refs/heads/lts", "refs/heads/lts", "refs/heads/lts", True),
        ("refs/heads/main", "refs/heads/main", "refs/heads/lts", False),
        ("", "", None, False),
    ],
)
def test_only_a_trusted_ref_of_the_workflow_may_sign(
    wheel: Path, signer_ref: str, ref: str, wanted: str | None, holds: bool
) -> None:
    workflow = f"https://github.com/{REPOSITORY}/.github/workflows/release.yml@{signer_ref}"
    attest(wheel, **{"9": workflow, "14": ref})

    _, claims = verify(wheel, "--repository", REPOSITORY, *(("--ref", wanted) if wanted else ()))

    assert claims[f"by release.yml of {REPOSITORY}"] is holds
