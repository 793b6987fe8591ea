"""A source of the host code as a 64-bit Linux takes it: for releases that have no patches here. Pure.

On a Mac int64_t is `long long`, on 64-bit Linux it is `long`: what names the type, or a number of it, and then meets
int64_t (`std::max(n, 1LL)`) is no longer one type. So all of it is named int64_t. Text, comments and lines stay.
"""

from __future__ import annotations

import re

# What is left as it is comes first: raw text (a Metal kernel), text, characters, comments.
_TOKEN = re.compile(
    r'R"(?P<mark>\w*)\(.*?\)(?P=mark)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'(?:\\.|[^'\\\n])+'"
    r"|//[^\n]*"
    r"|/\*.*?\*/"
    r"|(?P<type>\b(?:unsigned[ \t]+)?long[ \t]+long(?:[ \t]+int)?\b)"
    r"|\b(?P<number>0[xX][0-9a-fA-F]+|\d+)(?P<suffix>[uU]?(?:LL|ll)|(?:LL|ll)[uU])\b",
    re.DOTALL,
)
# EmptyTensor.cpp asks for macOS where it means MPS.
_MACOS = re.compile(r"#if defined\(__APPLE__\)\n#if __is_target_os\(macOS\)\n")
_MPS = "#if defined(USE_MPS)\n#if defined(USE_MPS)\n"


def linux_text(text: str) -> str:
    """Return a source as Linux takes it; the same text where nothing needs to change.

    >>> linux_text('std::max(n, 1LL); std::vector<long long> x; // long long')
    'std::max(n, int64_t(1)); std::vector<int64_t> x; // long long'
    """
    return _TOKEN.sub(_named, _MACOS.sub(_MPS, text))


def _named(found: re.Match[str]) -> str:
    if found["type"]:
        return "uint64_t" if found["type"].startswith("unsigned") else "int64_t"
    if found["number"]:
        return f"{'uint64_t' if 'u' in found['suffix'].lower() else 'int64_t'}({found['number']})"
    return found[0]
