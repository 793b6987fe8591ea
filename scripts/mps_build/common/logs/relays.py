"""What collectors of logs put before every line: fixed forms, and whatever else most lines of one log begin with."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = r"\d\d?:\d\d:\d\d (?:[.,]\d+)?"
# Taken off again and again, since they nest (`gh run view --log`, GitHub's own stamp).
_FIXED = re.compile(
    rf"""
      \[? \d{{4}}[-/]\d\d[-/]\d\d [T ] {_CLOCK} (?:Z|[ ]?[+-]\d\d:?\d\d)? \]? (?:[ ]\d\d[OE][+ ]?)? [ ]?
    | \[? (?:{_DAY},?[ ])? {_MONTH}[ ][ ]?\d\d?[ ] {_CLOCK} (?:[ ](?:[A-Z]{{3,4}}[ ])?\d{{4}})? \]? [ ]?
    | \[ {_CLOCK} \] [ ]?                                                     # [09:12:24]
    | \d\d:\d\d:\d\d (?:[.,]\d+)? [ ]+ (?=\S)                                 # 09:12:24
    | \#\d+ [ ] \d+\.\d+ [ ]?                                                 # BuildKit: #21 5.532
    | \#\d+ [ ] (?=\[)                                                        # BuildKit: #21 [4/9] RUN ...
    | \[ (?!end\ of|notice|code|ok|warn|fail|error|info|debug|system|missing|-)
         [a-z][a-z0-9_.-]* \] (?:[ ]|$)                                       # [build]
    | (?!ld|xcrun|ninja|error|fatal|clang|warning|note|usage)
         [A-Za-z][\w.+-]{{0,60}} > (?:[ ]|$)                                  # nix: pkg>
    | [^\t\n]{{1,80}} \t [^\t\n]{{1,80}} \t (?=\d{{4}}-\d\d-\d\dT)            # gh run view --log: job, step
    | :(?:info|debug|msg|notice|warn):\w{{0,20}} [ ]                          # MacPorts
    | [│┃|] [ ]?                                                              # pip's and rich's gutters
    | > [ ] (?=\S|[ ]{{2}})                                                   # a quotation
    """,
    re.VERBOSE,
)
_NESTED = 12

# Where a line of a build's own begins: an inferred prefix never reaches into it.
_NATIVE = re.compile(
    r"""\[\s*\d+(?:/\d+|%) | --\ | CMake\ (?:Error|Warning|Deprecation) | FAILED:\ | File\ "
    | Traceback\b | In\ file\ included
    | \#\#\[ | \#\d+\  | ::\w | (?:fatal\ )?error\b | [Ee]rror: | warning\b | note: | fatal:
    | Undefined\ symbols | \w*Error: | [\w./+@-]+:\d+:\d+:
    | (?:/|\.\.?/)\w
    | (?:ld|clang(?:\+\+)?|xcrun|xcodebuild|xcode-select|ninja|cmake|make(?:\[\d+\])?|gmake|g?cc|g\+\+|metal
      |dyld(?:\[\d+\])?
      |ar|libtool|ranlib|codesign|install_name_tool|ccache|sccache|git|pip3?|python3?|sh|bash|zsh|env|remote
      |sysctl|ImportError):
    | (?:Collecting|Requirement|Downloading|Installing|Successfully|Building|Processing|Looking|Performing
      |Preparing|Using|copying
      |creating|adding|running|building|removing|Compiling|Linking|Scanning|Cloning|Checking)\b | [*=_-]{3}
    | >>> | [+$%]+\ """,
    re.VERBOSE,
)
_TOKEN = re.compile(r"[ \t]+|[0-9A-Za-z_]+|.", re.DOTALL)
_HEAD = 160
_SAMPLE = 1500
_DEEPEST = 40
_LEVELS = frozenset(
    ["INFO", "WARN", "WARNING", "ERROR", "DEBUG", "TRACE", "NOTICE", "CRITICAL", "FATAL", "VERBOSE", "I", "W", "E", "D"]
)
_LEVELS_OF_OUTPUT = frozenset(
    ["stdout", "stderr", "out", "err", "info", "error", "build", "simple", "debug", "warn", "O", "E"]
)
_CALENDAR = re.compile(rf"(?:{_DAY}|{_MONTH})$")
_SEPARATORS = frozenset("|│┃║>»›]})→:;,#*=~!·•-")
_STRONG_SEPARATORS = frozenset("|│┃║>»›]→")
_TROUBLE = re.compile(r"(?i)error|fatal|warning|fail|undefined|cannot|unable|exception|not found")


def without_fixed_prefix(line: str) -> str:
    """Return a line without the prefixes of known collectors; without any, its indent stays."""
    for _ in range(_NESTED):
        stripped = line.lstrip()
        match = _FIXED.match(stripped)
        if not match or not match.end():
            return line
        line = stripped[match.end() :]
    return line


def infer_prefix(lines: Sequence[str]) -> re.Pattern[str] | None:
    """Return what most lines of one log begin with, if it is a collector's: a stamp, a number, a name with its mark.

    Three lines are enough. What differs from line to line may be numbers, identifiers, levels and dates. What
    only some of the lines with a prefix go on with is their own text.
    """
    filled = [line for line in lines if line.strip()]
    step = max(len(filled) // _SAMPLE, 1)
    heads = [line.lstrip()[:_HEAD].rstrip() + " " for line in filled[::step]]  # a prefix alone has lost its blank
    if len(heads) < 3:
        return None
    counts, alive = _shared(heads)
    kinds = [_kind(token) for token in alive[0][: len(counts)]]
    fitting = [d for d in range(1, len(counts) + 1) if _is_boundary(alive, kinds[:d])]
    widest = max((counts[depth - 1] for depth in fitting), default=0)
    for depth in reversed(fitting):
        share = counts[depth - 1] / len(heads)
        if counts[depth - 1] >= 0.93 * widest and _is_of_a_collector(alive, kinds[:depth], share=share):
            return _pattern(alive, kinds[:depth])
    return None


def _shared(heads: Sequence[str]) -> tuple[list[int], list[list[str]]]:
    """Return how many heads share the first token, the first two and so on, and the tokens of those that go on."""
    rows = [_TOKEN.findall(head) for head in heads]
    offsets = [0] * len(heads)
    indices = list(range(len(heads)))
    counts: list[int] = []
    while len(counts) < _DEEPEST:
        depth = len(counts)
        open_ended = [i for i in indices if depth < len(rows[i]) and not _is_native(heads[i], offsets[i])]
        kinds = Counter(_kind(rows[i][depth]) for i in open_ended)
        kind, _ = kinds.most_common(1)[0] if kinds else ("", 0)
        going_on = [i for i in open_ended if _kind(rows[i][depth]) == kind]
        if len(going_on) < max(0.5 * len(heads), 3) or (depth == 0 and len(going_on) < 0.6 * len(heads)):
            break
        indices = going_on
        counts.append(len(indices))
        for index in indices:
            offsets[index] += len(rows[index][depth])
    return counts, [rows[index] for index in indices] or rows


def _is_native(head: str, offset: int) -> bool:
    """Whether the line's own text begins at this offset, which is not inside a word or a path."""
    before = head[offset - 1 : offset]
    return not before.isalnum() and before not in ("/", "-", "_", ".") and bool(_NATIVE.match(head, offset))


def _kind(token: str) -> str:
    """Return what a token is alike with: white space, numbers, identifiers, levels and dates with their like."""
    if token[0] in " \t":
        return "\t" if "\t" in token else " "
    if not (token[0].isalnum() or token[0] == "_"):
        return token
    if token.isdecimal():
        return "0"
    if token in _LEVELS:
        return "LEVEL"
    if token in _LEVELS_OF_OUTPUT:
        return "STREAM"
    if _CALENDAR.match(token):
        return "DATE"
    return "X0" if any(c.isdecimal() for c in token) else token


def _is_boundary(alive: Sequence[Sequence[str]], kinds: Sequence[str]) -> bool:
    """Whether a prefix may end after these tokens."""
    last = kinds[-1]
    if last == "\t":
        return True
    if last == " " and len(kinds) > 1:
        before = kinds[-2]
        return before in _SEPARATORS or before in ("0", "X0", "LEVEL", "STREAM") or _is_constant(alive, len(kinds))
    return last in "|│┃>:" and len(kinds) > 1


def _is_constant(alive: Sequence[Sequence[str]], depth: int) -> bool:
    return len({"".join(tokens[:depth]).rstrip() for tokens in alive}) == 1


def _is_of_a_collector(alive: Sequence[Sequence[str]], kinds: Sequence[str], *, share: float) -> bool:
    depth = len(kinds)
    words = [kind for kind in kinds if kind[0].isalpha() and kind not in ("LEVEL", "STREAM", "DATE", "X0")]
    if any(_TROUBLE.search(word) for word in words):
        return False
    marks = {kind for kind in kinds if not kind[0].isalnum() and kind not in (" ", "\t")}
    if "0" in kinds or "X0" in kinds:
        if (
            set(kinds) <= {"0", " ", "\t", ":", "|", ".", ")", "]", "[", "#", "│", "→", "-", ">"}
            and kinds.count("0") == 1
        ):
            return _counts_up([tokens[kinds.index("0")] for tokens in alive])
        has_a_clock = kinds.count("0") + kinds.count("X0") >= 3 or "DATE" in kinds
        if marks & _STRONG_SEPARATORS or "\t" in kinds or has_a_clock or ("LEVEL" in kinds and marks) or not words:
            return True
        return _is_constant(alive, depth) and ((share >= 0.9 and len(alive) >= 8) or (share == 1 and len(alive) >= 4))
    if "DATE" in kinds:
        return True
    if "LEVEL" in kinds or "STREAM" in kinds:
        place = next(i for i, kind in enumerate(kinds) if kind in ("LEVEL", "STREAM"))
        values = {tokens[place] for tokens in alive}
        return len(values) > 1 or (bool(marks) and not any(_TROUBLE.search(value) for value in values))
    if not words:
        return (not marks & set("+$%-") or share >= 0.95) and bool(marks)
    if marks & _STRONG_SEPARATORS or "\t" in kinds:
        return True
    text = "".join(alive[0][:depth])
    return len(alive) >= 8 and ((share >= 0.8 and ":" in marks) or (share >= 0.9 and len(text) >= 8))


def _counts_up(numbers: Sequence[str]) -> bool:
    values = [int(number) for number in numbers if len(number) < 12]
    steps = [after - before for before, after in pairwise(values)]
    return len(steps) >= 2 and sum(step >= 0 for step in steps) >= 0.9 * len(steps) and values[-1] > values[0]


def _pattern(alive: Sequence[Sequence[str]], kinds: Sequence[str]) -> re.Pattern[str]:
    forms = {" ": r"[ \t]+", "\t": r"[ \t]+", "0": r"\d+", "X0": r"[0-9A-Za-z_]+", "DATE": r"[A-Za-z]+"}
    is_more_than_a_level = any(kind[0].isalnum() and kind != "LEVEL" for kind in kinds)
    forms["LEVEL"] = r"[A-Z]+" if is_more_than_a_level else r"(?!ERROR|FATAL|CRITICAL)[A-Z]+"
    forms["STREAM"] = r"[A-Za-z]+"
    parts = [forms.get(kind) or re.escape(kind) for kind in kinds]
    if kinds[-1] in (" ", "\t"):
        widths = [len(tokens[len(kinds) - 1]) for tokens in alive if len(tokens) > len(kinds)]
        parts[-1] = rf"(?:[ \t]{{1,{min(widths, default=1)}}}|$)"
    return re.compile(r"\A[ \t]*" + "".join(parts))
