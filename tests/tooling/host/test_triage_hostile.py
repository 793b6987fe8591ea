"""Logs made to hurt: expressions against their own worst cases, huge logs, and thousands of damaged ones."""

from __future__ import annotations

import gc
import importlib
import json
import pkgutil
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_logs import COLLECTORS, attacks
from mps_build.cli import main
from mps_build.common import cmake_summary, logs, strict_yaml
from mps_build.common.logs import file
from mps_build.common.logs.file import WHOLE, thin, thin_text
from mps_build.host import triage
from mps_build.host.triage import classify_device_text, explain
from mps_build.host.triage.device_texts import load_table
from mps_build.host.triage.rules import load_catalogue
from mps_build.host.triage.tools.read import read_tool_output

ROOT = Path(__file__).parents[3]
RECORDED = ROOT / "tests" / "recorded"
# Looked for anywhere; the others are matched where a line begins.
SEARCHED = frozenset(
    [
        "FRAME",
        "INNOCENT",
        "ANNOUNCES",
        "PROBED_ONLY",
        "_WARNING",
        "_FOREIGN_NSLOG",
        "_TROUBLE",
        "_ESCAPES",
        "_WRITTEN_ESCAPES",
        "_CONTROLS",
        "_ENTITY",
        "_TAG",
        "_PAGE",
        "_WRITTEN_END",
        "_OF_THE_GATE",
        "_NO_XCRUN",
        "_SDK",
        "_CANNOT_COMPILE",
        "_INCOMPLETE",
        "_CACHE_ENTRY",
        "_NO_OPTION",
        "_NO_SERVER",
        "_MACOS",
        "_TORCH",
        "_FAILED_IMPORT",
        "_FOR_WANT_OF_IT",
    ]
)
SIZE = 5_000
# A hundred times what a linear expression takes; a quadratic one takes 25 million steps.
SECONDS = 0.12


def _table_patterns() -> list[re.Pattern[str]]:
    rows, device = load_catalogue(), load_table()
    found = {part for written in rows.patterns() for part in rows.parts(written) if part}
    for rule in device.rules:
        found |= {re.compile(pattern) for pattern in (*rule.phrases, *rule.unless, *rule.details)}
    found |= {re.compile(origin.pattern) for origin in device.origins}
    return sorted(found, key=lambda pattern: pattern.pattern)


def _reader_patterns() -> list[tuple[str, re.Pattern[str]]]:
    found = [module for each in (triage, logs) for module in pkgutil.walk_packages(each.__path__, f"{each.__name__}.")]
    modules = [cmake_summary, *(importlib.import_module(module.name) for module in found)]
    return [
        (f"{module.__name__}.{name}", value)
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
    ]


def _slowest(pattern: re.Pattern[str], *, only_match: bool = False) -> tuple[float, str]:
    """Return what an expression takes on the worst of its worst texts."""
    worst = (0.0, "")
    for attack in attacks(pattern.pattern, pattern.flags & ~re.UNICODE):
        for unit in (attack, f"{attack} "):
            text = (unit * (SIZE // len(unit) + 1))[:SIZE]
            began = time.process_time()
            for number, _ in enumerate((pattern.match(text),) if only_match else pattern.finditer(text)):
                if number % 64 == 0 and time.process_time() - began > SECONDS:  # asking the clock costs more than a hit
                    break
            worst = max(worst, (time.process_time() - began, attack[:80]))
        if worst[0] > SECONDS:
            break
    return worst


def test_every_expression_of_the_tables_is_linear_on_its_own_worst_case() -> None:
    patterns = _table_patterns()
    slow = {pattern.pattern: worst for pattern in patterns if (worst := _slowest(pattern))[0] > SECONDS}

    assert len(patterns) > 400
    assert not slow


def test_every_expression_of_the_readers_is_linear_on_its_own_worst_case() -> None:
    patterns = _reader_patterns()
    slow = {
        name: worst
        for name, pattern in patterns
        if (worst := _slowest(pattern, only_match=name.rpartition(".")[2] not in SEARCHED))[0] > SECONDS
    }

    assert len(patterns) > 50
    assert {name.rpartition(".")[2] for name, _ in patterns} >= SEARCHED
    assert not slow


@pytest.mark.parametrize("pattern", [r"[\w+.-]+\.mm?:", r"x\w+ y", r"\d+ failed"])
def test_the_worst_cases_find_expressions_that_are_not_linear(pattern: str) -> None:
    assert _slowest(re.compile(pattern))[0] > 0.3 * SECONDS


HOSTILE = {
    "a word of trouble a line": "error:\n",
    "peachpy": "python-peachpy",
    "kmpc": '"___kmpc_',
    "blanks": " " * 19_000 + "x\n",
    "a word": "a" * 19_000 + "\n",
    "errors": "error: \n",
    "CMake": "CMake Error at x/third_party/x (cmake_minimum_required): ",
    "tracebacks": "Traceback (most recent call last):\n",
    "frames": "make: *** [x] Error 1\n",
    "hits": "ld: warning: ignoring file a.o, building for macOS-arm64 but attempting to link with file built for x\n",
    "tabs": "a\tb\t2026-01-01T00:00:00Z ",
    "gutters": "│" * 10_000 + "\n",
}


@pytest.mark.parametrize("size", [WHOLE // 20, pytest.param(WHOLE, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_log_costs_what_its_length_costs(name: str, size: int) -> None:
    unit = HOSTILE[name]

    def cost(length: int) -> float:
        text = unit * (length // len(unit))
        gc.disable()  # a collection goes over what all tests of this worker hold
        try:
            began = time.thread_time()
            explain(text)
            classify_device_text(text)
            return time.thread_time() - began
        finally:
            gc.enable()

    # Four times as long: sixteen times as dear where a rule goes over the whole for each of its parts.
    assert cost(size) < 9 * max(cost(size // 4), 0.02)


# One of many lines, one of few; the others take a second each.
SOME = ("errors", "a word")


@pytest.mark.parametrize("name", [n if n in SOME else pytest.param(n, marks=pytest.mark.slow) for n in HOSTILE])
def test_what_is_too_long_to_be_read_whole_is_thinned_in_linear_time(name: str) -> None:
    def cost(characters: int) -> float:
        text = HOSTILE[name] * (characters // len(HOSTILE[name]))
        began = time.process_time()
        assert len(thin_text(text)) <= len(text)
        return time.process_time() - began

    # Two times as long: four times as dear where each line is held against all others.
    small = cost(5 * WHOLE // 4)
    assert cost(5 * WHOLE // 2) < 3.3 * max(small, 0.05)


def test_a_thinned_log_keeps_its_line_numbers_its_ends_and_its_trouble() -> None:
    lines = [f"[{n}/90000] clang++ -arch x86_64 -o some/where/in/the/tree/file_{n}.cpp.o" for n in range(90_000)]
    lines[40_000] = "a.cpp:1:2: error: expected ';'"
    text = "\n".join(lines)

    thinned = thin_text(text).split("\n")

    assert len(thinned) == len(lines)
    assert (thinned[0], thinned[-1]) == (lines[0], lines[-1])
    assert thinned[39_980:40_020] == lines[39_980:40_020]
    assert sum(map(len, thinned)) < WHOLE
    assert thin_text("short") == "short"
    assert thin([text.encode()[:7], text.encode()[7:]]).decode().split("\n") == thinned
    assert len(thin([b"x" * 9_000_000, b"\nend\n"])) < 100_000


def test_a_thinned_log_has_as_many_lines_however_it_comes_and_trouble_keeps_its_neighbours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"WHOLE": 3000, "_HEAD": 400, "_TAIL": 900, "_AROUND": 4}.items():
        monkeypatch.setattr(file, name, value)
    words = [b"Building x", b"not found", b"", b"x" * 30, b"denied", b"y\rz"]
    chance = random.Random(5)
    for _ in range(300):
        lines = chance.choices(words, k=chance.randrange(300, 600)) + [b""] * chance.randrange(2)
        at = chance.randrange(120, 200)
        lines[at] = b"a.cpp:1:2: error: x"
        text = b"\n".join(lines)
        cuts = sorted(chance.choices(range(len(text)), k=chance.randrange(12)))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]

        thinned = thin(pieces).split(b"\n")

        assert len(thinned) == len(lines)
        assert all(kept in (b"", line) for kept, line in zip(thinned, lines, strict=True))
        assert thinned[at - 4 : at + 5] == lines[at - 4 : at + 5]


# Prints, beside what triage says, the peak of its memory in kilobytes. Not ru_maxrss: a
# process inherits it, so it is pytest's own peak where pytest is the larger.
MEASURED = """
import re, sys
from mps_build.cli import main
status = main("triage", [sys.argv[1], "--json", sys.argv[2]])
peak = re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]
print("MEASURED", peak, status)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize("name", ["a build", *HOSTILE])
def test_60_mb_take_less_than_300_mb(tmp_path: Path, name: str) -> None:
    step = "[1/9] Building CXX object caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/native/error/Copy.cpp.o │\n"
    unit = HOSTILE.get(name, step * 100 + "a.mm:1:2: warning: 'error' is deprecated: use another [-Wdeprecated]\n")
    log = tmp_path / "a.log"
    log.write_text(unit * (60_000_000 // len(unit.encode())), "utf-8")

    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(log), str(tmp_path / "out.json")],
        env={"PYTHONPATH": str(ROOT / "scripts"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )

    kilobytes, status = done.stdout.rpartition("MEASURED")[2].split()
    assert status == "0"
    assert int(kilobytes) < 300_000


def _texts() -> list[str]:
    files = (
        *("specimens/build_logs", "specimens/mps_stderr", "specimens/tools", "specimens/reports"),
        *("triage_variants", "triage_collected", "triage_points", "triage_threads"),
    )
    rows = [row for name in files for row in strict_yaml.unchecked((RECORDED / f"{name}.yaml").read_text("utf-8"))]
    return [str(row["text"]) for row in rows]


def _mutated(seed: int, count: int) -> Iterator[str]:
    """Yield damaged logs: cut, torn, doubled, crossed, in a dress or two, with junk in them."""
    chance, texts, dresses = random.Random(seed), _texts(), list(COLLECTORS.values())
    junk = (
        "\x00",
        "\x1b[",
        "\r",
        "\ufffd",
        "²",
        "9" * 5000,
        "{",
        '"',
        "\\n" * 9,
        "1.2.3",
        "&#99999999;",
        "\ud800",
        "%s",
    )
    for _ in range(count):
        text = chance.choice(texts)
        for _ in range(chance.randrange(1, 6)):
            place, other = chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)
            first, last = sorted((place, other))
            match chance.randrange(7):
                case 0:
                    text = text[:first] + text[last:]
                case 1:
                    text = text[:place] + chance.choice(junk) + text[place:]
                case 2:
                    text = text[first:last] + text
                case 3:
                    text = text[:place] + chance.choice(texts)[:2000] + text[place:]
                case 4:
                    text = chance.choice(dresses)(text)
                case 5:
                    lines = text.split("\n")
                    chance.shuffle(lines)
                    text = "\n".join(lines)
                case _:
                    text = re.sub(r"\d", lambda digit: str((ord(digit[0]) + 7) % 10), text)
            text = text[:60_000]
        yield text


def _read(text: str) -> dict[str, Any]:
    found = explain(text)
    device = [classify_device_text(text, exit=exit).document() for exit in (None, 0, 134)]
    return {**found.document(), "device": device, "tools": read_tool_output(text)}


@pytest.mark.parametrize(("seed", "count"), [(20261122, 150), pytest.param(7, 2000, marks=pytest.mark.slow)])
def test_no_damaged_log_crashes_triage(seed: int, count: int) -> None:
    for text in _mutated(seed, count):
        json.dumps(_read(text))


def test_no_damaged_log_crashes_the_command(tmp_path: Path) -> None:
    for number, text in enumerate(_mutated(11, 40)):
        log = tmp_path / f"{number}.log"
        log.write_bytes(text.encode("utf-8", "surrogatepass"))
        assert main("triage", [str(log), "--json", str(tmp_path / "out.json")]) == 0
