"""Accelerate, computer vision: a small convolutional network learns scikit-learn's digits (1,797 images, no download).

Launched by `accelerate launch`: it says nothing of a device, Accelerate chooses.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

from training_suite.child_run import ChildRun, run_training
from training_suite.observer import Observer

CONFIG = {"lr": 1e-2, "num_epochs": 8, "seed": 42, "batch_size": 64}
EVAL_BATCH_SIZE = 128


def digits(dtype: torch.dtype, seed: int) -> tuple[TensorDataset, TensorDataset]:
    """Return four fifths of the images to learn from and one to evaluate, normalised by the former."""
    bunch: Any = load_digits()
    images = torch.tensor(bunch.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(bunch.target, dtype=torch.int64)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    cut = len(labels) * 4 // 5
    learnt, held_out = order[:cut], order[cut:]
    images = ((images - images[learnt].mean()) / images[learnt].std()).to(dtype)
    return TensorDataset(images[learnt], labels[learnt]), TensorDataset(images[held_out], labels[held_out])


def network() -> torch.nn.Module:
    """Return convolution, normalisation and pooling, again, then a classifier."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1, bias=False),
        torch.nn.BatchNorm2d(16),
        torch.nn.ReLU(),
        torch.nn.Conv2d(16, 32, 3, padding=1, stride=2, bias=False),
        torch.nn.BatchNorm2d(32),
        torch.nn.GELU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(128, 10),
    )


def training_function(run: ChildRun, seen: Observer, dtype: torch.dtype) -> tuple[float, int]:
    """Train, evaluate after the last epoch, and return (accuracy, on how many images)."""
    accelerator = Accelerator(cpu=True) if run.force_cpu else Accelerator()
    set_seed(CONFIG["seed"])
    train_set, eval_set = digits(dtype, CONFIG["seed"])
    order = torch.Generator().manual_seed(CONFIG["seed"])
    train_loader = DataLoader(
        train_set, shuffle=True, drop_last=True, batch_size=int(CONFIG["batch_size"]), generator=order
    )
    eval_loader = DataLoader(eval_set, shuffle=False, batch_size=EVAL_BATCH_SIZE)
    model = network().to(dtype)
    optimizer = torch.optim.Adam(params=model.parameters(), lr=CONFIG["lr"] / 25)
    epochs = int(CONFIG["num_epochs"])
    scheduler = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=CONFIG["lr"], epochs=epochs, steps_per_epoch=len(train_loader)
    )
    model, optimizer, train_loader, eval_loader, scheduler = accelerator.prepare(
        model, optimizer, train_loader, eval_loader, scheduler
    )
    for _ in range(epochs):
        model.train()
        for batch in train_loader:
            loss = F.cross_entropy(model(batch[0]), batch[1])
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
            predictions = model(batch[0]).argmax(dim=-1)
        predictions, labels = accelerator.gather_for_metrics((predictions, batch[1]))
        right += int((predictions == labels).sum())
        count += int(labels.numel())
    return right / count, count


if __name__ == "__main__":
    run_training("accelerate-vision", training_function)
