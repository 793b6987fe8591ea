"""Thirty secrets, each in ten places of a work folder: none is in the bundle, its table of contents or on the terminal.

A password that nothing marks as one cannot be known, so each place marks it: an option, a name, a key.
"""

from __future__ import annotations

import json
import shlex
import tarfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from mps_build import cli
from mps_build.common.scrubbing.scrubber import Scrubber, without_secrets

X = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0iL3oR6uX9"
PASSWORDS = (
    "hunter2pass",
    "correct9horse",
    "p@ss9w0rd",
    "Tr0ub4dor&3",
    "semi;colon9x",
    "comma,comma9x",
    "-dash9start",
    "p\u00e4ssw0rt9x",
    "dollar$9sign",
    "with.dot.9x",
    "24_under_score",
    "plus+equal=9",
)
OF_SERVICES = (
    f"ghp_{X[:36]}",
    f"github_pat_11ABCDEFG0{X}_{X}",
    f"glpat-{X[:20]}",
    f"pypi-AgEIcHlwaS5vcmc{X}{X}",
    f"npm_{X[:36]}",
    f"hf_{X[:34]}",
    f"sk-proj-{X}",
    "xoxb-123456789012-1234567890123-abcdefghijklmnopqrstuvwx",
    "AKIAIOSFODNN7EXAMPLE",
    f"AIza{X[:35]}",
    f"sk_live_{X[:24]}",
    f"SG.{X[:22]}.{X}abcd",
    f"dckr_pat_{X[:27]}",
    f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqYW5lIn0.{X}",
    f"nvapi-{X}",
    f"gsk_{X}",
    f"hvs.{X}",
    f"dop_v1_{X}",
)
SECRETS = (*PASSWORDS, *OF_SERVICES)


def marked(secret: str) -> str:
    """Return how a file's name holds a secret: alone, if its format is known."""
    return secret if secret in OF_SERVICES else f"password={secret}"


def as_json(make: Callable[[str], Any]) -> Callable[[str], tuple[str, str]]:
    return lambda secret: ("x.json", json.dumps(make(secret), indent=1, ensure_ascii=False))


# A file's name below receipts/ and its text.
PLACES: dict[str, Callable[[str], tuple[str, str]]] = {
    "a shell's line in a log": lambda s: ("x.log", f"+ export DEPLOY_PASSWORD={shlex.quote(s)}\nend\n"),
    "a list of arguments": as_json(lambda s: {"argv": ["twine", "upload", "--token", s, "-p", s, "dist/x.whl"]}),
    "an option with its value": as_json(lambda s: {"command": ["tool", f"--password={s}"], "line": f"x --api-key={s}"}),
    "a list as Python prints it, in a log": lambda s: ("x.log", f"run {['twine', '--token', s, '-p', s]!r}\n"),
    "an environment": as_json(
        lambda s: {
            "environ": {"UPLOAD_TOKEN": s},
            "pairs": [["UPLOAD_TOKEN", s]],
            "objects": [{"name": "UPLOAD_TOKEN", "value": s}],
            "lines": [f"UPLOAD_TOKEN={s}"],
        }
    ),
    "an address": as_json(lambda s: {"index": f"https://deploy:{quote(s, safe='')}@index.example.org/simple"}),
    "headers": as_json(
        lambda s: {
            "headers": {"Authorization": f"Bearer {s}", "Cookie": f"a=b; session={s}"},
            "curl": ["curl", "-H", f"X-Api-Key: {s}", "-u", f"deploy:{s}"],
        }
    ),
    "a key, and what stands below one": as_json(lambda s: {f"--password={s}": 1, "credentials": {"user": [{"x": s}]}}),
    "lines of JSON": lambda s: ("x.jsonl", json.dumps({"argv": ["tool", "--token", s]}) + "\nno JSON\n"),
    "the name of a file": lambda s: (f"build-{marked(s)}.log", "nothing"),
}


def spellings(secret: str) -> set[str]:
    return {secret, quote(secret, safe=""), json.dumps(secret)[1:-1], repr(secret)[1:-1]}


def leaked(text: str) -> set[str]:
    return {secret for secret in SECRETS if any(spelt in text for spelt in spellings(secret))}


def test_none_of_thirty_secrets_leaves_any_of_ten_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(SECRETS) == len(set(SECRETS)) == 30 and len(PLACES) == 10
    work = tmp_path / "work"
    folder = work / "v2.6.0" / "receipts"
    folder.mkdir(parents=True)
    for secret_number, secret in enumerate(SECRETS):
        for place_number, make in enumerate(PLACES.values()):
            name, text = make(secret)
            assert leaked(text) or leaked(name)
            (folder / f"{secret_number}-{place_number}-{name}").write_text(text, encoding="utf-8")
    monkeypatch.setenv("MPS_BUILD_WORK", str(work))
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("mps_build.host.support._record_host", lambda identity: ({"probes": []}, Counter()))
    monkeypatch.chdir(tmp_path)

    assert cli.main("support", ["--output", "s.tar.gz", "--json", "a.json"]) == 0

    found: dict[str, set[str]] = {}
    with tarfile.open("s.tar.gz") as archive:
        members = archive.getnames()
        assert len(members) == len(set(members)) == len(SECRETS) * len(PLACES) + 3
        for member in archive:
            data = archive.extractfile(member)
            assert data is not None
            found[member.name] = leaked(data.read().decode() + member.name)
    found |= {"terminal": leaked(capsys.readouterr().out), "--json": leaked(Path("a.json").read_text("utf-8"))}
    assert not {place: leaks for place, leaks in found.items() if leaks}


def test_what_is_structured_stays_structured_and_the_rest_stays() -> None:
    scrubber = Scrubber()
    document = {"argv": ["git", "apply", "-p1", "-p", "1", "x.patch"], "exit": 3, "counts": {"unexpected_pass": "4"}}

    assert scrubber.value(document) == document
    assert without_secrets({"token": "a b c", "password": 123456, "n": [1.5, None, True]}) == {
        "token": "removed",
        "password": "removed",
        "n": [1.5, None, True],
    }


def test_two_keys_that_differ_in_a_secret_alone_are_both_kept() -> None:
    assert without_secrets({"--token=abc1": 1, "--token=abc2": 2}) == {"--token=removed": 1, "--token=removed (2)": 2}
