"""Which parts of structured data are secrets by their place: beside an option, under a name, in a pair."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from .identifiers import HOST_NAME, IDENTIFIERS, MACHINE, NOBODY, Identity
from .secrets import IN_NAMES, REMOVED, SECRETS, SENSITIVE, take_out, take_out_known_formats

_OPTION = re.compile(
    rf"(?i)-{{1,2}}[\w-]{{0,40}}{SENSITIVE}(?![\w-]*stdin$)[\w-]{{0,40}}"
    r"|(?i:--(?!no-)(?:[\w-]{0,40}-)?(?:bearer|cookie|auth|authorization))"
)
_NAME = re.compile(
    rf"(?i)[\w./:-]{{0,80}}?(?:{SENSITIVE}[\w.-]{{0,40}}|(?<![a-z])(?:authorization|auth|(?:set-)?cookie2?))"
)
# The name of a setting among arguments: `global.password`, `TOKEN`; `token` alone is a word like any other.
_SETTING = re.compile(rf"(?:[\w./:-]{{0,80}}[_.:/-](?i:{SENSITIVE})|(?=[A-Z_]+$)(?i:{SENSITIVE}))\d{{0,3}}")
_LETTERED = frozenset({"-p", "-P", "-pw"})
_USER = frozenset({"-u", "-U", "--user", "--proxy-user", "--username", "--cert", "-E"})
# What a short option of one program holds; the value of -b is a cookie where it is no file.
_OF_PROGRAMS = {
    "curl": {"-b": re.compile(r".*=.*", re.DOTALL)},
    "openssl": {"-k": re.compile(r".+", re.DOTALL)},
    "security": {"-w": re.compile(r".+", re.DOTALL), "-P": re.compile(r".+", re.DOTALL)},
    "http": {"-a": re.compile(r".+", re.DOTALL)},
    "https": {"-a": re.compile(r".+", re.DOTALL)},
}
# Programs whose `-p` is a password, whatever it looks like.
_LOG_IN = frozenset(
    {"login", "sshpass", "mysql", "mysqldump", "mysqladmin", "mariadb", "twine", "htpasswd", "smbclient"}
)
# What `-p` takes of others: a number (a port, a depth), a path, a plugin that is left out.
_NO_PASSWORD = re.compile(r"\d{1,5}|\.{0,2}/.*|no:.*|\d+\.\d+t?")
_LOOKS_LIKE_AN_OPTION = re.compile(r"--?[A-Za-z]|--[A-Za-z][\w-]*(?:=.*)?")
_NAME_KEYS = ("name", "key", "variable", "header", "field")
_VALUE_KEYS = ("value", "val", "content", "contents", "text")
_STRICT = re.compile(r"(?i)(?:.*[^a-z])?(?:passw(?:or)?d|passphrase|passcode|pin|secret|token|api[_-]?key)")


@lru_cache(maxsize=1 << 14)
def names_a_secret(name: str) -> bool:
    """Tell whether what stands under a name (a key, a variable, a header) is a secret.

    >>> names_a_secret("DATABASE_PASSWORD"), names_a_secret("X-Auth-Token"), names_a_secret("pad_token_id")
    (True, True, False)
    """
    return bool(_NAME.fullmatch(name))


def is_secret_number(name: str, value: object) -> bool:
    """Tell whether a number under a name is a secret: how often a password was found is none."""
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) > 999 and bool(_STRICT.fullmatch(name))


def secret_words(words: Sequence[Any]) -> Mapping[int, str]:
    """Return which items of a list are secrets because of the item before, and what of each stays.

    That is an option's value, a pair's second half, the password behind the `-p` of a program that logs in.

    >>> secret_words(["twine", "upload", "--token", "a", "-p", "b", "-pc", "dist/x.whl"])
    {3: '', 5: '', 6: '-p'}
    """
    texts = [each if isinstance(each, str) else None for each in words]
    if len(texts) == 2 and texts[0] is not None and texts[1] is not None and names_a_secret(texts[0]):
        return {1: ""}
    is_option = _LOOKS_LIKE_AN_OPTION.fullmatch
    programs = [each.rsplit("/", 1)[-1] for each in texts if each is not None and not each.startswith("-")]
    logs_in = not _LOG_IN.isdisjoint(programs)
    own = {name: value for each in programs[:2] for name, value in _OF_PROGRAMS.get(each, {}).items()}
    are_arguments = logs_in or "set" in texts or any(each is not None and each.startswith("-") for each in texts)
    found: dict[int, str] = {}
    for at, (word, following) in enumerate(pairwise(texts)):
        if word is None or following is None or at in found:
            continue
        if (
            (_OPTION.fullmatch(word) and not is_option(following))
            or (word in _LETTERED and (logs_in or not _NO_PASSWORD.fullmatch(following)) and not is_option(following))
            or (word in _USER and ":" in following)
            or (word in own and own[word].fullmatch(following))
            or (are_arguments and not word.startswith("-") and _SETTING.fullmatch(word) and not is_option(following))
        ):
            found[at + 1] = ""
    if logs_in:
        glued = (at for at, word in enumerate(texts) if word is not None and re.match(r"-p[^-\s]", word))
        found |= {at: "-p" for at in glued if at not in found}
    return found


def paired(value: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the keys of an object that hold the value of a name beside them, with that name.

    >>> paired({"name": "API_TOKEN", "value": "a"})
    {'value': 'API_TOKEN'}
    """
    names = [value[key] for key in _NAME_KEYS if isinstance(value.get(key), str)]
    name = next((each for each in names if names_a_secret(each)), None)
    return {} if name is None else {key: name for key in _VALUE_KEYS if key in value}


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
# A list of texts as JSON, Python and Ruby print it. What may repeat is bounded; no two parts can take one character.
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
        if not key or self.identity is None:  # keys of secrets are known by then; those of names are not requested
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
