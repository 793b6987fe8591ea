"""Which of a release's tests run on mps: those that its own `run_test.py --mps` starts, and who else asks for it."""

from __future__ import annotations

# Of 2.6.0: the list in test/run_test.py, and test_optim.py, which says `allow_mps=True` as well.
FILES = (
    *("test_mps.py", "test_metal.py", "test_modules.py", "nn/test_convolution.py", "nn/test_dropout.py"),
    *("nn/test_pooling.py", "test_view_ops.py", "test_nn.py", "test_optim.py"),
)
# What these files import that Debian's torch comes without.
PACKAGES = ("setuptools", "scipy")
_MPS_ALONE = ("test_mps.py",)


def patterns_of(file: str) -> tuple[str, ...]:
    """Return the patterns of a file's tests that use mps: of most files these are some classes.

    >>> patterns_of("nn/test_dropout.py")
    ('nn/test_dropout.py::*MPS::*',)
    """
    return (f"{file}::*",) if file in _MPS_ALONE else (f"{file}::*MPS::*",)
