"""Transformers: what `generate` writes on the device and on the CPU, token by token."""

from __future__ import annotations

import argparse
import copy
import functools
from typing import Any

import torch
import transformers

from training_suite.cases import Bench, Wrong, moved, on_the_cpu, run_cases
from training_suite.child_run import ChildRun, parser
from training_suite.models import LENGTH, ROWS, VOCABULARY, build

NEW = 12
# Two tokens whose scores in float64 lie nearer than this share of the largest score may change places.
TIE = 1e-4


def writer(name: str) -> torch.nn.Module:
    """Return a model that writes until it has written enough: no token ends its text early."""
    model = build(name)[0].eval()
    for config in (model.config, model.generation_config):
        config.eos_token_id, config.pad_token_id = None, 0
    return model


def prompt(*, padded: bool = False) -> dict[str, torch.Tensor]:
    """Return ids and their mask; padding stands at the left, as it must where text is to go on."""
    ids = torch.randint(3, VOCABULARY, (ROWS, LENGTH), generator=torch.Generator().manual_seed(11))
    kept = torch.arange(LENGTH)[None, :] >= torch.tensor([[0], [5], [9]])
    mask = kept if padded else torch.ones_like(kept)
    return {"input_ids": ids * mask, "attention_mask": mask.long()}


def write(model: torch.nn.Module, batch: dict[str, torch.Tensor], device: Any, dtype: Any, **how: Any) -> Any:
    """Return the tokens, and the scores of each step where they are wanted."""
    copied = copy.deepcopy(model).to(dtype).to(device)
    untyped: Any = copied
    return untyped.generate(
        **moved(batch, device, dtype),
        **{"max_new_tokens": NEW, "do_sample": False, "num_beams": 1, "return_dict_in_generate": True, **how},
    )


def greedy(bench: Bench, *, name: str, padded: bool = False, **how: Any) -> None:
    """The device writes what the CPU writes; where the best two scores are a tie, either may follow."""
    model, batch = writer(name), prompt(padded=padded)
    with on_the_cpu():
        reference = write(model, batch, "cpu", torch.float64, output_scores=True, **how)
    with bench.injected():
        device = write(model, batch, bench.device, torch.float32, **how).sequences
        bench.is_there("tokens", device)
    got, wanted = device.cpu(), reference.sequences
    if got.shape != wanted.shape:
        raise Wrong(f"{tuple(got.shape)} tokens, the CPU wrote {tuple(wanted.shape)}")
    begin = wanted.shape[1] - len(reference.scores)
    for row in range(wanted.shape[0]):
        differing = (got[row] != wanted[row]).nonzero().flatten().tolist()
        if not differing:
            continue
        place = differing[0]
        scores = reference.scores[place - begin][row] if place >= begin else None
        if scores is None or not is_tie(scores, int(got[row, place])):
            raise Wrong(f"row {row}, token {place}: {int(got[row, place])}, the CPU wrote {int(wanted[row, place])}")


def is_tie(scores: torch.Tensor, token: int) -> bool:
    """True if a token's score is as good as the best."""
    finite = scores[torch.isfinite(scores)]
    return float(finite.max() - scores[token]) <= TIE * float(finite.abs().max())


def without_cache(bench: Bench, *, name: str) -> None:
    """On the device, the cache of keys and values changes no token."""
    model, batch = writer(name), prompt()
    with bench.injected():
        kept, fresh = (
            write(model, batch, bench.device, torch.float32, use_cache=use).sequences.cpu() for use in (True, False)
        )
    if not torch.equal(kept, fresh):
        raise Wrong(f"with the cache {kept[0].tolist()}, without {fresh[0].tolist()}")


def beams(bench: Bench, *, name: str) -> None:
    """Three beams end in the CPU's tokens, or in others that score as well."""
    model, batch = writer(name), prompt()
    how = {"num_beams": 3, "output_scores": True}
    with on_the_cpu():
        reference = write(model, batch, "cpu", torch.float64, **how)
    with bench.injected():
        device = write(model, batch, bench.device, torch.float32, **how)
        bench.is_there("tokens", device.sequences)
    off = (device.sequences_scores.cpu().double() - reference.sequences_scores).abs().max()
    if not float(off) <= TIE * float(reference.sequences_scores.abs().max()):
        raise Wrong(f"the beams' scores are off by {float(off):.3g}")
    same = torch.equal(device.sequences.cpu(), reference.sequences)
    if not same and float(off) > 1e-6:
        raise Wrong(f"{device.sequences[0].tolist()}, the CPU wrote {reference.sequences[0].tolist()}")


def sampled(bench: Bench, *, name: str) -> None:
    """A seed gives the same tokens again, another seed others; not the CPU's, whose draws differ."""
    model, batch = writer(name), prompt()
    texts = []
    with bench.injected():
        for seed in (3, 3, 4):
            torch.manual_seed(seed)
            texts.append(write(model, batch, bench.device, torch.float32, do_sample=True, top_k=0).sequences.cpu())
    if not torch.equal(texts[0], texts[1]):
        raise Wrong("one seed gave two texts")
    if torch.equal(texts[0], texts[2]):
        raise Wrong("two seeds gave one text")
    if int(texts[0].min()) < 0 or int(texts[0].max()) >= VOCABULARY:
        raise Wrong(f"tokens from {int(texts[0].min())} to {int(texts[0].max())} of a vocabulary of {VOCABULARY}")


CASES = {
    "transformers-generate-gpt2": functools.partial(greedy, name="gpt2"),
    "transformers-generate-llama": functools.partial(greedy, name="llama"),
    "transformers-generate-llama-padded": functools.partial(greedy, name="llama", padded=True),
    "transformers-generate-t5": functools.partial(greedy, name="t5"),
    "transformers-generate-without-cache": functools.partial(without_cache, name="llama"),
    "transformers-generate-beams": functools.partial(beams, name="gpt2"),
    "transformers-generate-sampled": functools.partial(sampled, name="llama"),
}


def main(options: argparse.Namespace) -> None:
    transformers.logging.set_verbosity_error()
    run = ChildRun("transformers-generate", options)
    run.events.tell("session", transformers=transformers.__version__, torch=torch.__version__)
    run_cases(CASES, run.events, run.expected, run.injected, after=options.after, hits=lambda: run.fault_hits)


if __name__ == "__main__":
    arguments = parser()
    arguments.add_argument("--after", metavar="CASE")
    main(arguments.parse_args())
