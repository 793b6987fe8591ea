"""A build file read as a graph: escapes, includes, the critical path, a schedule."""

from __future__ import annotations

from pathlib import Path

import pytest
from mps_build.wheel_build.report.analysis import folder_of, phase_of, schedule
from mps_build.wheel_build.report.ninja_files import longest_path, parse_graph, read_graph, source_root

GRAPH = r"""
ninja_required_version = 1.5
cmake_ninja_workdir = /build/
rule CXX
  command = c++ $in: not a build line
build a$ b.o c$:d.o | ${cmake_ninja_workdir}implicit: CXX in$$put.cpp one.cpp | gen.h || order |@ check
  DEP_FILE = build x: y
build lib.a: AR a$ b.o $
   more.o
build all: phony lib.a
"""


def test_a_build_file_is_read_with_its_escapes_variables_and_continued_lines() -> None:
    graph = parse_graph(GRAPH)

    assert [edge.rule for edge in graph.edges] == ["CXX", "AR", "phony"]
    assert graph.edges[0].outputs == ("a b.o", "c:d.o", "/build/implicit")
    assert graph.edges[0].inputs == ("in$put.cpp", "one.cpp", "gen.h", "order")
    assert graph.edges[0].explicit == ("in$put.cpp", "one.cpp")
    assert graph.edges[1].inputs == ("a b.o", "more.o")


def test_included_files_are_read_and_the_root_of_the_source_found(tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text("where = sub\ninclude rules.ninja\nbuild a: CXX b\n")
    (tmp_path / "rules.ninja").write_text("build build.ninja: RERUN | /src/CMakeLists.txt /src/lib/CMakeLists.txt\n")
    graph = read_graph(tmp_path)

    assert graph is not None
    assert [edge.outputs for edge in graph.edges] == [("build.ninja",), ("a",)]
    assert source_root(graph) == "/src"


def test_the_critical_path_is_the_longest_chain_through_phony_edges() -> None:
    graph = parse_graph(
        "build gen: G\nbuild pch: P || all_headers\nbuild all_headers: phony gen\n"
        "build a.o: C | pch\nbuild b.o: C\nbuild lib: L a.o b.o\n"
    )
    seconds = [3.0, 5.0, 0.0, 2.0, 9.5, 1.0]

    assert [graph.edges[place].outputs[0] for place in longest_path(graph, seconds)] == ["gen", "pch", "a.o", "lib"]


def test_a_circle_and_an_empty_graph_end() -> None:
    assert len(longest_path(parse_graph("build a: C b\nbuild b: C a\n"), [1.0, 1.0])) == 2
    assert longest_path(parse_graph(""), []) == ()


def test_a_schedule_waits_for_inputs_and_for_a_free_job() -> None:
    below = [[], [], [], [0, 1]]  # the last needs the first two
    seconds = [6.0, 6.0, 10.0, 6.0]

    assert schedule(below, seconds, [0, 1, 2, 3], 1) == 28.0
    assert schedule(below, seconds, [0, 1, 2, 3], 2) == 16.0  # 6 beside 6, then 10 beside 6
    assert schedule(below, seconds, [2, 3, 0, 1], 2) == 18.0  # the long one first, the pair one after the other
    assert schedule(below, seconds, [0, 1, 2, 3], 8) == 12.0
    assert schedule([[], [0], [1]], [0.0, 0.0, 2.0], [0, 0, 0], 1) == 2.0  # phony edges take no job


@pytest.mark.parametrize(
    ("output", "phase"),
    [
        ("caffe2/CMakeFiles/torch_cpu.dir/__/aten/src/ATen/mps/MPSStream.mm.o", "compile"),
        ("caffe2/aten/src/ATen/UnaryKernel_31.air", "Metal"),
        ("caffe2/aten/src/ATen/kernels_basic.metallib", "Metal"),
        ("caffe2/aten/src/ATen/native/mps/UnaryKernel_metallib.h", "Metal"),
        ("caffe2/CMakeFiles/torch_cpu.dir/cmake_pch.hxx.pch", "precompiled header"),
        ("lib/libtorch_cpu.dylib", "link"),
        ("lib/libsleef.a", "link"),
        ("csrc/_C.cpython-312-darwin.so", "link"),
        ("bin/protoc", "link"),
        ("build.ninja", "configure"),
        ("CMakeFiles/install.util", "install"),
        ("aten/src/ATen/RegisterMPS.cpp", "codegen"),
    ],
)
def test_a_phase_is_recognised_by_an_outputs_name_where_there_is_no_graph(output: str, phase: str) -> None:
    assert phase_of(output) == phase


def test_a_folder_is_that_of_the_source_and_the_graphs_word_goes_before_the_objects_name() -> None:
    output = "caffe2/torch/CMakeFiles/torch_python.dir/csrc/jit/init.cpp.o"
    graph = parse_graph(f"build {output}: CXX /src/torch/csrc/jit/init.cpp\n")

    assert folder_of(output) == "caffe2/torch/csrc/jit"
    assert folder_of(output, graph.edges[0], "/src") == "torch/csrc/jit"
    assert folder_of("c10/CMakeFiles/c10.dir/core/Device.cpp.o") == "c10/core"
