"""The words that every report uses for a row of a benchmark."""

from __future__ import annotations

from mps_build.common.records.benchmark import BenchmarkRecord, Row

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
