"""What many cases do on their device."""

from __future__ import annotations

from typing import Any, Callable

import torch

# State that is one number: it may lie on the host by design.
_COUNTERS = ("step", "mu_product", "eta", "mu")


def leaf(x: torch.Tensor) -> torch.Tensor:
    """Return `x` as a leaf that wants a gradient, with its layout and its storage."""
    return x.detach().requires_grad_()


def backward(output: torch.Tensor, *leaves: torch.Tensor, grad: torch.Tensor | None = None) -> tuple[Any, ...]:
    """Return (output, gradient of each leaf); without `grad` the output's sum is derived."""
    if grad is None:
        output.sum().backward()
    else:
        output.backward(grad)
    return (output, *(one.grad for one in leaves))


def derived(form: Callable[..., torch.Tensor], *operands: torch.Tensor) -> tuple[Any, ...]:
    """Return (output, gradient of each operand) of an uneven gradient of the output."""
    starts = [leaf(one) for one in operands]
    y = form(*starts)
    return backward(y, *starts, grad=uneven(y))


def uneven(y: torch.Tensor) -> torch.Tensor:
    """Return a gradient for `y`, from -1 to 1: that of a sum is zero behind a softmax or a norm."""
    parts = torch.linspace(-1, 1, y.numel(), device=y.device)
    parts = torch.complex(parts, parts.flip(0)) if y.is_complex() else parts
    return parts.to(y.dtype).reshape(y.shape)


def filled(module: torch.nn.Module, x: torch.Tensor) -> torch.nn.Module:
    """Give a module the device and dtype of `x`, and parameters and buffers that are the same everywhere."""
    parts = [one for one in (*module.parameters(), *module.buffers()) if one.is_floating_point()]
    if any((one.device, one.dtype) != (x.device, x.dtype) for one in parts):  # a fake tensor cannot be moved in place
        module = module.to(x.device, x.dtype)
    with torch.no_grad():
        for number, one in enumerate([*module.parameters(), *module.buffers()]):
            if one.is_floating_point():
                places = (torch.arange(one.numel()) + number) % 13
                one.copy_((places / 13 - 0.45).view(one.shape))
    return module


def learned(module: torch.nn.Module, x: torch.Tensor, call: Callable[[torch.Tensor], Any] | None = None) -> list[Any]:
    """Return (output, gradient of `x`, gradients of the parameters) of a module, or of a call that uses it."""
    start = leaf(x)
    found = (call or module)(start)
    answer = found[0] if isinstance(found, tuple) else found
    answer.square().sum().backward()
    return [answer, start.grad, [one.grad for one in module.parameters()]]


def parameters_and_state(optimiser: torch.optim.Optimizer) -> list[Any]:
    """Return every parameter with the tensors the optimiser keeps for it, in order."""
    found: list[Any] = []
    for group in optimiser.param_groups:
        for parameter in group["params"]:
            state = optimiser.state[parameter]
            kept = [
                state[key] for key in sorted(state) if isinstance(state[key], torch.Tensor) and key not in _COUNTERS
            ]
            counted = [float(state[key]) for key in sorted(state) if key in _COUNTERS]
            found.append([parameter, *kept, *counted])
    return found
