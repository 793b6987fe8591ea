"""Accelerate, language: a small BERT learns to tell paraphrases (as MRPC asks it), on pairs that are made here.

Launched by `accelerate launch`: it says nothing of a device, Accelerate chooses. It is the training of
https://github.com/pytorch/pytorch/issues/82707 in small.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader

from training_suite.child_run import ChildRun, run_training
from training_suite.encoder import Classifier
from training_suite.observer import Observer
from training_suite.paraphrases import LONGEST, VOCABULARY, Paraphrases, near_synonyms

CONFIG = {"lr": 1.5e-3, "num_epochs": 3, "seed": 82707, "batch_size": 32, "pairs": 4096, "warmup": 40}
EVAL_BATCH_SIZE = 128


def linear_with_warmup(optimizer: torch.optim.Optimizer, warmup: int, total: int) -> torch.optim.lr_scheduler.LambdaLR:
    """Return the schedule of BERT's fine-tuning: up over the first steps, then down to nothing."""

    def share(step: int) -> float:
        return min((step + 1) / warmup, max(0.0, (total - step) / (total - warmup)))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, share)


def training_function(run: ChildRun, seen: Observer, dtype: torch.dtype) -> tuple[float, int]:
    """Train, evaluate after the last epoch, and return (accuracy, on how many pairs)."""
    accelerator = Accelerator(cpu=True) if run.force_cpu else Accelerator()
    seed = int(CONFIG["seed"])
    set_seed(seed)
    order = torch.Generator().manual_seed(seed)
    train_loader = DataLoader(
        Paraphrases(int(CONFIG["pairs"]), seed=seed),
        shuffle=True,
        batch_size=int(CONFIG["batch_size"]),
        drop_last=True,
        generator=order,
    )
    eval_loader = DataLoader(Paraphrases(512, seed=seed + 1), shuffle=False, batch_size=EVAL_BATCH_SIZE)
    model = Classifier(vocabulary=VOCABULARY, length=LONGEST)
    near_synonyms(model.words.weight, seed=seed)
    model = model.to(dtype)
    optimizer = torch.optim.AdamW(params=model.parameters(), lr=CONFIG["lr"])
    epochs = int(CONFIG["num_epochs"])
    scheduler = linear_with_warmup(optimizer, int(CONFIG["warmup"]), epochs * len(train_loader))
    model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, eval_loader, scheduler
    )
    for _ in range(epochs):
        model.train()
        for batch in train_loader:
            labels = batch["labels"]
            logits = model(batch["input_ids"], batch["token_type_ids"], batch["attention_mask"])
            loss = F.cross_entropy(logits, labels)
            accelerator.backward(loss)
            seen.saw(model, batch, loss)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            if seen.done or seen.steps == run.steps:
                break
        if seen.done or seen.steps == run.steps:
            break
    seen.ended(model, batch, loss)
    model.eval()
    right = count = 0
    for batch in eval_loader:
        with torch.no_grad():
            logits = model(batch["input_ids"], batch["token_type_ids"], batch["attention_mask"])
        predictions, labels = accelerator.gather_for_metrics((logits.argmax(dim=-1), batch["labels"]))
        right += int((predictions == labels).sum())
        count += int(labels.numel())
    return right / count, count


if __name__ == "__main__":
    run_training("accelerate-paraphrase", training_function)
