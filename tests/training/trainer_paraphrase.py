"""Transformers: Trainer fine-tunes a sequence classifier in the shape of run_glue on MRPC, from a config.

Maximum length 128, batch 32, AdamW with a linear schedule, as in the library's page on Apple silicon; its learning rate
of 2e-5 is for 110 million trained weights, and is scaled to the tiny model here. Trainer chooses the device.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
import transformers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

from training_suite.child_run import ChildRun, run_training
from training_suite.observer import Observer
from training_suite.paraphrases import VOCABULARY, Paraphrases, near_synonyms
from training_suite.trainer_arguments import device_arguments, renamed

CONFIG = {
    "lr": 1.5e-3,
    "seed": 82707,
    "batch_size": 32,
    "max_seq_length": 128,
    "pairs": 3072,
    "epochs": 3,
    "warmup": 40,
}


def classifier(seed: int) -> BertForSequenceClassification:
    """Return BERT, wide enough to learn synonyms; without dropout, which draws other numbers on each device."""
    config = BertConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=int(CONFIG["max_seq_length"]),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.08,
        pad_token_id=0,
        num_labels=2,
    )
    set_seed(seed)
    model = BertForSequenceClassification(config)
    near_synonyms(model.bert.embeddings.word_embeddings.weight.data, seed=seed)
    return model


class Watched(Trainer):  # type: ignore[misc]
    """Trainer itself; it lets an observer see each step."""

    def __init__(self, *rest: Any, seen: Observer, **more: Any) -> None:
        super().__init__(*rest, **more)
        self.seen = seen
        self.last: tuple[Any, Any] | None = None

    def compute_loss(self, model: Any, inputs: Any, *rest: Any, **more: Any) -> Any:
        answer = super().compute_loss(model, inputs, *rest, **more)
        if model.training:
            self.last = ({name: value.detach() for name, value in inputs.items() if torch.is_tensor(value)}, answer)
        return answer

    def training_step(self, model: Any, *rest: Any, **more: Any) -> Any:
        answer = super().training_step(model, *rest, **more)
        if self.last is not None:
            batch, loss = self.last
            self.seen.saw(self.model, batch, loss[0] if isinstance(loss, tuple) else loss)
        return answer


class StopWhenSeen(TrainerCallback):  # type: ignore[misc]
    """Ends the training where the observer has enough, or after so many steps."""

    def __init__(self, seen: Observer, steps: int | None) -> None:
        self.seen, self.steps = seen, steps

    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        control.should_training_stop = self.seen.done or (self.steps is not None and self.seen.steps >= self.steps)


def training_arguments(run: ChildRun) -> TrainingArguments:
    """Return run_glue's arguments, by this version's names."""
    known = set(inspect.signature(TrainingArguments.__init__).parameters)
    wanted: dict[str, Any] = {
        "output_dir": str(run.exchange / "output"),
        "per_device_train_batch_size": CONFIG["batch_size"],
        "per_device_eval_batch_size": 64,
        "learning_rate": CONFIG["lr"],
        "num_train_epochs": CONFIG["epochs"],
        "warmup_steps": CONFIG["warmup"],
        "lr_scheduler_type": "linear",
        "weight_decay": 0.0,
        "max_grad_norm": 1.0,
        "logging_steps": 50,
        "save_strategy": "no",
        "eval_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "seed": CONFIG["seed"],
        "optim": "adamw_torch",
        "dataloader_pin_memory": False,
    }
    return TrainingArguments(**renamed(known, wanted), **device_arguments(known, run.expected, force_cpu=run.force_cpu))


def accuracy(prediction: Any) -> dict[str, float]:
    """Return the metric of MRPC that counts here."""
    return {"accuracy": float((prediction.predictions.argmax(-1) == prediction.label_ids).mean())}


def train(run: ChildRun, seen: Observer, dtype: torch.dtype) -> tuple[float, int]:
    """Train and evaluate; return (accuracy, on how many pairs)."""
    seed, length = int(CONFIG["seed"]), int(CONFIG["max_seq_length"])
    held_out = Paraphrases(512, seed=seed + 1, length=length)
    trainer = Watched(
        model=classifier(seed).to(dtype),
        args=training_arguments(run),
        train_dataset=Paraphrases(int(CONFIG["pairs"]), seed=seed, length=length),
        eval_dataset=held_out,
        compute_metrics=accuracy,
        callbacks=[StopWhenSeen(seen, run.steps)],
        seen=seen,
    )
    trainer.train()
    if trainer.last is not None:
        batch, loss = trainer.last
        seen.ended(trainer.model, batch, loss[0] if isinstance(loss, tuple) else loss)
    if seen.done or run.steps is not None:
        return 0.0, 0
    return float(trainer.evaluate()["eval_accuracy"]), len(held_out)


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    run_training("transformers-trainer", train)
