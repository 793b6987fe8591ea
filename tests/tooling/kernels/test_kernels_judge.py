"""The judge: torch on the CPU, in a process of its own, connected by a socket. Needs an interpreter with torch."""

from __future__ import annotations

import importlib.util
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mps_build.kernels.execution.frames import read_frame, write_frame
from mps_build.kernels.execution.servers import JUDGE
from mps_build.kernels.judge.client import Judge, NoAnswer
from mps_build.kernels.judge.references import load_references
from mps_build.kernels.program.dtypes import DTYPES
from mps_build.kernels.program.launch import Reference, View, input_buffer, output_buffer

PYTHON = os.environ.get("MPS_BUILD_TORCH_PYTHON") or (sys.executable if importlib.util.find_spec("torch") else "")
pytestmark = pytest.mark.skipif(not PYTHON, reason="no torch here; MPS_BUILD_TORCH_PYTHON names an interpreter with it")


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    folder = tmp_path_factory.mktemp("judge")
    (folder / "references.json").write_text(json.dumps(load_references()))
    path = folder / "socket"
    with subprocess.Popen([PYTHON, str(JUDGE), str(path), str(folder / "references.json")]) as process:
        try:
            while not path.exists():
                assert process.poll() is None
                time.sleep(0.1)
            one = Judge(path)
            yield one
            one.close()
        finally:
            process.kill()


def reference(name: str, x: list[float], got: list[float], kind: str = "f") -> tuple[Reference, dict[int, bytes]]:
    dtype = DTYPES[{"f": "float", "e": "half"}[kind]]
    source = input_buffer(struct.pack(f"<{len(x)}{kind}", *x))
    out = output_buffer(len(x) * dtype.size)
    views = [View(buffer=each, dtype=dtype, shape=(len(x),)) for each in (source, out)]
    check = Reference(got=views[1], name=name, inputs={"x": views[0]})
    return check, {id(out): struct.pack(f"<{len(x)}{kind}", *got)}


def test_a_right_answer_has_no_wrong_elements(judge: Judge) -> None:
    found = judge.ask(*reference("abs", [1.0, -2.5, 0.0], [1.0, 2.5, 0.0]))

    assert (found.wrong, found.count, found.max_ulp) == (0, 3, 0)


def test_a_wrong_element_is_named_with_its_input(judge: Judge) -> None:
    found = judge.ask(*reference("abs", [1.0, -2.5, 0.0], [1.0, -2.5, 0.0]))

    assert (found.wrong, found.index, float(found.got), float(found.want)) == (1, 1, -2.5, 2.5)
    assert float(found.inputs["x"]) == -2.5


def test_a_name_is_looked_up_and_never_evaluated(judge: Judge) -> None:
    for name in ("__import__('os').getpid()", "no_such_reference"):
        with pytest.raises(NoAnswer):
            judge.ask(*reference(name, [1.0], [1.0]))
    assert judge.ask(*reference("abs", [1.0], [1.0])).wrong == 0


def test_a_profile_says_where_the_error_is(judge: Judge) -> None:
    values = [struct.unpack("<e", struct.pack("<H", bits))[0] for bits in range(0x7C00)]
    got = [abs(each) for each in values]
    got[-1] = 1.0

    found = judge.ask(*reference("abs", values, got, "e"))

    assert len(found.profile or []) == 64
    assert [at for at, error in enumerate(found.profile or []) if error] == [62]


def raw(judge: Judge, text: bytes, data: bytes = b"") -> dict[str, Any]:
    """Put a question that no client of ours would, and return the answer."""
    write_frame(judge._socket.fileno(), text, data)
    answer, _ = read_frame(judge._socket.fileno(), 1 << 16, 0, time.monotonic() + 60)
    found: dict[str, Any] = json.loads(answer)
    return found


def question(**parts: Any) -> dict[str, Any]:
    """Return the question whether [1.0] is the absolute value of [1.0], with other parts."""
    view = {"buffer": 0, "dtype": "float32", "shape": [1], "strides": [1], "offset": 0}
    question = {
        "name": "abs",
        "got": view,
        "inputs": [{"view": view}],
        "ulp": None,
        "scale": 0.0,
        "known": [],
        "sizes": [4],
    }
    return {**question, **parts}


ONE = struct.pack("<f", 1.0)
VIEW = question()["got"]
SHELL = "__import__('os').system('touch {}')"
ATTACKS: dict[str, dict[str, Any]] = {
    "an input by name": {"inputs": {"x": {"view": VIEW}, "code": {"value": SHELL}}},
    "an input too many": {"inputs": [{"view": VIEW}, {"value": SHELL}]},
    "no input": {"inputs": []},
    "another part": {"code": SHELL},
    "a name that is an expression": {"name": SHELL},
    "a name that is an issue's": {"name": "known:remainder-formula"},
    "a name of Python's": {"name": "__builtins__"},
    "an expression of its own": {"magnitude": SHELL},
    "an issue that is an expression": {"known": [SHELL]},
    "a type that is a function": {"got": {**VIEW, "dtype": "load"}},
    "a type that is dotted": {"got": {**VIEW, "dtype": "float32.__class__"}},
    "a shape that is a word": {"got": {**VIEW, "shape": SHELL}},
    "a shape past the buffer": {"got": {**VIEW, "shape": [1 << 20]}},
    "an offset past the buffer": {"got": {**VIEW, "offset": 1 << 40}},
    "an offset before the buffer": {"got": {**VIEW, "offset": -4}},
    "a stride past the buffer": {"got": {**VIEW, "shape": [2], "strides": [1 << 40]}},
    "a stride before the buffer": {"got": {**VIEW, "shape": [2], "strides": [-(1 << 40)]}},
    "a shape without end": {"got": {**VIEW, "shape": [1 << 40], "strides": [0]}},
    "a buffer that is not there": {"got": {**VIEW, "buffer": 7}},
    "a buffer from the end": {"got": {**VIEW, "buffer": -1}},
    "sizes that are not what came": {"sizes": [4, 4]},
    "sizes below zero": {"sizes": [8, -4]},
    "sizes without end": {"sizes": [0] * 100000},
    "a value that is an object": {"inputs": [{"value": {"__class__": "x"}}]},
    "a bound that is a word": {"ulp": SHELL},
    "a scale that is a list": {"scale": [1]},
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_question_that_attacks_is_refused_and_nothing_of_it_is_evaluated(
    judge: Judge, tmp_path: Path, attack: str
) -> None:
    parts = json.loads(json.dumps(ATTACKS[attack]).replace("touch {}", f"touch {tmp_path / 'stolen'}"))

    assert "error" in raw(judge, json.dumps(question(**parts)).encode(), ONE)
    assert not (tmp_path / "stolen").exists()
    assert raw(judge, json.dumps(question()).encode(), ONE)["wrong"] == 0, "and the next one is answered"


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100000, b'"x"', b"1" * 5000, b"\xff\xfe", b"null"])
def test_what_is_no_question_is_refused(judge: Judge, text: bytes) -> None:
    assert "error" in raw(judge, text, ONE)
    assert raw(judge, json.dumps(question()).encode(), ONE)["wrong"] == 0


def test_the_judge_that_answers_is_closed(judge: Judge) -> None:
    """A reference that opens a file is refused by the system: nothing of torch's process can be read or started."""
    opened = raw(judge, json.dumps(question(name="abs", inputs=[{"value": "x"}])).encode(), ONE)
    assert "error" in opened
    children = subprocess.run(
        ["pgrep", "-f", "judge/server/main.py"], capture_output=True, text=True, check=False
    ).stdout.split()
    modes = [
        line.split()[1]
        for pid in children
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("Seccomp:")
    ]
    assert "2" in modes  # a filter


def test_a_length_without_end_ends_one_connection(judge: Judge) -> None:
    lying = Judge(judge._path)
    os.write(lying._socket.fileno(), struct.pack("<IQ", 1 << 31, 1 << 60))
    assert os.read(lying._socket.fileno(), 1) == b""
    lying.close()

    assert judge.ask(*reference("abs", [1.0], [1.0])).wrong == 0
