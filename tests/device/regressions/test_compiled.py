"""Regressions in torch.compile: by the Metal back end on MPS; the rehearsal compiles for real only with --full."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from engine import Cases
from engine.acts import backward, leaf

cases = Cases("regressions")


def _compiled(function: Any, run: Any, backend: str) -> Any:
    if run.precise:
        return function
    if hasattr(torch, "_dynamo"):
        torch._dynamo.reset()
    return torch.compile(function, backend=backend)


def _broadcast(backend: str) -> Any:
    def act(run: Any, a: Any, b: Any) -> Any:
        function = _compiled(lambda x, y: (x[:, None] - y[None, :]).abs().sum(), run, backend)
        return function(a[:, 0], b[:, 0]), function(a[:, 1], b[:, 2])

    return act


def _normalise(backend: str) -> Any:
    def act(run: Any, *rows: Any) -> Any:
        answers = []
        for x in rows:
            function = _compiled(lambda y, width=x.shape[-1]: F.layer_norm(y, (width,)), run, backend)
            with torch.inference_mode():
                answers.append(function(x))
        return answers

    return act


def _train(backend: str) -> Any:
    def act(run: Any, x: Any, w: Any, scale: Any, shift: Any) -> Any:
        def block(image: Any, kernel: Any, gain: Any, offset: Any) -> Any:
            return torch.relu(F.batch_norm(F.conv2d(image, kernel, padding=1), None, None, gain, offset, training=True))

        learned = [leaf(one) for one in (w, scale, shift)]
        return backward(_compiled(block, run, backend)(x, *learned), *learned)

    return act


_MAKES = {
    "170360": (_broadcast, lambda d: (d.normal(32 + d.k, 3), d.normal(64, 3)), 2048),
    "191976": (_normalise, lambda d: tuple(d.normal(4, width + d.k) for width in (64, 512, 1024)), 1024),
    "161905": (_train, lambda d: (d.normal(2, 3, 6, 6 + d.k), d.normal(4, 3, 3, 3), d.normal(4), d.normal(4)), 4096),
}
for _issue, (_build, _make, _terms) in _MAKES.items():
    # torch.compile came with 2.0, its Metal back end with 2.7.
    cases.add(
        f"issue-{_issue}",
        _build("inductor"),
        issue=_issue,
        make=_make,
        terms=_terms,
        since="2.7",
        devices=("mps",),
        limit_seconds=180,
    )
    cases.add(
        f"issue-{_issue}-traced",
        _build("eager"),
        issue=_issue,
        make=_make,
        terms=_terms,
        since="2.1",
        devices=("cpu", "cuda"),
        states=("fresh", "again"),
        limit_seconds=180,
    )
    cases.add(
        f"issue-{_issue}-rehearsed",
        _build("inductor"),
        issue=_issue,
        make=_make,
        terms=_terms,
        since="2.7",
        full=True,
        devices=("cpu", "cuda"),
        states=("fresh", "again"),
        limit_seconds=300,
    )
