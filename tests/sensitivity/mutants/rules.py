"""The rules by which host code is made wrong. Each finds its places in a file; a mutant is one of them carried out."""

from __future__ import annotations

from . import faults_of_meaning as meaning
from . import faults_of_memory as memory
from .edits import Rule

RULES = (
    Rule("key_part", "a part left out of a graph's cache key", meaning.key_parts),
    Rule("strides", "a stride of another dimension, or sizes for strides", memory.strides),
    Rule("offset", "an offset dropped, or in elements for bytes", memory.offsets),
    Rule("cast", "a cast left out", meaning.casts),
    Rule("synchronization", "a wait, a commit or the end of an encoder left out", memory.synchronizations),
    Rule("scalar", "alpha, beta or another scalar ignored", meaning.scalars),
    Rule("wrap", "a negative dimension not wrapped", meaning.wraps),
    Rule("gather", "a tensor with gaps not gathered", memory.gathers),
    Rule("fill", "a fill or the copy of a result left out", memory.fills),
    Rule("buffer_index", "a kernel's argument at another index", memory.buffer_indices),
    Rule("release", "an object not kept, or released too early", memory.releases),
    Rule("macos", "a condition on the version of macOS inverted", meaning.macos_versions),
    Rule("comparison", "a boundary off by one, equality turned round", meaning.comparisons),
    Rule("condition", "a condition turned round", meaning.conditions),
    Rule("axis", "an axis or dimension mistaken, a transposition left out", meaning.axes),
    Rule("operands", "the operands of a node exchanged", meaning.operands),
    Rule("flag", "a flag that says the opposite", meaning.flags),
    Rule("number", "a number off by one, another arithmetic operator", meaning.numbers),
    Rule("arguments", "two neighbouring arguments of a call exchanged", meaning.arguments),
    Rule("type", "a data type mistaken", meaning.types),
)
