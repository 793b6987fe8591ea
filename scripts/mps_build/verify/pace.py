"""How long the rest of a run takes: cases left, weighted by what a case of their file took on a recorded run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# Mean seconds of a case by file, on a GPU (tests/recorded/records/cuda-h200-torch-2.11.0.json). Only their ratios
# count: how fast this machine is, the cases that are done say.
_SECONDS = {
    "test_layouts_binary.py": 0.018,
    "test_layouts_copies.py": 0.02,
    "test_layouts_factories.py": 0.321,
    "test_layouts_foreach.py": 0.015,
    "test_layouts_indexing.py": 0.018,
    "test_layouts_losses.py": 0.077,
    "test_layouts_matmul.py": 0.028,
    "test_layouts_modules.py": 0.026,
    "test_layouts_neural.py": 0.062,
    "test_layouts_optimizers.py": 0.051,
    "test_layouts_reductions.py": 0.034,
    "test_layouts_shapes.py": 0.035,
    "test_layouts_sizes.py": 0.126,
    "test_layouts_spellings.py": 0.042,
    "test_layouts_unary.py": 0.026,
    "test_models_forward_backward.py": 0.224,
    "test_regressions_activations.py": 0.123,
    "test_regressions_attention.py": 0.538,
    "test_regressions_blocks.py": 0.419,
    "test_regressions_compiled.py": 0.827,
    "test_regressions_convolution.py": 0.214,
    "test_regressions_embedding_loss.py": 0.25,
    "test_regressions_indexing.py": 0.052,
    "test_regressions_large.py": 0.0,
    "test_regressions_linear.py": 0.121,
    "test_regressions_matmul.py": 0.067,
    "test_regressions_norms.py": 0.227,
    "test_regressions_optimizers.py": 0.164,
    "test_regressions_random.py": 0.006,
    "test_regressions_recurrent.py": 0.234,
    "test_regressions_reductions.py": 0.078,
    "test_regressions_views.py": 0.015,
    "test_smoke_notes.py": 0.277,
    "test_transformers_attention.py": 0.387,
    "test_transformers_bert.py": 0.469,
    "test_transformers_finetune.py": 12.586,
}
_OTHERS = 0.048
_LEAST_SHARE = 0.01


class Pace:
    """The time left of a run, from the files of all its cases and the cases that are done.

    >>> pace = Pace()
    >>> pace.add("a", {"a": "test_x.py", "b": "test_x.py", "c": "test_x.py"})
    >>> pace.seconds_left(5.0)
    10.0
    """

    def __init__(self, before: Iterable[str] = ()) -> None:
        """`before`: cases of an earlier run, which this one does not do again."""
        self._before = frozenset(before)
        self._known = 0
        self._whole = self._done = 0.0

    def add(self, case: str, files: Mapping[str, str]) -> None:
        """Count a case that is done; `files` is case -> file, of all cases of the run."""
        if len(files) != self._known:
            self._known = len(files)
            self._whole = sum(_weight(file) for name, file in files.items() if name not in self._before)
        if case in files:
            self._done += _weight(files[case])

    def seconds_left(self, elapsed: float) -> float | None:
        """Return the seconds that the other cases take; None as long as too little is done to say."""
        if self._done <= 0 or self._done < self._whole * _LEAST_SHARE:
            return None
        return round(elapsed * max(self._whole - self._done, 0.0) / self._done, 3)


def _weight(file: str) -> float:
    return _SECONDS.get(file, _OTHERS)
