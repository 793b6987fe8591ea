"""Arguments of Transformers' Trainer by what its signature takes: names came and went between 4.31 and 5."""

from __future__ import annotations

from typing import Any, Collection, Mapping


def device_arguments(known: Collection[str], device: str, *, force_cpu: bool) -> dict[str, Any]:
    """Return what says the device, as little as this version needs.

    `use_cpu` came with 4.33 (before: `no_cuda`), and with 5 the old names went. MPS is taken by itself from 4.31 on
    (https://github.com/huggingface/transformers/pull/24239); where `use_cpu` is not yet known, it was needed.

    >>> device_arguments(["use_cpu", "no_cuda", "use_mps_device"], "mps", force_cpu=False)
    {}
    >>> device_arguments(["no_cuda", "use_mps_device"], "mps", force_cpu=False)
    {'use_mps_device': True}
    >>> device_arguments(["no_cuda", "use_mps_device"], "mps", force_cpu=True)
    {'no_cuda': True}
    >>> device_arguments(["use_cpu"], "cuda", force_cpu=True)
    {'use_cpu': True}
    """
    if force_cpu:
        name = next((name for name in ("use_cpu", "no_cuda") if name in known), None)
        if name is None:
            raise ValueError("this Trainer has no argument that asks for the CPU")
        return {name: True}
    if device == "mps" and "use_mps_device" in known and "use_cpu" not in known:
        return {"use_mps_device": True}
    return {}


def renamed(known: Collection[str], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments under the names that this version has; what it does not know is left out.

    >>> renamed(["evaluation_strategy"], {"eval_strategy": "no", "report_to": []})
    {'evaluation_strategy': 'no'}
    """
    older = {"eval_strategy": "evaluation_strategy"}
    names = {name: name if name in known else older.get(name, name) for name in wanted}
    return {names[name]: value for name, value in wanted.items() if names[name] in known}
