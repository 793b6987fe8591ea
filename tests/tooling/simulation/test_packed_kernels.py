"""The file of kernels that the software Metal reads: sizes, index, places, and that it is made of one known wheel."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.common.errors import RefusedForSafety
from mps_build.common.reporting import SilentReporter
from mps_build.common.wheels.download import FetchedWheel
from mps_build.kernels.code.compiled import Code, Variable
from mps_build.kernels.code.compiler import compile_module, parse_text
from mps_build.kernels.read.metadata import Argument, Metadata
from mps_build.simulation.builder import kernels
from mps_build.simulation.builder.kernels import compile_kernels, packed
from mps_build.simulation.releases import find_release

_TEXT = """
declare float @rt_exp(float)
define void @rt_entry(ptr %a, ptr %i) {
  %r = call float @rt_exp(float 1.0)
  store float %r, ptr %a
  ret void
}
"""
_ROW = "define void @rt_row(ptr %a, ptr %i, i32 %n) {\n  ret void\n}\n"


def _code(text: str = _TEXT) -> Code:
    arguments = (
        Argument(index=0, name="out", kind="buffer", type="float", slot=2, space=1),
        Argument(index=1, name="length", kind="buffer", type="uint", slot=0, space=2, size=4),
        Argument(index=2, name="i", kind="thread_position_in_grid", type="uint"),
    )
    metadata = Metadata(function="f", arguments=arguments, max_threads=2048)
    variables = (Variable(address=0x5A0000000000, size=64, is_zero=True),)
    code = compile_module(parse_text(text))
    return Code(metadata=metadata, body="", variables=variables, is_cooperative=True, objectcode=code)


def test_the_index_says_where_each_kernel_lies_and_what_it_is_given() -> None:
    data = packed({"one": _code(), "two": _code(_TEXT + _ROW)})

    head, rest = data.split(b"\n", 1)
    name, index_size, code_size = head.decode().split()
    assert name == "mps-build-kernels-2"
    assert len(rest) == int(index_size) + int(code_size)
    calls, *lines = rest[: int(index_size)].decode().splitlines()
    assert "rt_exp" in calls.split()
    fields = [line.split() for line in lines]
    assert [row[0] for row in fields] == ["one", "two"]
    for row in fields:
        base, entry, size = int(row[1]), int(row[2]), int(row[5])
        assert base % 4096 == 0 and base <= entry < base + size
        # cooperative, most threads (a threadgroup has no more), arguments, buffers, each buffer, variables
        assert row[6:] == [
            "1",
            "1024",
            "3",
            "2",
            "0",
            "2",
            "1",
            "-1",
            "1",
            "0",
            "2",
            "4",
            "1",
            "98956046499840",
            "64",
            "1",
        ]
    one, two = ([int(word) for word in row[1:6]] for row in fields)  # base, entry, entry for rows, offset, size
    assert two[0] > one[0] + one[4] - 1
    assert two[3] == one[4]
    assert one[2] == 0
    assert two[1] != two[2] and two[0] <= two[2] < two[0] + two[4]


def test_calls_go_over_the_places_that_the_library_fills() -> None:
    data = packed({"one": _code()})

    first = data.split(b"\n", 2)[1].decode().split().index("rt_exp")
    place = (0x5900_0000_0000 + 16 * first).to_bytes(8, "little")
    assert place in data


def test_another_file_than_the_official_wheel_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel = tmp_path / "torch-2.6.0-cp312-none-macosx_11_0_arm64.whl"
    wheel.write_bytes(b"not it")
    monkeypatch.setenv("MPS_BUILD_CACHE", str(tmp_path))
    monkeypatch.setattr(kernels, "fetch_wheel", lambda *_, **__: FetchedWheel(path=wheel, from_cache=True))

    with pytest.raises(RefusedForSafety, match="is not the official wheel"):
        compile_kernels(find_release("2.6.0"), tmp_path / "kernels", log=tmp_path / "log", reporter=SilentReporter())
    assert not (tmp_path / "kernels").exists()


def test_a_release_that_brings_its_kernels_as_text_fetches_no_wheel(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kernels, "fetch_wheel", lambda *_, **__: pytest.fail("it is fetched"))

    home = compile_kernels(find_release("1.13.1"), tmp_path, log=tmp_path / "log", reporter=SilentReporter())
    assert list(home.iterdir()) == []
