"""Rule 4: functions without a rule of their own under autocast: operands of its dtype, of float32, and of both.

index_put of bfloat16 raised, https://github.com/pytorch/pytorch/issues/132715; vector_norm of one float16 number,
https://github.com/pytorch/pytorch/issues/125174
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F

from device_suite import Cases
from device_suite.answers import attempt
from device_suite.limits import ONCE

cases = Cases("conditions")
Form = Callable[..., Any]

_CALLED: dict[str, Form] = {
    "index_put": lambda x, y, i: x.clone().index_put_((i,), y[:3].to(x.dtype)),
    "index_put-added": lambda x, y, i: x.index_put((i,), y[:3].to(x.dtype), accumulate=True),
    "assigned": lambda x, y, i: [z := x.clone(), z.__setitem__(i, y[:3].to(x.dtype))][0],
    "index_add": lambda x, y, i: x.index_add(0, i, y[:3].to(x.dtype)),
    "index_copy": lambda x, y, i: x.index_copy(0, i, y[:3].to(x.dtype)),
    "scatter": lambda x, y, i: x.scatter(0, i[:, None].expand(3, 4), y[:3].to(x.dtype)),
    "scatter_add": lambda x, y, i: x.scatter_add(0, i[:, None].expand(3, 4), y[:3].to(x.dtype)),
    "gather": lambda x, y, i: x.gather(0, i[:, None].expand(3, 4)),
    "where": lambda x, y, i: torch.where(y > 0, x, y),
    "cat": lambda x, y, i: torch.cat([x, y]),
    "stack": lambda x, y, i: torch.stack([x, y]),
    "vector_norm": lambda x, y, i: [torch.linalg.vector_norm(x[:1, :1]), torch.linalg.vector_norm(x), x[0, :1].norm()],
    "matrix_norm": lambda x, y, i: [torch.linalg.matrix_norm(x), torch.norm(x, dim=1), x.norm(1)],
    "normalize": lambda x, y, i: [F.normalize(x, dim=1), F.cosine_similarity(x, y), F.pairwise_distance(x, y)],
    "sums": lambda x, y, i: [x.sum(), x.mean(0), x.cumsum(0), x.prod(), x.logsumexp(0), x.softmax(0), x.var(0)],
    "pointwise": lambda x, y, i: [x + y, x * y, x.exp(), x.pow(2), torch.lerp(x, x * 2, 0.5), x.clamp(-1, 1)],
    "addmm": lambda x, y, i: [
        torch.addmm(x, x, y),
        torch.baddbmm(x[None], x[None], y[None]),
    ],
    "products": lambda x, y, i: [
        x @ y,
        torch.einsum("ab,cb->ac", x, y),
        torch.bmm(x[None], y[None]),
        F.linear(x, y, x[0]),
    ],
    "bilinear": lambda x, y, i: F.bilinear(x, x, x[None], x[0, :1]),
    "layer_norm": lambda x, y, i: [F.layer_norm(x, (4,)), F.group_norm(x[None], 2), F.rms_norm(x, (4,))],
    "losses": lambda x, y, i: [
        F.mse_loss(x, y),
        F.l1_loss(x, y),
        F.cross_entropy(x, i[[0, 1, 2, 0]] % 4),
        F.kl_div(x, y),
    ],
    "pooled": lambda x, y, i: [F.avg_pool1d(x[None], 2), F.interpolate(x[None], scale_factor=2.0), F.pad(x, (1, 1))],
    "dropped": lambda x, y, i: [F.dropout(x, 0.0), F.embedding(i, x), F.embedding_bag(i[None], x, mode="sum")],
    "attended": lambda x, y, i: F.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None], y > 0),
    "glued": lambda x, y, i: [F.glu(x), F.silu(x), F.gelu(x), F.leaky_relu(x), F.prelu(x, x[0, :1].abs())],
}


def _each_cast(to: torch.dtype, run: Any, x: torch.Tensor, y: torch.Tensor, i: torch.Tensor) -> Any:
    def answer(form: Form, given: torch.dtype) -> Any:
        with torch.autocast(run.device.type, to, enabled=not run.precise):
            return form(x.to(run.cast(given)), y, i)

    return {
        f"{name}-{str(given)[6:]}": attempt(lambda form=form, given=given: answer(form, given))
        for name, form in _CALLED.items()
        for given in (torch.float32, to)
    }


for _to in (torch.bfloat16, torch.float16):
    cases.add(
        f"condition-limit-autocast-others-{str(_to)[6:]}",
        lambda run, *operands, to=_to: _each_cast(to, run, *operands),
        make=lambda d: (
            d.integers(-4, 5, 4, 4).float() / 4,
            d.integers(1, 5, 4, 4).float() / 4,
            torch.tensor([2, 0, 3]),
        ),
        terms=16,
        factor=16.0,
        floor=4.0,
        since="2.6",
        states=ONCE,
        may_be_missing=True,
        autocast=_to,
    )
