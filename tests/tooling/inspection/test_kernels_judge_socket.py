"""The judge: torch on the CPU, in a process of its own, asked over a socket. Needs an interpreter with torch."""

from __future__ import annotations

import importlib.util
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from mps_build.inspection.kernels.dtypes import DTYPES
from mps_build.inspection.kernels.judge.client import Judge, NoAnswer
from mps_build.inspection.kernels.program import Reference, View, input_buffer, output_buffer
from mps_build.inspection.kernels.references import load_references
from mps_build.inspection.kernels.verification import JUDGE

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

    assert (found["wrong"], found["count"], found["max_ulp"]) == (0, 3, 0)


def test_a_wrong_element_is_named_with_its_input(judge: Judge) -> None:
    found = judge.ask(*reference("abs", [1.0, -2.5, 0.0], [1.0, -2.5, 0.0]))

    assert (found["wrong"], found["index"], float(found["got"]), float(found["want"])) == (1, 1, -2.5, 2.5)
    assert float(found["inputs"]["x"]) == -2.5


def test_a_name_is_looked_up_and_never_evaluated(judge: Judge) -> None:
    for name in ("__import__('os').getpid()", "no_such_reference"):
        with pytest.raises(NoAnswer):
            judge.ask(*reference(name, [1.0], [1.0]))
    assert judge.ask(*reference("abs", [1.0], [1.0]))["wrong"] == 0


def test_a_profile_says_where_the_error_is(judge: Judge) -> None:
    values = [struct.unpack("<e", struct.pack("<H", bits))[0] for bits in range(0x7C00)]
    got = [abs(each) for each in values]
    got[-1] = 1.0

    found = judge.ask(*reference("abs", values, got, "e"))

    assert len(found["profile"]) == 64
    assert [at for at, error in enumerate(found["profile"]) if error] == [62]
