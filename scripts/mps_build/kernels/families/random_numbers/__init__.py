"""Random numbers, and what takes them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...program.dtypes import DTYPES
from ...program.launch import Growth, Program, Reference, View
from ..shared.contracts import Case, Kernel
from ..shared.tensors import bound, error_buffer, filled, groups, growing, no_error, numbered, result, started, threads

# Seed, and the first index: words of 32 bits are carried over in both.
STREAMS = ((0x1234567890ABCDEF, 0), (7, (1 << 32) - 20), (-3 & 0x7FFFFFFFFFFFFFFF, 1 << 40))


COUNT = 403  # not a multiple of what a thread draws


MANY = 4096


# Of each distribution: its two parameters, once for each stream.
PARAMETERS: dict[str, tuple[tuple[float, float], ...]] = {
    "uniform": ((0.0, 1.0), (-3.0, 2.5), (100.0, 101.0)),
    "normal": ((0.0, 1.0), (1.5, 0.25), (-8.0, 3.0)),
    "log_normal": ((0.0, 0.5), (-1.0, 0.25), (1.0, 1.0)),
    "cauchy": ((0.0, 1.0), (2.0, 0.5), (-1.0, 2.0)),
    "exponential": ((1.0, 0.0), (0.25, 0.0), (8.0, 0.0)),
    "geometric": ((math.log1p(-0.5), 0.0), (math.log1p(-0.25), 0.0), (math.log1p(-0.9), 0.0)),
    "bernoulli": ((0.5, 0.0), (0.125, 0.0), (0.9, 0.0)),
}


def elements(kernel: Kernel, case: Case) -> Iterator[Program]:
    """Four numbers a thread (two of 64 bits); params has the distribution's two parameters."""
    name = kernel.parts["kind"].removesuffix("_scalar").removesuffix("_dist")
    dtype = kernel.dtype("output")
    rows: tuple[tuple[float, float], ...] = PARAMETERS.get(name) or _spans(kernel)
    for (seed, base), (one, two) in zip(STREAMS, rows, strict=True):
        out = result(dtype, (COUNT,))
        bits, alone = 64 if dtype.size == 8 and name == "random_int" else 32, not kernel.has("numel")
        values = {"output": out, "params": (one, two), "seed_base_offset": (seed, base), "numel": COUNT}
        inputs: dict[str, object] = {"kind": name, "seed": seed, "base": base, "count": COUNT, "one": one, "two": two}
        scale = 2.0**-19 * (abs(one) + abs(two)) if name in ("uniform", "normal", "cauchy") else 0.0
        check = Reference(got=out, name="drawn", inputs=inputs | {"bits": bits, "alone": alone}, scale=scale)
        step = threads(kernel, bound(kernel, values), (_threads(kernel, bits),))
        yield Program(label=f"{name}({one}, {two}), seed {seed}, from {base}", steps=[step], checks=[check])


def _threads(kernel: Kernel, bits: int) -> int:
    """Four numbers a thread; one where the kernel does not know how many there are (up to 2.12)."""
    return -(-COUNT // (2 if bits == 64 else 4)) if kernel.has("numel") else COUNT


def _spans(kernel: Kernel) -> tuple[tuple[float, float], ...]:
    """First number, and how many; 0 means every word."""
    dtype = kernel.dtype("output")
    if dtype.name == "bool":
        return ((0, 2), (0, 2), (0, 2))
    if not dtype.is_exact:
        return ((0, 100), (-60, 121), (-5, 3))
    low = 0 if dtype.kind == "unsigned" else -100
    return ((0, 100), (low, 117), (0, 0) if dtype.size >= 4 else (low, 201))


def bernoulli_each(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`bernoulli_tensor`: a chance for each element; chances that are none are reported."""
    dtype, kind = kernel.dtype("output"), kernel.dtype("probs")
    for seed, base in STREAMS:
        chances = [0.0, 1.0, *(case.values.integers(COUNT - 2, 0, 64))]
        probabilities = numbered(kind, [each if each in (0.0, 1.0) else each / 64 for each in chances])
        out, error = result(dtype, (COUNT,)), error_buffer()
        values = {"output": out, "probs": probabilities, "seed_base_offset": (seed, base), "numel": COUNT}
        inputs = {"probabilities": probabilities, "seed": seed, "base": base}
        check = Reference(got=out, name="drawn_bernoulli_each", inputs=inputs)
        step = threads(kernel, bound(kernel, {**values, "error_buf": error}), (-(-COUNT // 4),))
        yield Program(label=f"seed {seed}, from {base}", steps=[step], checks=[check, no_error(error)])


def dropout(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`dropout_fwd`: params (chance to stay, factor)."""
    dtype = kernel.dtype("input")
    for (seed, base), chance in zip(STREAMS, (0.5, 0.875, 0.25), strict=True):
        x, out, mask = filled(case, dtype, (COUNT,)), result(dtype, (COUNT,)), result(DTYPES["bool"], (COUNT,))
        values = {"input": x, "output": out, "mask": mask, "params": (chance, 1 / chance), "numel": COUNT}
        inputs: dict[str, object] = {"seed": seed, "base": base, "chance": chance}
        checks = [
            Reference(got=out, name="drawn_dropout", inputs={**inputs, "x": x, "scale": 1 / chance}),
            Reference(got=mask, name="drawn_mask", inputs={**inputs, "count": COUNT}),
        ]
        step = threads(kernel, bound(kernel, {**values, "seed_base_offset": (seed, base)}), (-(-COUNT // 4),))
        yield Program(label=f"{chance} stay, seed {seed}, from {base}", steps=[step], checks=checks)


def poisson(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`poisson`: small rates exactly; rates from 10 on are drawn by rejection, and judged by their moments."""
    kind = kernel.dtype("lambda_in")
    for seed, base in STREAMS[:2]:
        rates = numbered(kind, [0.0, 9.5, *(each / 4 for each in case.values.integers(200, 0, 39))])
        out = result(kernel.dtype("output"), rates.shape)
        values = {"output": out, "lambda_in": rates, "seed_base_offset": (seed, base)}
        inputs = {"rates": rates, "seed": seed, "base": base, "apart": 32}
        check = Reference(got=out, name="drawn_poisson", inputs=inputs)
        step = threads(kernel, bound(kernel, values), (rates.count,))
        yield Program(label=f"rates below 10, seed {seed}, from {base}", steps=[step], checks=[check])
    rows = ((4.0, 4.0, 4.0, 52.0), (12.0, 12.0, 12.0, 444.0), (100.0, 100.0, 100.0, 30100.0))
    yield _moments(kernel, "lambda_in", [row[0] for row in rows], rows, (0.0, 2000.0))


def gamma(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`standard_gamma`: mean and variance are alpha."""
    alphas = (0.25, 1.0, 3.5, 40.0)
    rows = [(a, a, a, 3 * a * a + 6 * a) for a in alphas]
    yield _moments(kernel, "alpha_in", alphas, rows, (0.0, 3e38))


def binomial(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`standard_binomial`: few and many trials, small and large chances."""
    trials, chances = (10.0, 20.0, 200.0, 120.0), (0.5, 0.125, 0.25, 0.875)
    rows = []
    for n, p in zip(trials, chances, strict=True):
        variance = n * p * (1 - p)
        rows.append((n * p, n * p, variance, variance * (1 + (3 * n - 6) * p * (1 - p))))
    yield _moments(kernel, "count_in", trials, rows, (0.0, 200.0), {"prob_in": chances})
    count, kind = numbered(kernel.dtype("count_in"), [0.0, 5.0, 7.0]), kernel.dtype("prob_in")
    out = result(kernel.dtype("output"), (3,))
    values = {"output": out, "count_in": count, "prob_in": numbered(kind, [0.5, 0.0, 1.0]), "seed_base_offset": (5, 0)}
    check = Reference(got=out, name="nn_copy", inputs={"x": numbered(out.dtype, [0.0, 0.0, 7.0])})
    yield Program(label="no choice", steps=[threads(kernel, bound(kernel, values), (3,))], checks=[check])


def _moments(
    kernel: Kernel,
    argument: str,
    parameters: object,
    rows: object,
    limits: tuple[float, float],
    more: dict[str, tuple[float, ...]] | None = None,
) -> Program:
    """Rows of numbers with one parameter each, and the moments that they must have."""
    moments = [tuple(row) for row in rows]  # type: ignore[attr-defined]
    columns = {argument: parameters, **(more or {})}
    inputs = {
        name: numbered(kernel.dtype(name), [each for each in column for _ in range(MANY)])  # type: ignore[attr-defined]
        for name, column in columns.items()
    }
    out = result(kernel.dtype("output"), (len(moments), MANY))
    values = {"output": out, **inputs, "seed_base_offset": (0x1234567890ABCDEF, 3)}
    expected = {"mean": [row[1] for row in moments], "variance": [row[2] for row in moments]}
    expected |= {"fourth": [row[3] for row in moments]}
    check = Reference(got=out, name="drawn_moments", inputs={"x": out, **expected, "low": limits[0], "high": limits[1]})
    step = threads(kernel, bound(kernel, values), (out.count,))
    return Program(label=f"{len(moments)} x {MANY} numbers", steps=[step], checks=[check])


def dirichlet(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`standard_dirichlet`: a threadgroup a row of gammas, divided by their sum; each has 32 numbers of the stream."""
    for alphas, rows in (([0.5, 1.0, 2.5, 4.0], 2048), ([2.0] * 2100, 4)):
        total, count = sum(alphas), len(alphas)
        out = result(kernel.dtype("output"), (rows, count))
        source = numbered(kernel.dtype("alpha_in"), alphas * rows)
        values = {"output": out, "alpha_in": source, "seed_base_offset": (99, STREAMS[-1][1]), "num_alpha": count}
        # Numbers with one parameter are of one distribution, wherever they stand.
        kinds = len(set(alphas))
        turned = View(buffer=out.buffer, dtype=out.dtype, shape=(kinds, rows * count // kinds), strides=(1, kinds))
        mean = [a / total for a in alphas[:kinds]]
        variance = [a * (total - a) / (total * total * (total + 1)) for a in alphas[:kinds]]
        inputs = {"x": turned, "mean": mean, "variance": variance, "fourth": [4 * v * v for v in variance]}
        check = Reference(got=turned, name="drawn_moments", inputs={**inputs, "low": 0.0, "high": 1.0})
        # Rows further on draw the same numbers if the stream begins earlier. Of short rows no grid has so many threads.
        growth = Growth(
            groups=1,
            bytes={"output": count * out.dtype.size, "alpha_in": count * source.dtype.size},
            words={"seed_base_offset": growing(kernel, "seed_base_offset", (0, -32 * count))},
        )
        step = groups(kernel, bound(kernel, values), (rows,), (min(count, 1024),))
        label = f"{rows} rows of {count}"
        yield Program(label=label, steps=[step], checks=[check], growth=growth if count > 1024 else None)


def shuffled(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`randperm_small`: one threadgroup, and at most 384 numbers."""
    for (seed, base), count in zip(STREAMS, (1, 77, 384), strict=True):
        out = result(kernel.dtype("output"), (count,))
        values = {"output": out, "seed_base_offset": (seed, base), "n": count}
        check = Reference(got=out, name="drawn_shuffle", inputs={"seed": seed, "base": base, "count": count})
        yield Program(
            label=f"{count} numbers",
            steps=[groups(kernel, bound(kernel, values), (1,), (min(count, 256),))],
            checks=[check],
        )


def islands(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`randperm_dedup_islands`: values with equal keys are shuffled among themselves."""
    for (seed, base), count in zip(STREAMS, (1, 40, 300), strict=True):
        keys = sorted(case.values.integers(count, 0, count // 2))
        x, kind = numbered(kernel.dtype("data"), list(range(count))), kernel.dtype("keys")
        marks, data = numbered(kind, keys), started(x)
        values = {"data": data, "keys": marks, "seed_base_offset": (seed, base), "n": count}
        inputs = {"data": x, "keys": marks, "seed": seed, "base": base}
        check = Reference(got=data, name="drawn_islands", inputs=inputs)
        step = threads(kernel, bound(kernel, values), (count,))
        yield Program(label=f"{count} keys", steps=[step], checks=[check])
