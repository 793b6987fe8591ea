"""The texts that a user reads are plain English: words that this project once used in its own meaning stay rare."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
AT_MOST = 40
WORDS = re.compile(r"\b(?:mend(?:s|ed|ing)?|told|doors?|gainsa(?:y|ys|id))\b", re.IGNORECASE)
# "there is no X" is English; "X is no Y" is "X is not a Y".
IS_NO = re.compile(
    r"(?<!there )\b(?:is|are) no\b(?! (?:longer|more|less|fewer|later|earlier|older|newer|larger|other)\b)", re.I
)
LEG = re.compile(r"\blegs?\b(?!\")(?! import)", re.IGNORECASE)  # the device suite has a module of that name
# Another program's own words, matched or cited as they are; and names of generated data.
SKIPPED = {".json", ".png", ".svg", ".dylib", ".metallib"}


def texts() -> list[Path]:
    """Return every file of the product that a person writes: the tool, its docs and the session file."""
    found = [path for folder in ("scripts", "docs") for path in (ROOT / folder).rglob("*") if path.is_file()]
    found += [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "noxfile.py")]
    return sorted(path for path in found if path.suffix not in SKIPPED and "__pycache__" not in path.parts)


def hits(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in texts()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        for _ in pattern.finditer(line)
    ]


def test_words_of_our_own_making_stay_rare() -> None:
    found = hits(WORDS) + hits(IS_NO)

    assert len(found) <= AT_MOST, "\n".join([f"{len(found)} of at most {AT_MOST}:", *found])


def test_a_run_is_not_called_a_leg() -> None:
    assert not hits(LEG)


def test_the_search_finds_each_word() -> None:
    lines = "It is told. The doors. He mended it. gainsaid. It is no file. There is no file. It is no longer there."
    assert [found[0] for found in WORDS.finditer(lines)] == ["told", "doors", "mended", "gainsaid"]
    assert [found[0] for found in IS_NO.finditer(lines)] == ["is no"]
