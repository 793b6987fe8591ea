"""pytorch#82707: the parts of a BERT fine-tuning step, each against the CPU (cases T1 to T6 and T8 to T10)."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases, bert
from device_suite.acts import parameters_and_state

cases = Cases("transformers")
# Gradients of an embedding are added up in any order on a GPU: two calls may differ in the last bits.
# A whole network adds up thousands of products: K of the bound. A planted one per cent is far above it.
DEEP = 4096
# Two units in the last place at every operator's result carry a logit past the usual bound: rounding.py.
FAR = 12.0


def _model_and_batch(d: Any) -> Any:
    return bert.draw_weights(d), bert.draw_batch(d, rows=4 + d.k, length=12 + d.k)


@cases.case(
    "82707-t1-logits-at-three-lengths",
    issue="82707",
    terms=DEEP,
    factor=FAR,
    make=lambda d: (bert.draw_weights(d), [bert.draw_batch(d, rows=3 + d.k, length=n) for n in (12, 24, 7, 12)]),
)
def _logits_at_three_padded_lengths(weights: Any, batches: Any) -> Any:
    return [bert.logits(weights, ids, types, mask) for ids, types, mask, _ in batches]


@cases.case(
    "82707-t2-every-gradient", issue="82707", terms=DEEP, factor=FAR, deterministic=False, make=_model_and_batch
)
def _every_named_gradient_of_the_first_step(weights: Any, batch: Any) -> Any:
    w = bert.trainable(weights)
    ids, types, mask, labels = batch
    loss = F.cross_entropy(bert.logits(w, ids, types, mask), labels)
    loss.backward()
    return loss, bert.gradients(w)


@cases.case(
    "82707-t3-embeddings-frozen",
    issues=("82707", "183825"),
    terms=DEEP,
    factor=FAR,
    deterministic=False,
    make=_model_and_batch,
)
def _the_first_layer_norm_has_an_input_without_gradient(weights: Any, batch: Any) -> Any:
    w = bert.trainable(weights)
    ids, types, mask, labels = batch
    with torch.no_grad():
        x = F.embedding(ids, w["words"]) + F.embedding(types, w["types"])
    hidden = bert.encode(w, bert.normalise(w, "embedded", x), mask)
    loss = F.cross_entropy(bert.classify(w, hidden), labels)
    loss.backward()
    return loss, {name: grad for name, grad in bert.gradients(w).items() if name not in ("words", "types", "places")}


def _adamw(weights: Any, batches: Any, *, transposed: bool, **options: Any) -> Any:
    before = {name: tensor.clone() for name, tensor in weights.items()}
    if transposed:  # parameters that lie transposed in memory: their optimiser state does too
        weights = {n: t.t().contiguous().t() if t.dim() == 2 else t for n, t in weights.items()}
    w = bert.trainable(weights)
    optimiser = torch.optim.AdamW(list(w.values()), lr=0.02, weight_decay=0.1, **options)
    losses = []
    for ids, types, mask, labels in batches:
        optimiser.zero_grad()
        loss = F.cross_entropy(bert.logits(w, ids, types, mask), labels)
        loss.backward()
        optimiser.step()
        losses.append(loss.detach())
    # The table of token types has two rows and the places may be longer than the batch: those rows need not move.
    moved = [bool((w[name].detach() != before[name]).any()) for name in w if name not in ("types", "places")]
    # A key's bias moves no softmax: its gradient is rounding noise, and the second moment that squared.
    states = [
        kept if not name.endswith("key.bias") else kept[:1] for name, kept in zip(w, parameters_and_state(optimiser))
    ]
    return losses[0], moved, states


def _steps(d: Any) -> Any:
    return bert.draw_weights(d, layers=1, width=16, inner=32), [
        bert.draw_batch(d, rows=4 + d.k, length=8) for _ in range(2)
    ]


# Adam divides by the root of the second moment: after one step every element moves by lr whatever its gradient,
# so an element whose gradient is rounding noise may go either way. Its floor is the learning rate.
for _name, _options, _since in (
    ("single", {"foreach": False}, "1.12"),
    ("foreach", {"foreach": True}, "1.12"),
    ("fused", {"fused": True}, "2.5"),
):
    for _transposed in (False, True):
        cases.add(
            f"82707-t4-adamw-{_name}{'-transposed' if _transposed else ''}",
            lambda weights, batches, t=_transposed, o=_options: _adamw(weights, batches, transposed=t, eps=1e-3, **o),
            issue="82707",
            since=_since,
            terms=DEEP,
            deterministic=False,
            factor=64.0,
            make=_steps,
            may_be_missing=_name == "fused",
        )


@cases.case(
    "82707-t6-padding-row-and-ignored-labels",
    issues=("82707", "185119"),
    terms=DEEP,
    deterministic=False,
    make=_model_and_batch,
)
def _padding_row_gets_no_gradient_and_ignored_labels_no_loss(weights: Any, batch: Any) -> Any:
    w = bert.trainable(weights)
    ids, types, mask, _ = batch
    hidden = bert.encode(w, bert.embed(w, ids, types, padding=0), mask)
    tokens = F.linear(hidden, w["words"][:11], w["pool.bias"][:11])
    labels = torch.where(mask & (ids % 3 != 0), ids % 11, torch.full_like(ids, -100))
    loss = F.cross_entropy(tokens.view(-1, 11), labels.view(-1), ignore_index=-100)
    (loss * 8.0).backward()
    return loss, w["words"].grad, w["words"].grad[12:], w["types"].grad


@cases.case(
    "82707-t8-metrics",
    issues=("82707", "92311", "87753", "96614"),
    make=lambda d: (d.distinct(257 + d.k, 3), d.integers(0, 3, 257 + d.k)),
)
def _accuracy_and_f1_are_counted_right(logits: Any, labels: Any) -> Any:
    predicted = logits.argmax(-1)
    right = predicted == labels
    hits, named, meant = (predicted == 1) & (labels == 1), predicted == 1, labels == 1
    f1 = 2.0 * hits.sum().float() / (named.sum() + meant.sum()).float()
    return (
        predicted,
        right.sum(),
        right.float().mean(),
        f1,
        torch.bincount(predicted, minlength=3),
        right.long().cumsum(0),
    )


@cases.check("82707-t9-dropout", issues=("82707",))
def _dropout_keeps_its_share_and_its_mask(bench: Any) -> None:
    with bench.device_run() as run:
        run.seed(11)
        x = torch.ones(200, 300, device=run.device, requires_grad=True)
        y = F.dropout(x, 0.1, training=True)
        z = F.dropout(x.detach(), 0.1, training=True)
        y.sum().backward()
        grad, y, z = x.grad.cpu(), y.detach().cpu(), z.cpu()
    assert torch.equal(grad, y), "backward used another mask, or another scale, than forward"
    kept = y[y != 0]
    assert torch.allclose(kept, torch.full_like(kept, 1 / 0.9)), "what is kept is scaled by 1 / (1 - p)"
    share = kept.numel() / y.numel()
    assert abs(share - 0.9) < 0.01, f"kept {share:.3f} of the values, not 0.9"
    assert not torch.equal(y, z), "two draws gave the same mask"
    assert float((y != 0).float().mean(0).min()) > 0.75, "a column was dropped far too often"


@cases.case(
    "82707-t10-another-model-another-batch",
    issues=("82707", "101198", "112998", "177116"),
    terms=DEEP,
    factor=FAR,
    deterministic=False,
    make=lambda d: (
        [bert.draw_weights(d, width=w, inner=i, layers=1) for w, i in ((32, 64), (16, 48), (32, 64))],
        [bert.draw_batch(d, rows=rows + d.k, length=9) for rows in (8, 3, 8)],
    ),
)
def _a_second_model_in_the_same_process(models: Any, batches: Any) -> Any:
    answers = []
    for weights in models:
        for ids, types, mask, labels in batches:
            w = bert.trainable(weights)
            F.cross_entropy(bert.logits(w, ids, types, mask), labels).backward()
            answers.append([w["0.query"].grad, w["words"].grad, w["classify"].grad])
    return answers
