"""Upstream's operator samples in int64: only with --full, and where the wheel's own test modules can be imported."""

from __future__ import annotations

import torch

from device_suite.opinfo import Sweep

cases = Sweep(torch.int64, samples=3)
