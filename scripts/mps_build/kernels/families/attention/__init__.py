"""Attention: by one query, in two passes, in blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ...program.dtypes import DTYPES, DType
from ...program.launch import NotBound, Program, Reference, Value, View, scratch_buffer
from ..shared.contracts import Case, Kernel
from ..shared.tensors import filled, groups, result, strides_of

SHAPES = (
    (1, 2, 2, 1, 5, 0), (2, 2, 1, 3, 67, 0), (1, 3, 3, 2, 40, 1), (2, 2, 2, 3, 33, 1), (1, 2, 2, 4, 17, 2),
)  # fmt: skip
# Torch takes two passes from 1024 keys on.
LONG = (1, 2, 2, 2, 1031, 0)


def _mask(case: Case, kind: str, dtype: DType, shape: tuple[int, int, int, int]) -> View | None:
    if kind == "none":
        return None
    if kind.startswith("bool"):
        view = filled(case, DTYPES["bool"], shape, low=0, high=1)
        data = bytearray(view.buffer.data)
        data[:: shape[-1]] = b"\1" * len(data[:: shape[-1]])  # a row without any key has no right answer
        return View(
            buffer=type(view.buffer)(size=len(data), role="input", data=bytes(data)), dtype=view.dtype, shape=shape
        )
    return filled(case, dtype, shape)


def vector(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`sdpa_vector_K_V`: a threadgroup of 1024 for each query of each head; mask strides (key, query, head, batch)."""
    return _vector(kernel, case, SHAPES[:3] if case.is_quick else SHAPES)


def _vector(kernel: Kernel, case: Case, shapes: Sequence[tuple[int, int, int, int, int, int]]) -> Iterator[Program]:
    dtype, d, dv = kernel.dtype("queries"), int(kernel.parts["d"]), int(kernel.parts["dv"])
    if d != dv:
        raise NotBound(f"values of {dv} beside keys of {d}")
    # Up to 2.11 a flag says whether there is a mask; batches and heads are one dimension.
    has_flag = kernel.has("has_mask")
    kind, causal = kernel.parts.get("mask", "bool"), bool(kernel.parts.get("causal"))
    # Batch, heads of the queries, heads of the keys, queries, keys; whether the mask is the same for all heads.
    for b, h, hk, q_len, k_len, shared in shapes:
        if has_flag and b > 1 and h != hk:
            continue
        q = filled(case, dtype, (b, h, q_len, d))
        gap = 8 if k_len < LONG[4] else 0
        k = filled(case, dtype, (b, hk, k_len, d), strides=(hk * k_len * (d + gap), k_len * (d + gap), d + gap, 1))
        v = filled(case, dtype, (b, hk, k_len, dv))
        mask = _mask(case, kind, dtype, (b, 1 if shared else h, 1 if shared == 2 else q_len, k_len))
        mask = _expanded(mask, (b, h, q_len, k_len)) if mask else None
        out = result(dtype, (b, h, q_len, dv))
        strides = [strides_of(each) for each in (q, k, v)]
        m = strides_of(mask) if mask else (0, 0, 0, 0)
        arguments: dict[str | int, Value] = {
            "queries": q.buffer,
            "keys": k.buffer,
            "values": v.buffer,
            "out": out.buffer,
            "gqa_factor": kernel.pack("gqa_factor", h // hk),
            "N": kernel.pack("N", k_len),
            "qkv_head_strides": kernel.pack("qkv_head_strides", [each[1] for each in strides]),
            "qkv_seq_strides": kernel.pack("qkv_seq_strides", [each[2] for each in strides]),
            "scale": kernel.pack("scale", 0.125),
            "mask": mask.buffer if mask else None,
            "mask_strides": kernel.pack(
                "mask_strides", [m[at] for at in kernel.options.get("mask_strides", (3, 2, 1, 0))]
            ),
        }
        if has_flag:
            arguments["has_mask"] = kernel.pack("has_mask", mask is not None)
        else:
            batches = [*(each[0] for each in strides), h]
            arguments["qkv_batch_strides_heads"] = kernel.pack("qkv_batch_strides_heads", batches)
        inputs = {"q": q, "k": k, "v": v, "mask": mask or 0, "causal": causal, "factor": 0.125}
        check = Reference(got=out, name="nn_attention", inputs=inputs, scale=2.0**-19)
        steps = [groups(kernel, arguments, (b * h, q_len), (1024,))]
        yield Program(label=f"{b} x {h} heads of {hk}, {q_len} queries, {k_len} keys", steps=steps, checks=[check])


def _expanded(mask: View, shape: tuple[int, ...]) -> View:
    """The mask as it is seen by all heads and queries: strides of 0 where it has one."""
    strides = [s if n == w else 0 for n, w, s in zip(mask.shape, shape, strides_of(mask), strict=True)]
    return replace(mask, shape=shape, strides=tuple(strides))


def blocks(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`attention_bq…` up to 2.12: a threadgroup for `bq` queries of a head, without a mask; NK blocks of keys.

    Each thread of a threadgroup computes all of its block: one block of queries is whole, the others are short.
    """
    dtype, parts = kernel.dtype("Q"), kernel.parts
    d, bq, bk = int(parts["bd"]), int(parts["bq"]), int(parts["bk"])
    for b, h, hk, q_len, k_len in (
        (1, 1, 1, bq + 1, bk + 1),
        (1, 2, 1, 5, 2 * bk - 3),
        (2, 1, 1, 3, bk),
        (1, 3, 3, 5, 7),
    ):
        q, k = filled(case, dtype, (b, h, q_len, d)), filled(case, dtype, (b, hk, k_len, d))
        v, out = filled(case, dtype, (b, hk, k_len, d)), result(dtype, (b, h, q_len, d))
        arguments: dict[str | int, Value] = {"Q": q.buffer, "K": k.buffer, "V": v.buffer, "O": out.buffer}
        constants: dict[str, object] = {"qL": q_len, "kL": k_len, "gqa_factor": h // hk, "scale": 0.125}
        constants["NK"] = -(-k_len // bk)
        for name, view in (("Q", q), ("K", k), ("V", v), ("O", out)):
            constants[f"{name}_strides"] = list(strides_of(view)[:3])
        arguments |= {name: kernel.pack(name, value) for name, value in constants.items()}
        inputs = {"q": q, "k": k, "v": v, "mask": 0, "causal": False, "factor": 0.125}
        # Scaled queries and weights are rounded to the element type (values up to 2); float adds up 256 terms.
        scale = {"half": 2.0**-10, "bfloat": 2.0**-7}.get(dtype.name, 2.0**-17)
        check = Reference(got=out, name="nn_attention", inputs=inputs, scale=scale)
        steps = [groups(kernel, arguments, (-(-q_len // bq), h, b), (32, int(parts["wm"]), int(parts["wn"])))]
        yield Program(label=f"{b} x {h} heads of {hk}, {q_len} queries, {k_len} keys", steps=steps, checks=[check])


def prefill(kernel: Kernel, case: Case) -> Iterator[Program]:
    """A threadgroup for `bq` queries of a head; strides (batch, head, row), of the mask (batch, head, query, key)."""
    dtype, parts = kernel.dtype("Q"), kernel.parts
    d, bq = int(parts["bd"]), int(parts["bq"])
    for b, h, hk, q_len, k_len in ((1, 2, 1, 37, 45), (2, 1, 1, 32, 64)):
        q, k = filled(case, dtype, (b, h, q_len, d)), filled(case, dtype, (b, hk, k_len, d))
        v = filled(case, dtype, (b, hk, k_len, d))
        has_mask = parts["hm"] == "1"
        mask = _mask(case, parts["mask"] if has_mask else "none", dtype, (b, h, q_len, k_len))
        out = result(dtype, (b, h, q_len, d))
        params = {"B": b, "H": h, "D": d, "qL": q_len, "kL": k_len, "gqa_factor": h // hk, "scale": 0.125}
        params |= {"softcapping": 1.0}
        strides = {f"{n}_strides": list(strides_of(each)[:3]) for n, each in (("Q", q), ("K", k), ("V", v), ("O", out))}
        arguments: dict[str | int, Value] = {
            "Q": q.buffer,
            "K": k.buffer,
            "V": v.buffer,
            "O": out.buffer,
            "params": kernel.pack("params", {**params, **strides}),
            "mask_params": kernel.pack("mask_params", {"M_strides": strides_of(mask) if mask else [0, 0, 0, 0]}),
            "mask": mask.buffer if mask else None,
        }
        inputs = {"q": q, "k": k, "v": v, "mask": mask or 0, "causal": parts["dc"] == "1", "factor": 0.125}
        # Scaled queries and weights are rounded to the element type (values up to 2); float adds up 256 terms. A score
        # is a sum of as many rounded queries as a head is wide.
        scale = {"half": 2.0**-10, "bfloat": 2.0**-7}.get(dtype.name, 2.0**-17) * max(1.0, d / 128)
        check = Reference(got=out, name="nn_attention", inputs=inputs, scale=scale)
        steps = [groups(kernel, arguments, (-(-q_len // bq), h, b), (32, int(parts["wm"]), int(parts["wn"])))]
        yield Program(label=f"{b} x {h} heads of {hk}, {q_len} queries, {k_len} keys", steps=steps, checks=[check])


BLOCKS = 32


def two_passes(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`2pass_1`: each of 32 threadgroups has a part of the keys; `2pass_2` puts the parts together."""
    second = case.first_companion(kernel)
    for program in _vector(kernel, case, [LONG, *(SHAPES[:3] if case.is_quick else SHAPES)]):
        (step,), (check,) = program.steps, program.checks
        assert isinstance(check, Reference)
        b, h, q_len, dv = check.got.shape
        partials = result(kernel.dtype("out"), (b * h * q_len * BLOCKS, dv))
        small = [scratch_buffer(b * h * q_len * BLOCKS * 4) for _ in range(2)]
        part = scratch_buffer(partials.buffer.size)
        parts: dict[str | int, Value] = {"sums": small[0], "maxs": small[1]}
        first = groups(kernel, {**step.arguments, **parts, "out": part}, (b * h, q_len, BLOCKS), (256,))
        put = groups(second, {**parts, "partials": part, "out": check.got.buffer}, (b * h, q_len), (1024,))
        # The first pass rounds its parts to the element type.
        rounded = {"half": 2.0**-10, "bfloat": 2.0**-7}.get(kernel.dtype("queries").name, 0.0)
        bound = replace(check, scale=check.scale + rounded)
        yield replace(program, steps=[first, put], checks=[bound])


def put_together(kernel: Kernel, case: Case) -> Iterator[Program]:
    """`2pass_2`: partial sums of 32 blocks, each relative to its own maximum."""
    dtype, d = kernel.dtype("partials"), int(kernel.parts["d"])
    for heads, q_len in ((1, 1), (3, 2)):
        partials = filled(case, dtype, (heads * q_len, BLOCKS, d))
        sums = filled(case, DTYPES["float"], (heads * q_len, BLOCKS), low=0.5, high=9.0)
        maxs = filled(case, DTYPES["float"], (heads * q_len, BLOCKS))
        out = result(kernel.dtype("out"), (heads * q_len, d))
        arguments: dict[str | int, Value] = {
            "partials": partials.buffer,
            "sums": sums.buffer,
            "maxs": maxs.buffer,
            "out": out.buffer,
        }
        inputs = {"partials": partials, "sums": sums, "maxs": maxs}
        check = Reference(got=out, name="nn_attention_parts", inputs=inputs, scale=2.0**-20)
        steps = [groups(kernel, arguments, (heads, q_len), (1024,))]
        yield Program(label=f"{heads} heads, {q_len} queries", steps=steps, checks=[check])
