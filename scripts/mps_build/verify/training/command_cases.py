"""`accelerate env` and `accelerate config default`: what they say, and whether the device is used with the latter."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from mps_build.common import strict_yaml
from mps_build.common.opening import read_text
from mps_build.common.process import Captured
from mps_build.common.records.device_record import Case, Result

LAYER = "accelerate"


def judge_env(answer: Captured) -> Case:
    """Return the case of `accelerate env`: it must end well and name the torch that it sees."""
    if answer.timed_out:
        return _case("accelerate-env", "timeout", "no answer in time")
    if not answer.ok:
        return _case("accelerate-env", "failed", f"exit {answer.exit}: {answer.stderr.strip()[-500:]}")
    if "PyTorch" not in answer.stdout or "Accelerate" not in answer.stdout:
        return _case("accelerate-env", "failed", f"it names neither PyTorch nor itself: {answer.stdout.strip()[:300]}")
    return _case("accelerate-env", "passed", "")


def read_config(home: Path) -> tuple[Path, dict[str, Any]] | None:
    """Return the file that `accelerate config default` wrote into a Hugging Face home, and what it says."""
    for path in sorted((home / "accelerate").glob("default_config.*")):
        try:
            said = strict_yaml.unchecked(read_text(path))  # JSON is YAML too
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            continue
        if isinstance(said, dict):
            return path, said
    return None


def judge_config(answer: Captured, config: dict[str, Any] | None, device: str) -> Case:
    """Return the case of `accelerate config default`: with what it writes, a launch must use the device."""
    name = "accelerate-config-default"
    if answer.timed_out:
        return _case(name, "timeout", "no answer in time")
    if not answer.ok or config is None:
        said = (answer.stderr.strip() or answer.stdout.strip())[-500:]
        return _case(name, "failed", f"exit {answer.exit}, no readable default_config in its home: {said}")
    if device != "cpu" and config.get("use_cpu"):
        return _case(name, "failed", f"it writes `use_cpu: true`: a launch with it stays on the CPU, not on {device}")
    if config.get("distributed_type") not in ("NO", "MPS", None) and device == "mps":
        return _case(name, "failed", f"distributed_type {config['distributed_type']} on one MPS device")
    return _case(name, "passed", f"use_cpu {str(config.get('use_cpu')).lower()}")


def launch_config(config: dict[str, Any], *, device: str) -> dict[str, Any]:
    """Return the config that the launches take: the default's, with the device on as the questionnaire would put it."""
    return {**config, "use_cpu": device == "cpu", "num_processes": 1, "distributed_type": "NO", "num_machines": 1}


def write_launch_config(config: dict[str, Any], path: Path, *, device: str) -> Path:
    """Write that config, as JSON, which every version reads."""
    path.write_text(json.dumps(launch_config(config, device=device), indent=1) + "\n", encoding="utf-8")
    return path


def _case(name: str, outcome: Result, reason: str) -> Case:
    return Case(id=name, layer=LAYER, outcome=outcome, reason=reason or None)
