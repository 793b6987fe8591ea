"""A benchmark's record as a page, as bars and beside another, from the record of a real run on an NVIDIA H200."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from mps_build.cli import main
from mps_build.common.errors import UsageError
from mps_build.common.page import Box, Line, Words
from mps_build.common.records.benchmark import BenchmarkRecord, Flag, Ratio, Row, load_benchmark
from mps_build.common.records.device_record import write_record
from mps_build.verify.reports import bars, benchmark_page
from mps_build.verify.reports.benchmark_side_by_side import compare_benchmarks, verdict

RECORDED = Path(__file__).parents[3] / "recorded" / "records" / "benchmark-cuda-h200-torch-2.11.0.json"


@pytest.fixture(scope="module")
def recorded() -> BenchmarkRecord:
    return load_benchmark(RECORDED)


def _with(record: BenchmarkRecord, row_id: str, **changes: Any) -> BenchmarkRecord:
    rows = tuple(row.model_copy(update=changes) if row.id == row_id else row for row in record.rows)
    return record.model_copy(update={"rows": rows})


def _interrupted_before_bert(record: BenchmarkRecord) -> BenchmarkRecord:
    rows = tuple(row for row in record.rows if row.id != "bert:training")
    ended = {"partial": True, "verdict": "not_verified", "cause": "interrupted", "exit_code": 130}
    return record.model_copy(update={"rows": rows, "missing": ("bert:training",), **ended})


def test_the_recorded_run_reached_most_of_the_cards_peak(recorded: BenchmarkRecord) -> None:
    """The card's library peak was measured apart, by CUDA events: 53.7 TFLOP/s in float32, 817.0 in bfloat16."""
    single, half = recorded.row("matmul:kernel"), recorded.row("matmul_bf16:kernel")
    assert single is not None and half is not None

    assert (single.flops_per_second or 0) >= 0.85 * 53.7e12
    assert (half.flops_per_second or 0) >= 0.85 * 817.0e12


def test_a_partial_record_never_looks_whole(recorded: BenchmarkRecord) -> None:
    partial = _interrupted_before_bert(recorded)
    page, drawn = benchmark_page.render(partial), bars.svg(partial)

    assert recorded.missing == () and not recorded.partial
    assert "Interrupted (partial record)" in page and "Interrupted (partial record)" in drawn
    assert "bert training" in page and "interrupted before it" in page


def test_the_bars_are_as_high_as_the_ratios_say(recorded: BenchmarkRecord) -> None:
    root = ElementTree.fromstring(bars.svg(recorded))
    boxes = [float(e.get("height") or 0) for e in root if e.tag.endswith("rect") and e.get("fill") in _COLOURS]
    ratios = [
        row.ratio.median
        for mode in ("training", "inference")
        for name in ("resnet50", "bert", "vgg16")
        if (row := recorded.row(f"{name}:{mode}")) is not None and row.ratio is not None
    ]

    assert len(boxes) == len(ratios) == 6
    scale = boxes[0] / ratios[0]
    assert boxes == [pytest.approx(ratio * scale, rel=0.01) for ratio in ratios]


_COLOURS = {"#0b66c3", "#6c4ad1"}


def test_every_whisker_and_word_of_the_picture_lies_inside_it(recorded: BenchmarkRecord) -> None:
    wide = _with(recorded, "bert:inference", ratio=Ratio(median=5.0, low=1.0, high=900.0))
    drawn = bars.picture(wide)

    for mark in drawn.marks:
        if isinstance(mark, Line):
            assert min(mark.y1, mark.y2) >= 0 and max(mark.y1, mark.y2) <= drawn.height
        elif isinstance(mark, Words):
            assert 0 < mark.y < drawn.height and 0 < mark.x < drawn.width
        else:
            assert mark.y >= 0 and mark.height >= 0


def test_the_announcement_is_given_in_words_and_no_bar_is_drawn_for_it(recorded: BenchmarkRecord) -> None:
    drawn = bars.svg(recorded)

    assert "Its text gives no number for any bar" in drawn
    assert "M1 Ultra" in drawn
    assert drawn.count('fill="#0b66c3"') == 3
    # Where BERT's training is missing, nothing stands in its place.
    assert bars.svg(_interrupted_before_bert(recorded)).count('fill="#0b66c3"') == 2


def test_a_withheld_bar_says_why(recorded: BenchmarkRecord) -> None:
    flag = Flag(id="wrong_result", text="out: off by 0.3")
    drawn = bars.svg(_with(recorded, "vgg16:training", ratio=None, outcome="wrong", flags=(flag,)))

    assert "withheld" in drawn and "wrong result" in drawn


def test_an_empty_record_can_be_drawn() -> None:
    empty = BenchmarkRecord(
        tool="t",
        statement="MPS, not reached.",
        verdict="not_verified",
        exit_code=3,
        partial=False,
        device="mps",
        target={},
        started="2026-11-21T00:00:00+00:00",
        seconds=0.0,
    )

    assert bars.svg(empty).count(">measured<") == 8
    assert "MPS, not reached." in benchmark_page.render(empty)


def test_the_png_is_the_same_picture_at_double_the_size(recorded: BenchmarkRecord) -> None:
    image = pytest.importorskip("PIL.Image")
    drawn = bars.picture(recorded)
    opened = image.open(io.BytesIO(bars.png(recorded)))

    assert opened.size == (drawn.width * 2, drawn.height * 2)
    bar = next(mark for mark in drawn.marks if isinstance(mark, Box) and mark.colour == "#0b66c3")
    place = (round(2 * (bar.x + 8)), round(2 * (bar.y + bar.height / 2)))
    assert opened.convert("RGB").getpixel(place) == (0x0B, 0x66, 0xC3)


def test_the_page_escapes_what_a_record_holds(recorded: BenchmarkRecord) -> None:
    page = benchmark_page.render(_with(recorded, "vgg16:training", reason="<script>alert(1)</script>"))

    assert "<script>alert(1)" not in page


def test_a_record_beside_itself_changed_nothing(recorded: BenchmarkRecord) -> None:
    found = compare_benchmarks(recorded, recorded)

    assert not found.differences and not found.slower and not found.faster
    assert verdict(found) == "of 13 rows the device's step is slower in 0, faster in 0, as before in 13"


def test_a_slower_device_is_named_and_noise_is_not(recorded: BenchmarkRecord) -> None:
    def scaled(row: Row, factor: float) -> dict[str, tuple[float, ...]]:
        return {**row.samples, "device": tuple(value * factor for value in row.samples["device"])}

    vgg, bert = recorded.row("vgg16:training"), recorded.row("bert:inference")
    assert vgg is not None and bert is not None
    newer = _with(recorded, "vgg16:training", samples=scaled(vgg, 1.3))
    newer = _with(newer, "bert:inference", samples=scaled(bert, 1.02))

    found = compare_benchmarks(recorded, newer)

    assert (found.slower, found.faster) == (("vgg16:training",), ())


def test_rows_of_other_shapes_are_not_compared(recorded: BenchmarkRecord) -> None:
    newer = _with(recorded, "vgg16:training", size={"batch": 32})
    found = {row.id: row for row in compare_benchmarks(recorded, newer).rows}

    assert not found["vgg16:training"].comparable
    assert found["vgg16:training"].why_not == "not comparable: shape batch 64 before, batch 32 after"


def test_compare_takes_two_benchmarks_and_no_mixture(recorded: BenchmarkRecord, tmp_path: Path) -> None:
    other, answer = tmp_path / "other.json", tmp_path / "answer.json"
    write_record(recorded.model_copy(update={"host": {"macos": "26.1"}}), other)
    verification = RECORDED.with_name("cuda-h200-torch-2.11.0.json")

    assert main("compare", [str(RECORDED), str(other), "--json", str(answer)]) == 0
    assert json.loads(answer.read_text())["differences"] == {"macos": ["None", "26.1"]}
    assert main("compare", [str(RECORDED), str(verification), "--json", str(answer)]) == 2
    assert "a benchmark is compared with a benchmark" in json.loads(answer.read_text())["hint"]


@pytest.mark.parametrize("text", ["{", "[]", '{"schema": "mps-build/benchmark/9"}'])
def test_a_file_that_is_no_benchmark_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "record.json"
    path.write_text(text)

    with pytest.raises(UsageError, match=re.escape(str(path))):
        load_benchmark(path)
