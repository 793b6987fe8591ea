"""The benchmark as a page, and its figures in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mps_build.common.page import section, table, whole_page
from mps_build.common.plain_text import in_html, in_markdown, markdown_table, plain
from mps_build.common.records.benchmark import BenchmarkRecord, Row

from . import bars
from .words import facts

TITLES = {
    "resnet50": "ResNet-50",
    "bert": "BERT",
    "vgg16": "VGG-16",
    "decoder": "Decoder of GPT-2's size",
    "matmul": "Matrix product",
    "matmul_bf16": "Matrix product, bfloat16",
    "conv": "3x3 convolution",
    "attention": "Attention",
    "layer_norm": "Layer norm",
}
ANNOUNCED = ("resnet50", "bert", "vgg16")
# What the text of the announcement tells: https://pytorch.org/blog/introducing-accelerated-pytorch-training-on-mac/
ANNOUNCEMENT = (
    "The announcement of 18 May 2022 shows bars for the same three models, of a Mac Studio (M1 Ultra, 20-core CPU, "
    "64-core GPU, 128 GB), macOS 12.3 and a prerelease of PyTorch 1.12, with batches of 128, 64 and 64. "
    "Its text gives no number for any bar, so none is drawn here."
)


def headline(record: BenchmarkRecord) -> str:
    """Return the verdict as a heading; a partial record never looks whole."""
    words = {"measured": "Measured", "rehearsed": "Rehearsed", "doubtful": "Doubtful", "not_verified": "Not measured"}
    if record.cause == "interrupted":
        return "Interrupted (partial record)"
    return words[record.verdict] + (" (partial record)" if record.partial else "")


def ratio(row: Row) -> str:
    """Return a row's ratio with its interval, or that it is withheld.

    >>> ratio(Row(name="bert", mode="training", outcome="wrong"))
    'withheld'
    """
    if row.ratio is None:
        return "withheld"
    return f"{row.ratio.median:.3g} ({row.ratio.low:.3g} to {row.ratio.high:.3g})"


def shape(row: Row) -> str:
    """Return what a row ran on: its batch, sequence or sides.

    >>> shape(Row(name="bert", mode="training", outcome="measured", size={"batch": 64, "sequence": 512}))
    'batch 64, sequence 512'
    """
    return ", ".join(f"{name} {number}" for name, number in row.size.items())


def dtypes(row: Row) -> str:
    """Return the dtype, and the CPU's own where it is another."""
    if row.cpu_dtype in (None, row.dtype):
        return row.dtype or ""
    return f"{row.dtype} (CPU: {row.cpu_dtype})"


def achieved(row: Row) -> str:
    """Return what a row reaches of the device's measured ceilings."""
    parts = []
    if row.flops_per_second:
        share = f" ({row.flops_of_ceiling:.0%})" if row.flops_of_ceiling is not None else ""
        parts.append(f"{_scaled(row.flops_per_second)}FLOP/s{share}")
    if row.bytes_per_second:
        share = f" ({row.bytes_of_ceiling:.0%})" if row.bytes_of_ceiling is not None else ""
        parts.append(f"{_scaled(row.bytes_per_second)}B/s{share}")
    return ", ".join(parts)


def doubts(row: Row) -> str:
    """Return the ids of a row's flags, or how it ended."""
    found = [flag.id for flag in row.flags] or ([row.outcome] if row.outcome != "measured" else [])
    return ", ".join(dict.fromkeys(found)) + (" (lowered)" if row.lowered else "")


def title(row: Row) -> str:
    """Return a row's name as people write it."""
    return TITLES.get(row.name, row.name)


def _scaled(value: float) -> str:
    for unit in ("", "k", "M", "G"):
        if value < 1000:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} T" if value < 1000 else f"{value / 1000:.3g} P"


_TONES = {"measured": "good", "doubtful": "bad"}
_CSS = """
td.range { min-width: 84px; }
.scale { position: relative; height: 14px; background: var(--idle-soft); border-radius: 7px; margin-top: 4px; }
.scale i { position: absolute; top: 5px; height: 4px; background: var(--link); opacity: .45; border-radius: 2px; }
.scale b { position: absolute; top: 1px; width: 4px; height: 12px; margin-left: -2px; background: var(--link); }
td small { color: var(--soft); display: block; }
"""
_WINOGRAD = (
    '<p class="legend">Operations are counted as the formula has them. Convolutions may reach more than a matrix '
    "product does: Winograd's algorithm needs fewer multiplications for the same 3x3 convolution.</p>"
)


def render(record: BenchmarkRecord) -> str:
    """Return the page; its first line of text is what the run can say at all."""
    parts = (
        f'<p class="statement">{in_html(record.statement)}</p>',
        _verdict(record),
        f'<section class="picture">{_inline(record)}</section>' if _has_models(record) else "",
        _rows(record, "Models", [row for row in record.rows if row.mode != "kernel"]),
        _rows(record, "Kernels", [row for row in record.rows if row.mode == "kernel"]),
        _doubts(record),
        _ceilings(record),
        _section("What was run on what", f"<dl>{''.join(_pairs(record))}</dl>", [*_pairs(record)]),
        _section("Not measured", _skipped(record), [*record.skipped, *record.missing]),
    )
    name = f"{headline(record)}: torch {record.torch.version or ''} on {record.device} against the CPU"
    footer = f"Written by {record.tool} from a record of schema {record.schema_}."
    return whole_page(name, "\n".join(part for part in parts if part), css=_CSS, footer=footer)


def markdown(record: BenchmarkRecord) -> str:
    """Return the record as a job's summary."""
    lines = [f"### {headline(record)}: times faster than the CPU", "", in_markdown(record.statement), ""]
    rows = [(title(row), row.mode, shape(row), ratio(row), doubts(row)) for row in record.rows]
    lines += markdown_table(("row", "mode", "shape", "times the CPU", "doubts"), rows)
    return plain("\n".join(lines) + "\n\n")


def _verdict(record: BenchmarkRecord) -> str:
    tone = "idle" if record.partial else _TONES.get(record.verdict, "idle")
    withheld = sum(row.ratio is None for row in record.rows)
    found = len(record.rows) - withheld
    said = f"{found} {'row' if found == 1 else 'rows'} measured" + (f", {withheld} withheld" if withheld else "")
    lines = [f"<p>{in_html(record.message or said)}</p>"] if record.message == said else [f"<p>{in_html(said)}.</p>"]
    if record.message and record.cause != "interrupted":
        lines.append(f"<p>{in_html(record.message)}</p>")
    lines += [f'<p class="next">{in_html(note)}</p>' for note in record.notes]
    return f'<div class="verdict {tone}"><h1>{in_html(headline(record))}</h1>{"".join(lines)}</div>'


def _inline(record: BenchmarkRecord) -> str:
    """Return the picture in the page's own colours, which follow the reader's light or dark screen."""
    svg = bars.svg(record)
    svg = svg[svg.index("<svg") :]
    for colour, of_page in bars.COLOURS_OF_PAGES.items():
        svg = svg.replace(f'"{colour}"', f'"var(--{of_page})"')
    return svg


def _has_models(record: BenchmarkRecord) -> bool:
    return any(row.mode != "kernel" for row in record.rows)


def _rows(record: BenchmarkRecord, name: str, rows: Sequence[Row]) -> str:
    most = max([row.ratio.high for row in rows if row.ratio] or [1.0]) * 1.05
    body = [_row(row, most) for row in rows]
    columns = ("row", "mode", "times the CPU", "", "CPU step", "device step", "first step", "reaches", "")
    numbers = {"times the CPU", "CPU step", "device step", "first step", "reaches"}
    return _section(name, table(columns, body, numbers=numbers), rows)


def _row(row: Row, most: float) -> str:
    times = [_time(row.seconds.get(side)) for side in ("cpu", "device")]
    first = _time(row.first_step_seconds.get("device"))
    tone = "idle" if row.outcome == "measured" else "bad"
    doubt = f'<span class="tag {tone}">{in_html(doubts(row))}</span>' if doubts(row) else ""
    reaches = in_html(achieved(row)).replace(", ", "<br>")
    reduced = f"<small>reduced: {in_html(row.reduced)}</small>" if row.reduced else ""
    return (
        f'<tr><td class="name">{in_html(title(row))}'
        f"<small>{in_html(shape(row))}, {in_html(dtypes(row))}</small>{reduced}"
        f'</td><td>{in_html(row.mode)}</td><td class="number">{in_html(ratio(row))}</td>'
        f'<td class="range">{_range(row, most)}</td>'
        f'<td class="number">{times[0]}</td><td class="number">{times[1]}</td>'
        f'<td class="number">{first}</td><td class="number">{reaches}</td><td>{doubt}</td></tr>'
    )


def _range(row: Row, most: float) -> str:
    if row.ratio is None:
        return ""
    low, middle, high = (100 * value / most for value in (row.ratio.low, row.ratio.median, row.ratio.high))
    return (
        f'<div class="scale"><i style="left:{low:.1f}%;width:{max(high - low, 0.5):.1f}%"></i>'
        f'<b style="left:{middle:.1f}%"></b></div>'
    )


def _time(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def _doubts(record: BenchmarkRecord) -> str:
    rows = [
        f"<tr><td>{in_html(title(row))} {in_html(row.mode)}</td><td><span class='tag bad'>{in_html(name)}</span></td>"
        f'<td class="what">{in_html(text)}</td></tr>'
        for row in record.rows
        for name, text in _said(row)
    ]
    rows += [
        f"<tr><td>the whole run</td><td><span class='tag bad'>{in_html(flag.id)}</span></td>"
        f'<td class="what">{in_html(flag.text)}</td></tr>'
        for flag in record.flags
    ]
    return _section("Doubts", table(("row", "doubt", "what"), rows), rows)


def _said(row: Row) -> Iterator[tuple[str, str]]:
    yield from ((flag.id, flag.text) for flag in row.flags)
    if row.reason:
        yield row.outcome, row.reason
    yield from (("lowered", f"not enough memory: {text}") for text in row.lowered)


def _ceilings(record: BenchmarkRecord) -> str:
    rows = []
    for name, value in sorted(record.ceilings.items()):
        unit, _, dtype = name.partition(".")
        is_flops = unit == "flops_per_second"
        shown = f"{value / 1e12:.3g} TFLOP/s" if is_flops else f"{value / 1e9:.4g} GB/s"
        what = f"matrix product, {dtype}" if is_flops else "copy, read and written both counted"
        how = record.ceilings_of.get(name, "")
        rows.append(f'<tr><td>{what}</td><td class="number">{shown}</td><td class="what">{in_html(how)}</td></tr>')
    body = table(("operation", "at most", "how"), rows, numbers=("at most",)) + _WINOGRAD
    return _section("What this device reaches at most, as its own libraries show it", body, rows)


def _pairs(record: BenchmarkRecord) -> list[str]:
    threads = f"{record.cpu.get('threads')} threads on {record.cpu.get('cores')} cores" if record.cpu else ""
    found = [*facts(record), ("CPU", threads), *_thermal(record)]
    return [f"<dt>{in_html(name)}</dt><dd>{in_html(value)}</dd>" for name, value in found if value]


def _thermal(record: BenchmarkRecord) -> Iterator[tuple[str, str]]:
    for when in ("before", "after"):
        state = record.thermal.get(when)
        if isinstance(state, dict):
            said = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in state.items() if value is not None)
            yield f"heat and power {when}", said or "the system said nothing"
        elif state:
            yield f"heat and power {when}", str(state)


def _skipped(record: BenchmarkRecord) -> str:
    rows = [
        f"<tr><td>{in_html(s.name)} {in_html(s.mode)}</td><td>{in_html(s.reason)}</td></tr>" for s in record.skipped
    ]
    why = "interrupted before it" if record.partial else "the run stopped before it"
    rows += [f"<tr><td>{in_html(name.replace(':', ' '))}</td><td>{why}</td></tr>" for name in record.missing]
    return table(("row", "why"), rows)


def _section(name: str, content: str, rows: Sequence[object]) -> str:
    return section(name, content) if rows else ""
