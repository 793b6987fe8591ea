"""Apple's frameworks as far as PyTorch calls them, declared in our own words, so that Objective-C++ compiles anywhere.

`frameworks/*.json` hold facts of public interfaces: names, types, enum values, the first macOS. They come from what the
official wheels import and from permissively licensed bindings for other languages; nothing is Apple's own text.
"""

from __future__ import annotations

from .headers import Frameworks, write_frameworks
from .stubs import Stubs, write_stubs

__all__ = ["Frameworks", "Stubs", "write_frameworks", "write_stubs"]
