"""pytorch#82707 from end to end (T5): a BERT classifier learns a paraphrase task, on the device as on the CPU.

The task stands for MRPC and needs no download: pairs of short sentences over 30 words, each with a synonym; a
paraphrase is the first sentence shuffled and half of it in synonyms, anything else says it in other words. Synonyms
begin near each other, as embeddings that were trained before would have them. A device with a broken operator learns
nothing (0.5) or too little; a healthy CPU comes to 0.98, also where each result is rounded otherwise by up to 18 units.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from device_suite import Cases, bert

cases = Cases("transformers")
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


def _weights(generator: torch.Generator) -> bert.Weights:
    class _Narrow:
        normal = staticmethod(lambda *shape: torch.randn(shape, generator=generator))
        uniform = staticmethod(lambda low, high, *shape: torch.ones(shape))

    drawn = bert.draw_weights(_Narrow, vocab=FIRST + 2 * WORDS, width=64, inner=64, length=LENGTH, std=SPREAD)
    near = drawn["words"][FIRST : FIRST + WORDS] + 0.1 * SPREAD * torch.randn(WORDS, 64, generator=generator)
    drawn["words"][FIRST + WORDS :] = near
    return {n: torch.zeros_like(t) if n.endswith((".bias", ".shift")) else t for n, t in drawn.items()}


def _train(run: Any, weights: bert.Weights, train: Any, test: Any, steps: int = STEPS) -> Any:
    """Return (losses of the first steps, first gradients by name, accuracy on the test pairs after `steps`)."""
    w = bert.trainable(run.bring(weights))
    ids, types, mask, labels = run.bring(train)
    optimiser = torch.optim.AdamW(list(w.values()), lr=RATE)
    losses, first = [], {}
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = RATE * min((step + 1) / 40, (STEPS - step) / (STEPS - 40))
        chosen = slice(step * BATCH % len(labels), step * BATCH % len(labels) + BATCH)
        optimiser.zero_grad()
        loss = F.cross_entropy(bert.logits(w, ids[chosen], types[chosen], mask[chosen]), labels[chosen])
        loss.backward()
        if step == 0:
            first = {name: grad.clone() for name, grad in bert.gradients(w).items()}
        optimiser.step()
        if step < COMPARED_STEPS:
            losses.append(loss.detach())
    ids, types, mask, labels = run.bring(test)
    with torch.no_grad():
        accuracy = (bert.logits(w, ids, types, mask).argmax(-1) == labels).float().mean()
    return [loss.item() for loss in losses], {name: grad.cpu() for name, grad in first.items()}, accuracy.item()


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
