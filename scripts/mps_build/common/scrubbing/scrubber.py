"""What everything that leaves this machine goes through: texts, names of files, and structured data.

`without_secrets` is for what somebody else may read: records, reports, `--json`, a workflow's log and summary. A
`Scrubber` with an identity takes out besides what names a person or a machine: `support` and recordings.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from .identifiers import HOST_NAME, IDENTIFIERS, MACHINE
from .identity import NOBODY, Identity
from .rules import take_out
from .secrets import IN_NAMES, REMOVED, SECRETS, take_out_known_formats
from .structure import is_secret_number, names_a_secret, paired, secret_words

# What a text says is the name of its machine: uname, Bonjour, a variable, a runner's own lines.
_HOST_NAMES = re.compile(
    r"(?:^(?:Darwin|Linux) |\bHOSTNAME=|\b(?:Runner|Machine) name: ?'?)([A-Za-z][\w-]{3,62})(?=[.\s']|$)"
    r"|(?<![\w./-])([A-Za-z][\w-]{3,62})\.local(?![\w.-])",
    re.MULTILINE,
)
_HOMES = re.compile(r"(?:/(?:Users|home)/|\b[A-Z]:\\{1,4}Users\\{1,4})([A-Za-z][\w.-]{2,31})(?![\w.-])")
_MOST_NAMES = 50
_SUFFIX = re.compile(r"(?:\.(?:jsonl?|log|txt|md|xml|html|ya?ml|tar|gz|tgz|whl|cmake))+$")
_SHORT = 2000
# A list of texts as JSON, Python and Ruby print it. What may repeat is bounded, and no two parts can take one letter.
_TEXT = r"\"(?:[^\"\\\n]|\\.){0,4000}\"|'(?:[^'\\\n]|\\.){0,4000}'"
_STRING = re.compile(_TEXT)
_LIST = re.compile(rf"[\[(]\s{{0,200}}(?:b?(?:{_TEXT})\s{{0,200}}(?:,\s{{0,200}}|(?=[\])]))){{2,400}}[\])]")
_LEAST = len("pass=x")  # no shorter text says of a part of it that it is a secret


class Scrubber:
    """Takes out secrets and, given an identity, what names a person or a machine; `removed` counts it by kind."""

    def __init__(self, identity: Identity | None = None) -> None:
        self.identity = identity
        self.removed: Counter[str] = Counter()

    def text(self, text: str) -> str:
        """Return a text without them; the lines in it that are JSON are scrubbed by their structure."""
        if self.identity is not None:
            self._learn(text)
        if "{" in text or "[" in text:
            text = "\n".join(map(self._line, text.split("\n")))
        return self._flat(_LIST.sub(self._listed, text))

    def name(self, path: str) -> str:
        """Return a file's name or path without them; its suffixes stay, for they say what is in it."""
        return "/".join(map(self._part, self._flat(path).split("/")))

    def value(self, value: Any, key: str = "") -> Any:
        """Return a JSON value without them, each text with its key in sight; so it stays JSON."""
        return self._value(value, key, hidden=False)

    def _value(self, value: Any, key: str, *, hidden: bool) -> Any:
        hidden = hidden or bool(key and names_a_secret(key))
        if isinstance(value, Mapping):
            named = paired(value)
            clean: dict[str, Any] = {}
            for name, each in value.items():
                inner = self._value(each, named.get(name, str(name)), hidden=hidden or name in named)
                clean[_free(self.text(str(name)), clean)] = inner
            return clean
        if isinstance(value, list | tuple):
            secrets = secret_words(value)
            return [
                self._hidden(each, secrets[at]) if at in secrets else self._value(each, key, hidden=hidden)
                for at, each in enumerate(value)
            ]
        if isinstance(value, str):
            return self._hidden(value) if hidden else self._under(key, value)
        return self._hidden(str(value)) if is_secret_number(key, value) else value

    def _hidden(self, value: str, stays: str = "") -> str:
        if value in ("", f"{stays}{REMOVED}"):
            return value
        self.removed["password"] += 1
        return f"{stays}{REMOVED}"

    def _under(self, key: str, value: str) -> str:
        if not key or self.identity is None:  # keys of secrets are known by then; those of names are not asked for
            return self.text(value)
        clean, head = self.text(f"{key}: {value}"), f"{key}: "
        return clean.removeprefix(head) if clean.startswith(head) else self.text(value)

    def _line(self, line: str) -> str:
        """Return a line that is a JSON object or list scrubbed by its structure, and any other as it is."""
        stripped = line.strip()
        if not (stripped.startswith(("{", "[")) and stripped.endswith(("}", "]"))):
            return line
        try:
            value = json.loads(stripped)
            clean = self.value(value)
        except (ValueError, RecursionError):
            return line
        return line if clean == value else json.dumps(clean, ensure_ascii=False)

    def _listed(self, match: re.Match[str]) -> str:
        """Return a list that a program printed, also over several lines, scrubbed by its structure as it stands."""
        words = [each[1:-1] for each in _STRING.findall(match[0])]
        if len(words) > 2 and not any(each.startswith("-") for each in words):
            return match[0]
        secrets = secret_words(words)
        number = iter(range(len(words)))

        def clean(found: re.Match[str]) -> str:
            at, word, quote = next(number), found[0][1:-1], found[0][0]
            word = self._hidden(word, secrets[at]) if at in secrets else self._flat(word)
            return f"{quote}{word}{quote}"

        return _STRING.sub(clean, match[0])

    def _part(self, part: str) -> str:
        found = _SUFFIX.search(part)
        stem, suffix = (part[: found.start()], found[0]) if found else (part, "")
        return take_out(self._flat(stem), IN_NAMES, self.removed) + suffix

    def _flat(self, text: str) -> str:
        if self.identity is None and len(text) < _LEAST:
            return text
        clean, removed = _without(text) if len(text) <= _SHORT else _uncached(text)
        self.removed.update(dict(removed))
        if self.identity is None:
            return clean
        clean = take_out(clean, IDENTIFIERS, self.removed)
        clean = take_out(self.identity.take_out(clean, self.removed), MACHINE, self.removed)
        self.removed = +self.removed
        return clean

    def _learn(self, text: str) -> None:
        """Take whose home folder is named for a name that is taken out everywhere, also of file names."""
        assert self.identity is not None
        found = {match[1]: ("user name", "user") for match in _HOMES.finditer(text)}
        found |= {match[1] or match[2]: ("host name", HOST_NAME) for match in _HOST_NAMES.finditer(text)}
        new = sorted(found.keys() - self.identity.words.keys())
        names = [name for name in new if len(name) >= 3 and name.lower() not in NOBODY]
        if names and len(self.identity.words) < _MOST_NAMES:
            words = {name: found[name] for name in names[:_MOST_NAMES]}
            self.identity = Identity(words={**words, **self.identity.words})


def without_secrets(value: Any) -> Any:
    """Return a text, or a JSON value, without passwords, keys and tokens; who and where stays.

    >>> without_secrets({"argv": ["twine", "--token", "abc"], "index": "https://me:abc@example.org/"})
    {'argv': ['twine', '--token', 'removed'], 'index': 'https://user@example.org/'}
    """
    return Scrubber().value(value)


def _uncached(text: str) -> tuple[str, tuple[tuple[str, int], ...]]:
    removed: Counter[str] = Counter()
    clean = take_out_known_formats(take_out(text, SECRETS, removed), removed)
    return clean, tuple((+removed).items())


# A report says the same things many times.
_without = lru_cache(maxsize=1 << 16)(_uncached)


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """Return a key that is not taken yet: two keys may have differed in what was removed."""
    number = 2
    free = name
    while free in taken:
        free, number = f"{name} ({number})", number + 1
    return free
