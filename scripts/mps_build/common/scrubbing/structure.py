"""Which parts of structured data are secrets by their place: beside an option, under a name, in a pair."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from .secrets import SENSITIVE

_OPTION = re.compile(
    rf"(?i)-{{1,2}}[\w-]{{0,40}}{SENSITIVE}(?![\w-]*stdin$)[\w-]{{0,40}}"
    r"|(?i:--(?!no-)(?:[\w-]{0,40}-)?(?:bearer|cookie|auth|authorization))"
)
_NAME = re.compile(
    rf"(?i)[\w./:-]{{0,80}}?(?:{SENSITIVE}[\w.-]{{0,40}}|(?<![a-z])(?:authorization|auth|(?:set-)?cookie2?))"
)
# The name of a setting among arguments: `global.password`, `TOKEN`; `token` alone is a word like any other.
_SETTING = re.compile(rf"(?:[\w./:-]{{0,80}}[_.:/-](?i:{SENSITIVE})|(?=[A-Z_]+$)(?i:{SENSITIVE}))\d{{0,3}}")
_SHORT = frozenset({"-p", "-P", "-pw"})
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
            or (word in _SHORT and (logs_in or not _NO_PASSWORD.fullmatch(following)) and not is_option(following))
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
