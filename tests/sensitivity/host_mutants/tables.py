"""The page of a run: counts by rule and by file, and the misses that are not held back. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Any, Callable, Iterable, Mapping, Sequence

from .draw import HELD_BACK
from .judge import OUTCOMES, figures
from .rules import RULES

_HEADS = {
    "quick": "by `--quick`",
    "whole": "by another case",
    "missed": "missed",
    "equivalent": "no result changed",
    "same_code": "same object",
    "not_reached": "not run by a case",
    "not_compiled": "not compiled",
    "own_fault": "own fault",
}


def page(rows: Sequence[Mapping[str, Any]], *, held: bool = False) -> str:
    """Return the tables of a run in Markdown; the misses of the held-back third only where they are asked for."""
    whole = figures(rows)
    share = whole.caught / max(whole.effective, 1)
    quick = whole.caught_by_quick / max(whole.effective, 1)
    cpu = sum(row.get("cpu_seconds", 0.0) for row in rows)
    files = len({row["file"] for row in rows})
    told = [row for row in rows if row["outcome"] == "missed" and (held or not row["held"])]
    quiet = sum(row["outcome"] == "missed" and row["held"] for row in rows)
    what = {rule.name: rule.what for rule in RULES}
    lines = [
        f"{len(rows)} mutants of {files} files, {cpu / 3600:.1f} CPU hours. Of {whole.effective} that change a result,",
        f"{whole.caught} are caught ({share:.1%}), {whole.caught_by_quick} of them by the cases of `--quick` ({quick:.1%}).",
        "",
        "## By rule",
        "",
        *_table(rows, "rule", lambda name: what.get(name, name)),
        "",
        "## By file",
        "",
        *_table(rows, "file", lambda name: f"`{name}`"),
        "",
        "## Missed",
        "",
        f"A third of all mutants (one of {HELD_BACK}, by seed) is held back from whoever writes cases: of it"
        f" {quiet} {'mutant was' if quiet == 1 else 'mutants were'} missed{', listed too' if held else ''}.",
        "",
        *(
            [
                "| line | rule | was | is | cases that run it | that answer other bits |",
                "|---|---|---|---|---:|---:|",
                *(_missed(row) for row in sorted(told, key=lambda row: (row["file"], row["start"]))),
            ]
            if told
            else ["None of the others was missed."]
        ),
    ]
    return "\n".join(lines)


def _table(rows: Iterable[Mapping[str, Any]], field: str, words: Callable[[str], str]) -> list[str]:
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(row[field], Counter())[row["outcome"]] += 1
    shown = [name for name in OUTCOMES if any(each[name] for each in counts.values())]
    found = [
        f"| {field} | {' | '.join(_HEADS[name] for name in shown)} |",
        f"|---|{'---:|' * len(shown)}",
        *(
            f"| {words(name)} | {' | '.join(str(counts[name][each] or '') for each in shown)} |"
            for name in sorted(counts)
        ),
    ]
    return [*found, f"| all | {' | '.join(str(sum(each[name] for each in counts.values())) for name in shown)} |"]


def _missed(row: Mapping[str, Any]) -> str:
    return (
        f"| `{row['file']}:{row['lines'][0]}` | {row['rule']} | {_code(row['old'])} | {_code(row['new'])}"
        f" | {row.get('by_map', 0)} | {row.get('changed', 0)} |"
    )


def _code(text: str) -> str:
    plain = " ".join(text.split()).replace("|", "\\|").replace("`", "'")
    return f"`{plain[:80]}{'…' if len(plain) > 80 else ''}`" if plain else "nothing"
