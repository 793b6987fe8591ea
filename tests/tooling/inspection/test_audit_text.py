"""The wheel's own text files and its name, read without running or trusting anything."""

from __future__ import annotations

import pytest
from mps_build.common.wheels.naming import expand_tag, is_same_version, parse_wheel_name, release_of
from mps_build.inspection.audit.model import parse_headers, parse_literals, parse_record
from mps_build.inspection.audit.releases import metal_sections_of, wanted_of


def test_names_have_their_parts() -> None:
    name = parse_wheel_name("torch-2.10.0-2-cp312-none-macosx_11_0_arm64.whl")

    assert name is not None
    assert (name.version, name.build, name.python, name.abi, name.macos) == ("2.10.0", "2", "cp312", "none", (11, 0))
    for wrong in ("torch.whl", "torch-2.10.0.whl", "torch-x-cp312-none-any.whl", "../torch-1-py3-none-any.whl"):
        assert parse_wheel_name(wrong) is None


def test_compressed_tags_stand_for_each_of_theirs() -> None:
    assert expand_tag("cp312-cp312-manylinux2014_aarch64.manylinux_2_17_aarch64") == {
        "cp312-cp312-manylinux2014_aarch64",
        "cp312-cp312-manylinux_2_17_aarch64",
    }


@pytest.mark.parametrize(
    ("version", "release"),
    [("2.16.0.dev20261101", (2, 16, 0)), ("2.13.0+cpu", (2, 13, 0)), ("2.13.0a0+gitcf30153", (2, 13, 0)), ("x", ())],
)
def test_a_nightly_counts_by_its_release(version: str, release: tuple[int, ...]) -> None:
    assert release_of(version) == release


def test_a_local_label_is_spelled_two_ways() -> None:
    assert is_same_version("2.13.0+a-b.c", "2.13.0+a_b.c")
    assert is_same_version("2.13.0+A.b", "2.13.0+a_b")
    assert not is_same_version("2.13.0", "2.13.1")


def test_literals_are_read_and_nothing_is_run() -> None:
    text = "import os\n__version__ = '2.15.0'\ncuda: Optional[str] = None\nx = os.exit('1')\n"
    text += 'git_version: str = "abc"  # x\n'

    assert parse_literals(text) == {"__version__": "2.15.0", "git_version": "abc"}


def test_headers_keep_every_value_and_end_with_the_first_empty_line() -> None:
    assert parse_headers("Tag: a\r\nTag: b\r\nSummary: one\r\n  two\r\n\r\nTag: c\r\n") == {
        "tag": ("a", "b"),
        "summary": ("one\ntwo",),
    }


def test_a_record_row_without_three_fields_promises_nothing() -> None:
    assert parse_record('a,sha256=x,1\n"b,c",,\nodd\n')[1:] == (("b,c", "", ""), ("odd", "", ""))
    with pytest.raises(ValueError, match="no CSV"):
        parse_record('"open,x,1\n')


def test_what_a_release_must_hold_follows_its_version() -> None:
    assert metal_sections_of((2, 5, 1)) == {}
    assert metal_sections_of((2, 8, 0)) == {"metal_basic": (13, 0), "metal_bfloat": (14, 0)}
    assert metal_sections_of((2, 11, 0)) == {"metal_basic": (14, 0)}
    assert metal_sections_of((2, 13, 0))["metal_40"] == (26, 0)
    assert metal_sections_of((2, 16, 0))["metal_40"] == (26, 2)
    assert wanted_of("torch", "2.1.2", None, ()).least_sdk == (12, 3)
    assert wanted_of("torch", "2.2.0", None, ()).least_sdk == (13, 3)
    assert wanted_of("torch", "2.12.0", None, ()).least_sdk == (26, 0)
    assert wanted_of("torch", "2.1.2", None, ()).openmp is False
    assert "libtorch_cpu.dylib" in wanted_of("x", "1", None, ("torch (>=2.0)",)).external_libraries
    assert wanted_of("x", "1", None, ("torchx>=1", "pytorch")).external_libraries == ()
    assert "libc10.dylib" in wanted_of("torchaudio", "2.11.0", None, ()).external_libraries
