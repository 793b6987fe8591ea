"""Run by the Python under test, as a file: what its torch says of the device, and whether the device computes at all.

One JSON line a stage, so that a crash leaves what came before it. Python 3.7 and torch 1.12 are enough.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import platform
import sys
from typing import Any

COMPUTE_SECONDS = 30


def tell(stage: str, **facts: Any) -> None:
    """Write one stage's facts at once."""
    print(json.dumps(dict(facts, stage=stage)), flush=True)


def ask(owner: Any, *names: str) -> Any:
    """Return what owner.name1.name2() answers, or None where this torch has no such function."""
    try:
        for name in names:
            owner = getattr(owner, name)
        return owner()
    except Exception:
        return None


def device_facts(torch: Any, device: str) -> dict[str, Any]:
    """Return whether the back end was built, whether it is available, and what the device calls itself."""
    if device == "mps":
        backend = getattr(torch.backends, "mps", None)
        if backend is None:
            return {"built": False, "available": False}
        return {
            "built": bool(backend.is_built()),
            "available": bool(backend.is_available()),
            "name": ask(backend, "get_name"),
            "gpu_cores": ask(backend, "get_core_count"),
            "memory_bytes": ask(torch, "mps", "recommended_max_memory"),
        }
    if device == "cuda":
        available = bool(torch.cuda.is_available())
        return {
            "built": torch.version.cuda is not None or torch.version.hip is not None,
            "available": available,
            "name": ask(torch, "cuda", "get_device_name"),
            "memory_bytes": torch.cuda.get_device_properties(0).total_memory if available else None,
            "runtime": torch.version.cuda or torch.version.hip,
        }
    return {
        "built": True,
        "available": True,
        "name": platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(),
    }


def compute(torch: Any, device: str) -> str | None:
    """Return what is wrong with a first product, sum and copy back; None if they are right."""
    left = torch.arange(64 * 48, dtype=torch.float32).reshape(64, 48) / 997
    right = torch.arange(48 * 32, dtype=torch.float32).reshape(48, 32) / 991 - 0.5
    expected = left.double() @ right.double()
    moved = left.to(device)
    if not torch.equal(moved.cpu(), left):
        return "a tensor copied to the device and back is another"
    product = (moved @ right.to(device)).cpu().double()
    off, scale = float((product - expected).abs().max()), float(expected.abs().max())
    if not off <= 1e-3 * scale:
        return f"a 64x48 @ 48x32 product is off by {off:.3g} (largest value {scale:.3g})"
    total = int(torch.ones(1000, device=device).sum().item())
    return None if total == 1000 else f"the sum of 1000 ones is {total}"


def numpy_version() -> str | None:
    """Return the version of numpy, if it is there and can be imported."""
    try:
        return str(importlib.import_module("numpy").__version__)
    except Exception:
        return None


def main(device: str) -> None:
    """Tell the stages one after the other."""
    tell("python", version=platform.python_version(), machine=platform.machine(), executable=sys.executable)
    try:
        torch = importlib.import_module("torch")
        version = str(torch.__version__)
    except Exception as error:
        tell("import", error=f"{type(error).__name__}: {error}")
        return
    tell(
        "import",
        torch=version,
        commit=getattr(torch.version, "git_version", None),
        file=torch.__file__,
        numpy=numpy_version(),
    )
    facts = device_facts(torch, device)
    tell("device", **facts)
    if not facts["available"]:
        return
    faulthandler.dump_traceback_later(COMPUTE_SECONDS, exit=True)
    try:
        tell("compute", wrong=compute(torch, device))
    except Exception as error:
        tell("compute", wrong=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(sys.argv[1])
