"""The files of a device suite, in the order in which a run tells the most soonest."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from mps_build.common.errors import UsageError

from .suite_request import layer_of

_LAYERS = (
    *("smoke", "regressions", "layouts", "transfers", "sequences", "random", "neural", "autocast"),
    *("transformers", "models"),
)
# Asked by name alone.
_BY_NAME = ("drawn",)


def suite_files(suite: Path, layers_asked: Collection[str]) -> tuple[Path, ...]:
    """Return the files of the asked layers, or where none is asked of all but those that are asked by name alone.

    Raises:
        UsageError: the folder holds no suite, or the suite has no such layer.
    """
    files = sorted(suite.glob("test_*.py"), key=_order)
    if not files:
        raise UsageError(
            f"{suite}: holds no suite (test_<layer>_<area>.py)",
            hint="reinstall mps-build: a file of it is missing",
        )
    layers = sorted({layer_of(file) for file in files})
    unknown = [layer for layer in layers_asked if layer not in layers]
    if unknown:
        raise UsageError(f"no layer {', '.join(unknown)}", hint=f"layers: {', '.join(layers)}")
    return tuple(file for file in files if _is_asked(layer_of(file), layers_asked))


def _is_asked(layer: str, layers_asked: Collection[str]) -> bool:
    return layer in layers_asked if layers_asked else layer not in _BY_NAME


def _order(file: Path) -> tuple[int, str]:
    layer = layer_of(file)
    return (_LAYERS.index(layer) if layer in _LAYERS else len(_LAYERS), file.name)
