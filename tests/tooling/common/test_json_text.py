"""JSON of strangers: whatever command reads it says which file is wrong, and why; none falls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fuzzed_json import CALLS, VALUES, command_seeds, run_command
from mps_build.common.errors import UsageError
from mps_build.common.json_text import load_json, parse_json, to_json
from mps_build.common.recipe.model import Recipe
from mps_build.common.records.device_record import load_record
from mps_build.common.records.kernels import load_kernels
from mps_build.common.strict_yaml import load
from mps_build.host.host import observe
from mps_build.host.probes.probers import RecordedProber
from mps_build.host.probes.recording import recording_of
from mps_build.verify.reports.words import facts

HOSTILE = {
    "deep_lists": b"[" * 100_000,
    "deep_closed": b"[" * 100_000 + b"]" * 100_000,
    "deep_objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "a_bit_deep": b"[" * 70 + b"]" * 70,
    "huge_integer": b'{"seconds": ' + b"9" * 5000 + b"}",
    "beyond_64_bits": b'{"seconds": 99999999999999999999}',
    "beyond_floats": b'{"seconds": 1e999}',
    "nan": b'{"seconds": NaN}',
    "infinity": b'{"seconds": -Infinity}',
    "two times": b'{"seconds": 1, "seconds": 2}',
    "not_utf_8": b'{"seconds": "\xff\xfe"}',
    "nothing": b"",
    "nul": b"\0" * 100,
}
# What a user names in the call, not what a folder of ours happens to hold.
NAMED = [(name, call) for name, calls in CALLS.items() for call in calls if "{}" in call[1:]]


# One reader serves all: each command gets some kinds, and each kind goes to some commands; the rest is slow.
EACH_SOME = [
    pytest.param(
        name, call, kind, id=f"{name}-{call[0]}-{kind}", marks=[] if (row - column) % 5 == 0 else pytest.mark.slow
    )
    for row, (name, call) in enumerate(NAMED)
    for column, kind in enumerate(HOSTILE)
]


@pytest.mark.parametrize(("name", "call", "kind"), EACH_SOME)
def test_a_file_that_is_named_is_refused_by_its_name(
    name: str, call: tuple[str, ...], kind: str, tmp_path: Path
) -> None:
    status, said = run_command(name, call, HOSTILE[kind], tmp_path)

    assert status == 2
    assert "strangers.json" in said
    assert len(said) < 1500


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("name", sorted({name for name in CALLS if not any("{}" in call for call in CALLS[name])}))
def test_a_file_that_is_found_ends_no_command(name: str, kind: str, tmp_path: Path) -> None:
    for call in CALLS[name]:
        run_command(name, call, HOSTILE[kind], tmp_path)


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["in turn", "all"])
@pytest.mark.parametrize("name", CALLS)
def test_every_part_may_be_of_any_type(name: str, whole: bool, tmp_path: Path) -> None:
    """Each part with one value and one command in turn, or every value of the first level: never a bug of ours."""
    document = json.loads(command_seeds()[name])
    calls = CALLS[name][:2]
    for turn, (holder, key, depth) in enumerate(_parts(document, most=8 if whole else 4)):
        before = holder[key]
        for value in VALUES if whole and depth < 1 else [VALUES[turn % len(VALUES)]]:
            holder[key] = value
            for call in calls if whole else [calls[(turn + turn // len(VALUES)) % len(calls)]]:
                run_command(name, call, json.dumps(document).encode(), tmp_path)
        holder[key] = before


def _parts(document: Any, depth: int = 0, most: int = 8) -> list[tuple[Any, Any, int]]:
    keys = list(document) if isinstance(document, dict) else range(min(len(document), 1))
    found = [(document, key, depth) for key in keys]
    for key in keys:
        if isinstance(document[key], dict | list) and depth < 2:
            found += _parts(document[key], depth + 1, most)[:most]
    return found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "a": 2}', "the key 'a' two times"),
        ("[NaN]", "NaN"),
        ("[1e999]", "float"),
        ("[" + "1" * 25 + "]", "25 digits"),
        ("[" + "1" * 5000 + "]", "5000 digits"),
        ("[" * 100_000, "nested"),
        ("{", "line 1"),
    ],
)
def test_the_reader_says_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_json(text)


def test_a_program_under_test_may_print_numbers_that_are_none() -> None:
    assert parse_json("[Infinity, 1e999]", finite=False) == [float("inf")] * 2


def test_a_document_is_json_for_every_reader() -> None:
    assert json.loads(to_json({"a": [float("nan"), float("-inf")], "b": "\udcff"})) == {
        "a": [None, None],
        "b": "\udcff",
    }


def test_the_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{\n"a": 1,\n}', encoding="utf-8")
    with pytest.raises(UsageError, match=r"a\.json:\d: is not JSON"):
        load_json(path)


def test_an_error_beyond_every_number_comes_back_from_a_kernel_document(tmp_path: Path) -> None:
    document = json.loads(command_seeds()["kernels"])
    document["kernels"][0] |= {"max_ulp": float("inf"), "profile": [float("inf"), 1.0]}
    path = tmp_path / "kernels.json"
    path.write_text(to_json(document), encoding="utf-8")

    row = load_kernels(path)["kernels"][0]

    assert row["profile"] == [float("inf"), 1.0]


@pytest.mark.parametrize("value", [["PATH"], "PATH", {"kept": {}, "removed": ["PATH"]}, {"removed": "x"}])
def test_facts_of_another_type_are_a_damaged_record(value: Any, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    path.write_text(json.dumps({**json.loads(command_seeds()["record"]), "environment": value}), encoding="utf-8")
    with pytest.raises(UsageError, match="is a damaged record"):
        facts(load_record(path))


@pytest.mark.parametrize("number", ["9" * 5000, "9" * 400, "\u00b2", "\u0663"])
@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (["sysctl", "-n", "hw.memsize"], "{}\n"),
        (["sysctl", "-n", "hw.ncpu"], "{}\n"),
        (["sysctl", "hw.memsize", "hw.ncpu"], "hw.memsize: {0}\nhw.ncpu: {0}\n"),
        (["sw_vers", "-productVersion"], "15.{}\n"),
        (["sw_vers"], "ProductName: macOS\nProductVersion: 15.{}\nBuildVersion: 24A1\n"),
        (["xcodebuild", "-version"], "Xcode 16.{}\nBuild version 16A1\n"),
        (["df", "-k", "."], "Filesystem 1024-blocks Used Available Capacity Mounted on\n/dev/a {0} 1 {0} 1% /\n"),
    ],
)
def test_a_number_without_end_is_not_understood(argv: list[str], text: str, number: str) -> None:
    probe = {"argv": argv, "stdout": text.format(number), "stderr": "", "exit": 0}
    known = {"argv": ["uname", "-m"], "stdout": "arm64\n", "stderr": "", "exit": 0}
    host = observe(RecordedProber(recording_of({"schema": 1, "probes": [probe, known]}, name="a.json")))
    json.dumps(host.document())


def test_yaml_is_as_strict(tmp_path: Path) -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"{b}: &{b} [*{a}, *{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    for text, said in ((bomb, "aliases"), ("[" * 100_000, "nested too deeply"), ("a: 1\na: 2\n", "duplicate key")):
        path = tmp_path / "a.yaml"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match=said):
            load(path, Recipe)
