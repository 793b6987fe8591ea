"""BERT trained on a device: https://github.com/pytorch/pytorch/issues/82707, part by part and as a whole."""

from __future__ import annotations

import math
from typing import Any, Dict

import torch
import torch.nn.functional as F

from engine import Cases
from engine.acts import parameters_and_state
from engine.versions import is_at_least

cases = Cases("regressions")
Weights = Dict[str, torch.Tensor]


def draw_weights(
    d: Any,
    *,
    vocab: int = 50,
    width: int = 32,
    inner: int = 64,
    layers: int = 2,
    length: int = 24,
    classes: int = 2,
    std: float = 0.4,
) -> Weights:
    """Return weights wide enough that a fault shows; with BERT's own 0.02 half of the injected ones vanish in noise."""
    shapes: dict[str, Any] = {"words": (vocab, width), "places": (length, width), "types": (2, width)}
    for layer in range(layers):
        for name in ("query", "key", "value", "joined"):
            shapes[f"{layer}.{name}"] = (width, width)
        shapes[f"{layer}.up"], shapes[f"{layer}.down"] = (inner, width), (width, inner)
    shapes["pool"], shapes["classify"] = (width, width), (classes, width)
    weights = {name: d.normal(*shape) * std for name, shape in shapes.items()}
    for name in list(shapes):
        if name not in ("words", "places", "types"):
            weights[name + ".bias"] = d.normal(shapes[name][0]) * std
    for name in ["embedded"] + [f"{layer}.{part}" for layer in range(layers) for part in ("attended", "mixed")]:
        weights[name + ".gain"], weights[name + ".shift"] = d.uniform(0.5, 1.5, width), d.normal(width) * 0.2
    return weights


def draw_batch(d: Any, *, rows: int, length: int, vocab: int = 50) -> Any:
    """Return (ids, types, mask, labels); rows are padded at their end, the first one is whole."""
    ids, types = d.integers(1, vocab, rows, length), d.integers(0, 2, rows, length)
    lengths = d.integers(2, length + 1, rows)
    lengths[0] = length
    mask = torch.arange(length)[None, :] < lengths[:, None]
    return ids * mask, types, mask, d.integers(0, 2, rows)


def embed(w: Weights, ids: torch.Tensor, types: torch.Tensor, *, padding: int | None = None) -> torch.Tensor:
    """Return normalised embeddings, (rows, length, width)."""
    places = torch.arange(ids.shape[1], device=ids.device)
    x = (
        F.embedding(ids, w["words"], padding_idx=padding)
        + F.embedding(places, w["places"])
        + F.embedding(types, w["types"])
    )
    return normalise(w, "embedded", x)


def encode(w: Weights, x: torch.Tensor, mask: torch.Tensor, *, heads: int = 4) -> torch.Tensor:
    """Return the last hidden states of as many layers as the weights have."""
    layers = len([name for name in w if name.endswith(".query")])
    rows, length, width = x.shape
    hidden = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
    for layer in range(layers):
        q, k, v = (
            linear(w, f"{layer}.{name}", x).view(rows, length, heads, width // heads).permute(0, 2, 1, 3)
            for name in ("query", "key", "value")
        )
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(width // heads) + hidden
        context = torch.matmul(F.softmax(scores, dim=-1), v).permute(0, 2, 1, 3).contiguous().view(rows, length, width)
        x = normalise(w, f"{layer}.attended", linear(w, f"{layer}.joined", context) + x)
        y = linear(w, f"{layer}.down", F.gelu(linear(w, f"{layer}.up", x)))
        x = normalise(w, f"{layer}.mixed", y + x)
    return x


def classify(w: Weights, hidden: torch.Tensor) -> torch.Tensor:
    """Return logits from the first place of each row."""
    return linear(w, "classify", torch.tanh(linear(w, "pool", hidden[:, 0])))


def logits(w: Weights, ids: torch.Tensor, types: torch.Tensor, mask: torch.Tensor, **options: Any) -> torch.Tensor:
    return classify(w, encode(w, embed(w, ids, types, padding=options.pop("padding", None)), mask, **options))


def linear(w: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
    return F.linear(x, w[name], w[name + ".bias"])


def normalise(w: Weights, name: str, x: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, x.shape[-1:], w[name + ".gain"], w[name + ".shift"], 1e-12)


def trainable(w: Weights) -> Weights:
    """Return the weights as leaves that want gradients."""
    return {name: tensor.detach().requires_grad_() for name, tensor in w.items()}


def gradients(w: Weights) -> dict[str, Any]:
    """Return each named parameter's gradient, the last layers first: the first that differs is nearest the fault."""
    return {name: w[name].grad for name in reversed(list(w))}


# Gradients of an embedding are added up in any order on a GPU: two calls may differ in the last bits.
# A whole network adds up thousands of products: K of the bound. An injected one per cent is far above it.
DEEP = 4096
# Two units in the last place at every operator's result carry a logit past the usual bound: rounding.py.
FAR = 12.0


def _model_and_batch(d: Any) -> Any:
    return draw_weights(d), draw_batch(d, rows=4 + d.k, length=12 + d.k)


# https://github.com/pytorch/pytorch/issues/82707: BERT fine-tuning on GLUE MRPC learns far worse on mps than on cpu
@cases.case(
    "82707-t1-logits-at-three-lengths",
    issue="82707",
    terms=DEEP,
    factor=FAR,
    make=lambda d: (draw_weights(d), [draw_batch(d, rows=4 + d.k, length=n) for n in (12, 7, 12)]),
)
def _logits_at_three_padded_lengths(weights: Any, batches: Any) -> Any:
    return [logits(weights, ids, types, mask) for ids, types, mask, _ in batches]


@cases.case(
    "82707-t2-every-gradient", issue="82707", terms=DEEP, factor=FAR, deterministic=False, make=_model_and_batch
)
def _every_named_gradient_of_the_first_step(weights: Any, batch: Any) -> Any:
    w = trainable(weights)
    ids, types, mask, labels = batch
    loss = F.cross_entropy(logits(w, ids, types, mask), labels)
    loss.backward()
    return loss, gradients(w)


# https://github.com/pytorch/pytorch/issues/183825: layer_norm parameter gradients wrong and nondeterministic when
# input does not require grad
@cases.case(
    "82707-t3-embeddings-frozen",
    issues=("82707", "183825"),
    terms=DEEP,
    factor=FAR,
    deterministic=False,
    make=_model_and_batch,
)
def _the_first_layer_norm_has_an_input_without_gradient(weights: Any, batch: Any) -> Any:
    w = trainable(weights)
    ids, types, mask, labels = batch
    with torch.no_grad():
        x = F.embedding(ids, w["words"]) + F.embedding(types, w["types"])
    hidden = encode(w, normalise(w, "embedded", x), mask)
    loss = F.cross_entropy(classify(w, hidden), labels)
    loss.backward()
    return loss, {name: grad for name, grad in gradients(w).items() if name not in ("words", "types", "places")}


def _adamw(weights: Any, batches: Any, *, transposed: bool, **options: Any) -> Any:
    before = {name: tensor.clone() for name, tensor in weights.items()}
    if transposed:  # parameters that lie transposed in memory: their optimiser state does too
        weights = {n: t.t().contiguous().t() if t.dim() == 2 else t for n, t in weights.items()}
    w = trainable(weights)
    optimiser = torch.optim.AdamW(list(w.values()), lr=0.02, weight_decay=0.1, **options)
    losses = []
    for ids, types, mask, labels in batches:
        optimiser.zero_grad()
        loss = F.cross_entropy(logits(w, ids, types, mask), labels)
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
    """Of few shapes: without foreach each of them is a graph for each operation of a step."""
    weights = draw_weights(d, layers=1, vocab=16, width=16, inner=16, length=16)
    return weights, [draw_batch(d, rows=4 + d.k, length=8, vocab=16) for _ in range(2)]


# Adam divides by the root of the second moment: after one step every element moves by lr whatever its gradient,
# so an element whose gradient is rounding noise may go either way. Its floor is the learning rate.
for _name, _options, _since in (
    ("single", {"foreach": False}, "1.12"),
    ("foreach", {"foreach": True}, "1.12"),
    ("fused", {"fused": True}, "2.5"),
):
    for _transposed in (False, True) if _name == "foreach" else (False,):
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


# https://github.com/pytorch/pytorch/issues/185119: embedding backward silently ignores padding_idx and
# scale_grad_by_freq
@cases.case(
    "82707-t6-padding-row-and-ignored-labels",
    issues=("82707", "185119"),
    terms=DEEP,
    deterministic=False,
    make=_model_and_batch,
)
def _padding_row_gets_no_gradient_and_ignored_labels_no_loss(weights: Any, batch: Any) -> Any:
    w = trainable(weights)
    ids, types, mask, _ = batch
    hidden = encode(w, embed(w, ids, types, padding=0), mask)
    tokens = F.linear(hidden, w["words"][:11], w["pool.bias"][:11])
    labels = torch.where(mask & (ids % 3 != 0), ids % 11, torch.full_like(ids, -100))
    loss = F.cross_entropy(tokens.view(-1, 11), labels.view(-1), ignore_index=-100)
    (loss * 8.0).backward()
    return loss, w["words"].grad, w["words"].grad[12:], w["types"].grad


# https://github.com/pytorch/pytorch/issues/92311: argmax returns -9223372036854775808 (also 98191, 98919, 109067)
# https://github.com/pytorch/pytorch/issues/87753: Max and min of an int64 tensor are those of the two halves of its
# first element
# https://github.com/pytorch/pytorch/issues/96614: cumsum of bools overflows past 127
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


# https://github.com/pytorch/pytorch/issues/101198: embedding backward uses a cached graph from another weight shape
# https://github.com/pytorch/pytorch/issues/112998: Conv backward graph cache collision aborts
# https://github.com/pytorch/pytorch/issues/177116: gradients after a batch of another size, past 2**15 rows
@cases.case(
    "82707-t10-another-model-another-batch",
    full=True,
    issues=("82707", "101198", "112998", "177116"),
    terms=DEEP,
    factor=FAR,
    deterministic=False,
    make=lambda d: (
        [draw_weights(d, width=w, inner=i, layers=1) for w, i in ((32, 64), (16, 48))],
        [draw_batch(d, rows=rows + d.k, length=9) for rows in (8, 3)],
    ),
)
def _a_second_model_in_the_same_process(models: Any, batches: Any) -> Any:
    answers = []
    for model, batch in ((0, 0), (1, 0), (0, 1), (0, 0)):
        w, (ids, types, mask, labels) = trainable(models[model]), batches[batch]
        F.cross_entropy(logits(w, ids, types, mask), labels).backward()
        answers.append([w["0.query"].grad, w["words"].grad, w["classify"].grad])
    return answers


# A BERT classifier learns a paraphrase task, on the device as on the CPU. The task stands for MRPC and needs no
# download: pairs of short sentences over 30 words, each with a synonym; a paraphrase is the first sentence shuffled and
# half of it in synonyms, anything else says it in other words. Synonyms begin near each other, as embeddings that were
# trained before would have them. A device with a broken operator learns nothing (0.5) or too little; a healthy CPU
# comes to 0.98, also where each result is rounded otherwise by up to 18 units.
WORDS, LENGTH, STEPS, BATCH, RATE, SPREAD, SEED = 30, 18, 320, 32, 1.5e-3, 0.08, 82707
CLS, SEP, FIRST = 1, 2, 3
# A healthy GPU drifts from the CPU over hundreds of steps; over the first ten it must not.
COMPARED_STEPS, ALLOWED, LEARNT = 10, 1e-2, 0.95


def _pairs(generator: torch.Generator, count: int) -> Any:
    """Return (ids, types, mask, labels) of `count` pairs, half of them paraphrases."""
    ids, types = torch.zeros(count, LENGTH, dtype=torch.int64), torch.zeros(count, LENGTH, dtype=torch.int64)
    labels = torch.randint(0, 2, (count,), generator=generator)
    for row in range(count):
        size = int(torch.randint(4, 8, (1,), generator=generator))
        first = torch.randperm(WORDS, generator=generator)[:size]
        other = first[torch.randperm(size, generator=generator)]
        if not labels[row]:
            left = torch.ones(WORDS, dtype=torch.bool)
            left[first] = False
            drawn = torch.randperm(WORDS, generator=generator)
            other = drawn[left[drawn]][:size]
        # Word n has the synonym n + WORDS.
        swapped = torch.randint(0, 2, (size,), generator=generator)
        text = torch.cat([torch.tensor([CLS]), first + FIRST, torch.tensor([SEP]), other + FIRST + swapped * WORDS])
        ids[row, : len(text)], types[row, size + 2 : len(text)] = text, 1
    return ids, types, ids != 0, labels


def _weights(generator: torch.Generator) -> Weights:
    class _Narrow:
        normal = staticmethod(lambda *shape: torch.randn(shape, generator=generator))
        uniform = staticmethod(lambda low, high, *shape: torch.ones(shape))

    drawn = draw_weights(_Narrow, vocab=FIRST + 2 * WORDS, width=64, inner=64, length=LENGTH, std=SPREAD)
    near = drawn["words"][FIRST : FIRST + WORDS] + 0.1 * SPREAD * torch.randn(WORDS, 64, generator=generator)
    drawn["words"][FIRST + WORDS :] = near
    return {n: torch.zeros_like(t) if n.endswith((".bias", ".shift")) else t for n, t in drawn.items()}


def _train(run: Any, weights: Weights, train: Any, test: Any, steps: int = STEPS) -> Any:
    """Return (losses of the first steps, first gradients by name, accuracy on the test pairs after `steps`)."""
    w = trainable(run.bring(weights))
    ids, types, mask, labels = run.bring(train)
    # Every other way makes graphs of its own for each step's numbers: t4 asks for those.
    is_fused = is_at_least("2.5")
    rate: Any = torch.tensor(RATE, device=run.device) if is_fused else RATE
    optimiser = torch.optim.AdamW(list(w.values()), lr=rate, **({"fused": True} if is_fused else {}))
    losses, first = [], {}
    for step in range(steps):
        for group in optimiser.param_groups:
            planned = RATE * min((step + 1) / 40, (STEPS - step) / (STEPS - 40))
            group["lr"] = group["lr"].fill_(planned) if is_fused else planned
        chosen = slice(step * BATCH % len(labels), step * BATCH % len(labels) + BATCH)
        optimiser.zero_grad()
        loss = F.cross_entropy(logits(w, ids[chosen], types[chosen], mask[chosen]), labels[chosen])
        loss.backward()
        if step == 0:
            first = {name: grad.clone() for name, grad in gradients(w).items()}
        optimiser.step()
        if step < COMPARED_STEPS:
            losses.append(loss.detach())
    ids, types, mask, labels = run.bring(test)
    with torch.no_grad():
        accuracy = (logits(w, ids, types, mask).argmax(-1) == labels).float().mean()
    return [loss.item() for loss in losses], {name: grad.cpu() for name, grad in first.items()}, accuracy.item()


# https://github.com/pytorch/pytorch/issues/17971: DistilBERT emotion classification: F1 about 0.3 on mps vs 0.92 on
# cpu
# https://github.com/pytorch/pytorch/issues/92615: LSTM gradients wrong (word_language_model perplexity)
@cases.check("82707-t5-fine-tuning", issues=("82707", "17971", "92615"), limit_seconds=600.0)
def _a_paraphrase_task_is_learnt_as_on_the_cpu(bench: Any) -> None:
    generator = torch.Generator().manual_seed(SEED)
    weights, train, test = _weights(generator), _pairs(generator, 4096), _pairs(generator, 512)
    here = bench.device_run()
    copies = here.copy((weights, train, test))
    with here as run:
        losses, first, accuracy = _train(run, *copies)
    with bench.same() as run:
        host_losses, host_first, _ = _train(run, *run.copy((weights, train, test)), steps=COMPARED_STEPS)
    widest = max(float(grad.abs().max()) for grad in host_first.values())
    for name, grad in host_first.items():
        error = float((first[name] - grad).abs().max())
        # A key's bias moves no softmax: its gradient is zero but for rounding (seen on CUDA); the model's is the floor.
        scale = max(float(grad.abs().max()), 1e-4 * widest)
        assert error <= 1e-3 * scale, f"first step, gradient of {name}: off by {error:.3g} of at most {scale:.3g}"
    for step, (loss, host) in enumerate(zip(losses, host_losses)):
        assert abs(loss - host) <= ALLOWED * host, f"step {step}: loss {loss:.5f}, on the CPU {host:.5f}"
    if not accuracy >= LEARNT:  # only now is it worth the time to ask whether the CPU learns it
        with bench.same() as run:
            host_accuracy = _train(run, *run.copy((weights, train, test)))[2]
        assert host_accuracy >= LEARNT, f"the CPU itself learnt only {host_accuracy:.3f}: this proves nothing"
        raise AssertionError(f"accuracy {accuracy:.3f}, on the CPU {host_accuracy:.3f}")
