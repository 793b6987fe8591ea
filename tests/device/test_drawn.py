"""The drawn cases: operators, transformations and a seed, chosen within a budget (engine/sampler.py)."""

from __future__ import annotations

from engine.layer import Drawn

cases = Drawn()
