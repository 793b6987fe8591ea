"""Accelerate with two processes on one device: on MPS, both libraries' pages say that this does not work.

Launched by `accelerate launch --multi_gpu --num_processes 2`. Each process tells how far it came: what Accelerate made
of it, and what a sum over both processes' tensors on the device gave. An exception ends it, as any script's.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
from accelerate import Accelerator

from training_suite.events import Events


def main(outcomes: Path) -> None:
    events = Events(outcomes)
    rank = int(os.environ.get("RANK", "-1"))
    try:
        accelerator = Accelerator()
        device = accelerator.device
        events.tell("joined", rank=rank, processes=accelerator.num_processes, device=str(device))
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group("gloo")
        mine = torch.full((4,), float(rank + 1), device=device)
        torch.distributed.all_reduce(mine)
        events.tell("reduced", rank=rank, device=str(mine.device), sum=float(mine[0].item()))
    except Exception as raised:
        events.tell("refused", rank=rank, kind=type(raised).__name__, message=str(raised)[:2000])
        raise


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(allow_abbrev=False)
    arguments.add_argument("--outcomes", type=Path, required=True)
    main(arguments.parse_args().outcomes)
