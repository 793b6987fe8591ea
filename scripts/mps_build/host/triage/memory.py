"""What to do about a device that is out of memory, by the numbers of its own message."""

from __future__ import annotations

from collections.abc import Mapping

_POWERS = {"K": 10, "M": 20, "G": 30, "T": 40}
_UNITS: dict[str, int] = {"bytes": 1, "B": 1} | {
    f"{at}{unit}": 2**power for at, power in _POWERS.items() for unit in ("B", "iB")
}
# A limit this low is a small Mac's, or somebody's own ratio.
_SMALL = 4 * 2**30


def size_of(text: object) -> float | None:
    """Return the bytes of a size as torch prints it; None for what is none.

    >>> size_of("1.50 KB"), size_of("2.00 GiB"), size_of("many"), size_of("1.2.3 GB")
    (1536.0, 2147483648.0, None, None)
    """
    number, _, unit = str(text).partition(" ")
    try:
        return float(number) * _UNITS[unit]
    except (KeyError, ValueError):
        return None


def memory_advice(detail: Mapping[str, object]) -> str | None:
    """Return what the numbers of the message advise: allocated, other, max_allowed, tried; None if they say nothing.

    `allocated` is what torch's tensors hold, `other` what the process holds on the device beside them.
    """
    allocated, other = size_of(detail.get("allocated")), size_of(detail.get("other", "0 bytes"))
    allowed, tried = size_of(detail.get("max_allowed")), size_of(detail.get("tried"))
    if allocated is None or other is None or allowed is None or tried is None:
        return None
    limit = f"the limit of {detail['max_allowed']}"
    if tried > allowed:
        return f"this one tensor wants {detail['tried']}, more than {limit}: a smaller shape, or the work in parts"
    if allocated + other + tried <= allowed:
        return f"by these numbers there is room under {limit}: the system refused; close other programs, try again"
    if other > allocated:
        return (
            f"{detail['other']} of {limit} lie outside of tensors, which hold {detail['allocated']}: compiled graphs, "
            "one for each new shape, or another library on the GPU; pad inputs to few shapes, a newer torch, "
            "torch.mps.empty_cache(); a smaller batch alone hardly helps"
        )
    if allowed < _SMALL:
        return (
            f"{limit} is small: a Mac with little memory, or PYTORCH_MPS_HIGH_WATERMARK_RATIO was lowered; a smaller "
            "model or batch, float16, close other programs"
        )
    return (
        f"tensors hold {detail['allocated']} of {limit}: a smaller batch or model, float16, torch.no_grad() where "
        "nothing is trained; PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 only trades the error for swapping"
    )
