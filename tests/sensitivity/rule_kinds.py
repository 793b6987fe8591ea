"""What kind of an overload it is: whose code refuses a call, and who makes it."""

from __future__ import annotations

from typing import Any

import torch

from device_suite.rules.changes import ChangedCall


def refused_on_meta(func: Any, made: ChangedCall) -> bool:
    """Say whether the same call is refused where tensors have no memory: by what is checked for all devices."""
    meta = torch.device("meta")
    try:
        args, kwargs = made.arguments([base.to(meta) for base in made.bases], meta, lambda dtype: dtype)
        func(*args, **kwargs)
    except NotImplementedError:
        return False
    except Exception:
        return True
    return False


def is_backward(func: Any) -> bool:
    """Say whether autograd alone calls an overload: with what a forward took and left, and a gradient of its output."""
    return "_backward" in func._schema.name


def is_structured(func: Any, *, behind_python: bool = False) -> bool:
    """Say whether the checks of an overload are written once in C++: a structured kernel.

    `behind_python`: also where torch's own description in Python has taken its place for meta tensors.
    """
    begin = "Meta" if behind_python else "Meta:"
    lines = torch._C._dispatch_dump(func.name())
    return any(line.startswith(begin) and "RegisterMeta" in line for line in lines.splitlines())
