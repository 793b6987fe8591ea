"""What a rule for a secret or an identifier is, and its use on a text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple


class Rule(NamedTuple):
    """What is taken out, where it stands, and what takes its place.

    A replaced place matches no more, or gives itself again: "nothing changes" proves that a text is clean.

    Attributes:
        needs: words in lowercase characters; a text that has none of them cannot match, and is not looked at further.
    """

    kind: str
    pattern: re.Pattern[str]
    instead: str
    needs: tuple[str, ...] = ()


def rules(*rows: tuple[str, str, str], needs: tuple[str, ...] = ()) -> tuple[Rule, ...]:
    """Return the rules of rows (kind, regular expression, replacement)."""
    return tuple(Rule(kind, re.compile(pattern), instead, needs) for kind, pattern, instead in rows)


def take_out(text: str, rules: Iterable[Rule], removed: Counter[str]) -> str:
    """Return the text without what the rules find; `removed` counts it by kind."""
    small = text.lower()
    for kind, pattern, instead, needs in rules:
        if needs and not any(word in small for word in needs):
            continue
        text, count = pattern.subn(instead, text)
        removed[kind] += count
    return text


def kinds_in(line: str, rules: Iterable[Rule]) -> tuple[str, ...]:
    """Return the kinds that the rules still find in a line."""
    return tuple(rule.kind for rule in rules if rule.pattern.sub(rule.instead, line) != line)


WINDOW, OVERLAP = 1_024, 256
# Its rules for random-looking texts would take every commit and hash. Of its rules for assignments some take
# minutes for a line of spaces; ours stand for those, for private keys (it names the first line only) and for addresses.
_LEFT_TO_OURS = frozenset(
    {
        "Base64HighEntropyString",
        "CloudantDetector",
        "HexHighEntropyString",
        "IPPublicDetector",
        "IbmCloudIamDetector",
        "IbmCosHmacDetector",
        "KeywordDetector",
        "NpmDetector",
        "PrivateKeyDetector",
        "SoftlayerDetector",
    }
)
REMOVED = "removed"
_PREFIXES = (
    r"gh[pousr]_|github_pat_|glpat-|gl(?:dt|ft|soat|rt|cbt|ptt|agent)-|pypi-|npm_|hf_|sk-|[rs]k_(?:live|test)_|xox[a-z]-|xapp-"
    r"|A3T[A-Z0-9]|A[BCKS]IA(?=[A-Z0-9])|AIza|ya29\.|dckr_pat_|dop_v1_|shp(?:at|ss|ca)_|tskey-|hvs\.|dp\.(?:pt|st)\.|lin_api_"
    r"|bk[a-z]{2}_|nvapi-|gsk_|dckr_oat_|hv[br]\.|sntrys_|CCIPAT_|ATATT3|AGE-SECRET-KEY-1|SG\.|sq0[a-z]{3}-|cio|rubygems_|pul-|figd_|PMAK-|EAAC"
)
# The part of a name that says that a secret stands under it.
# Not: the outcome unexpected_pass, a tokenizer's pad_token_id.
SENSITIVE = (
    r"(?:passw(?:or)?d|passphrase|passcode|(?<!unexpected[_-])(?<=[_-])pass(?!e[ds]|ing|_through|-remarks)"
    r"|(?<![a-z])(?:ssh|db|pg|my|ftp|smtp|mail|sudo|root|proxy|http|key(?:store)?)pass(?![a-z])"
    r"|(?<=[a-z0-9][_-])p(?:wd?|at)(?![a-z])"
    r"|(?<!pad_)(?<!eos_)(?<!bos_)(?<!cls_)(?<!sep_)(?<!unk_)(?<!mask_)"
    r"token(?!s\b|i[sz]|_(?:ids?|type|emb|count|len|class|num))"
    r"|secret|api[_-]?key|(?:access|account|private|signing|encryption|shared|storage|license|client|auth|deploy|master)"
    r"[_-]?key|cred(?:s\b|entials?)|session[_-]?id|(?<![a-z])_auth)"
)
_STEMS = ("pass", "token", "secret", "key", "cred", "session", "_auth", "_p", "-p")
_QUOTE = r"\\{0,3}[\"']"
_QUOTED = r"\\{1,3}\"[^\"\n]*\"|\"(?:[^\"\\\n]|\\[^\n])*\"|'[^'\n]*'"
_VALUE = rf"(?:{_QUOTED}|[^\s,;'\"]+)"
_ASSIGNED = rf"(?:{_QUOTED}|[^\s'\"]+)"  # a comma is a part of it, as a shell has it
_TAKEN = r"(?![\"']?removed\b)"

_FORMATS = rules(
    (
        "private key",
        r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)(?! removed)(?:[^-]|-(?!----)){0,40000}"
        r"(?:-----END [A-Z0-9 ]{0,40}-----)",
        r"\g<1> removed",
    ),
    (
        "private key",  # cut off before its end, or printed as one line with \n in it
        r"(-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)(?! removed)(?:\s*(?:\\[nr])*[\w+/=,:.-]{16,})+",
        r"\g<1> removed",
    ),
    (
        "private key",  # cut off before its beginning: lines as wide as PEM has them, not hexadecimal
        r"(?m)^(?:(?![0-9a-fA-F]{60,76}$)[A-Za-z0-9+/]{60,76}\r?\n){2,}[A-Za-z0-9+/]{0,76}={0,2}$",
        "removed",
    ),
    # Also within a file's name (build-ghp_….log); of words of the language (hf_hub_download) none has a figure.
    ("token", rf"(?<![A-Za-z0-9])(?:{_PREFIXES})(?=[\w.-]{{0,60}}(?:\d|[A-Z]{{12}}))[\w.-]{{12,}}", "TOKEN"),
    ("token", r"(?<![\w.-])s\.(?=\w{0,23}\d)(?=\w{0,23}[A-Z])(?=\w{0,23}[a-z])[A-Za-z0-9]{24}(?!\w)", "TOKEN"),
    ("token", r"(discord(?:app)?\.com/api/webhooks/\d{1,30}/)(?!removed)[\w-]+", r"\g<1>removed"),
    (
        "token",  # in a sentence: long, with a figure in it
        r"(?i)\b(token|api key|access key|secret|pass|passphrase)( is)? (?=[\w+/=-]{0,40}\d)(?!removed)[\w+/=-]{20,}",
        r"\g<1>\g<2> removed",
    ),
    ("password", r"(?i)\b(password|passphrase)( is:? )(?!removed)(?=\S{0,40}\d)\S+", r"\g<1>\g<2>removed"),
    ("token", r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}[\w.=-]*", "TOKEN"),
    (
        "token",
        r"(?i)((?:\b|(?<=-H))authorization[\"']?\s{0,8}[:=]\s{0,8}[\"']?)(?!removed\b)[^\s\"']+(?: +[^\s\"']+)?",
        r"\g<1>removed",
    ),
    ("token", r"(?i)\b(bearer|basic)( +)(?!removed\b)[\w.~+/-]{16,}=*", r"\g<1>\g<2>removed"),
    (
        "cookie",
        rf"(?i)((?:\b|(?<=-H))(?:set-)?cookie2?[\"']?\s{{0,8}}[:=]\s{{0,8}})(?=\S){_TAKEN}[^\n]+",
        r"\g<1>removed",
    ),
)
# Before the rules for assignments, which would take `>-` for the value.
_WRAPPED = (
    *rules(
        (
            "password",  # YAML's value on the next line
            rf"(?i)({SENSITIVE}[\w.-]{{0,40}}[\"']?\s{{0,8}}:[ \t]{{0,8}}[|>][-+]?\n[ \t]{{1,40}}){_TAKEN}[^\n]+",
            r"\g<1>removed",
        ),
        needs=(": |", ": >", ":|", ":>"),
    ),
    *rules(
        (
            "password",  # XML, and a property list
            rf"(?i)(<[\w:.-]{{0,40}}{SENSITIVE}[\w.-]{{0,40}}(?:\s[^<>]{{0,200}})?>\s{{0,80}}){_TAKEN}[^<\s][^<]{{0,2000}}(?=</)",
            r"\g<1>removed",
        ),
        (
            "password",
            rf"(?i)(<key>[\w.:-]{{0,60}}{SENSITIVE}[\w.-]{{0,40}}</key>\s{{0,80}}<string>){_TAKEN}[^<]{{1,2000}}",
            r"\g<1>removed",
        ),
        needs=("</",),
    ),
    *rules(
        (
            "password",  # the keychain's, in two notations
            r"(?i)(password: )0x[0-9a-f]+\s{1,8}\"[^\"\n]*\"",
            r"\g<1>removed",
        ),
        needs=("password: 0x",),
    ),
)
_NAMED = rules(
    (
        "password",  # also as a shell prints words in quotes: '--token' 'abc'
        rf"(?i)((?<![^\s\"'])-{{1,2}}[\w-]{{0,40}}{SENSITIVE}[\w-]{{0,40}}[\"']?[ =]+){_TAKEN}(?!-){_VALUE}",
        r"\g<1>removed",
    ),
    (
        "password",  # fish and csh, launchctl, git config, aws configure
        r"(?i)(\b(?:setenv|(?:set|config)(?=\s[^\n]{0,60}[\w-][_.])) (?:-{1,2}[\w-]{1,20} ){0,4}"
        rf"[\w.-]{{0,40}}{SENSITIVE}\w{{0,40}} )"
        rf"{_TAKEN}(?![-=]){_VALUE}",
        r"\g<1>removed",
    ),
    (
        "password",  # a question, and what was typed
        rf"(?i)((?:password|passphrase|token) for [^\n]{{1,200}}?: ){_TAKEN}\S+",
        r"\g<1>removed",
    ),
    ("password", rf"(?i)({SENSITIVE}[\w.-]{{0,40}}=){_TAKEN}(?!=){_ASSIGNED}", r"\g<1>removed"),
    (
        "password",
        rf"(?i)({SENSITIVE}[\w.-]{{0,40}}\\{{0,3}}[\"']?\s{{0,8}}(?:=(?![=])>?|:(?!:))\s{{0,8}}){_TAKEN}{_VALUE}",
        r"\g<1>removed",
    ),
    (
        "password",  # a list as programs print it: ['twine', '--token', 'abc'], ("TOKEN", "abc")
        rf"(?i)({_QUOTE}(?:-{{1,2}})?[\w.:/-]{{0,40}}{SENSITIVE}[\w-]{{0,40}}{_QUOTE}\s{{0,80}},\s{{0,80}}{_QUOTE}){_TAKEN}"
        r"(?!--|-[a-z][\\\"']|val(?:ue)?[\\\"'])[^\"'\n]+",
        r"\g<1>removed",
    ),
    (
        "password",  # {"name": "API_TOKEN", "value": "abc"}
        rf"(?i)({_QUOTE}[\w.-]{{0,40}}{SENSITIVE}[\w-]{{0,40}}{_QUOTE}\s{{0,80}},\s{{0,80}}{_QUOTE}val(?:ue)?{_QUOTE}\s{{0,8}}:\s{{0,8}}"
        rf"{_QUOTE}){_TAKEN}[^\"'\n]+",
        r"\g<1>removed",
    ),
    (
        "password",  # {"value": "abc", "name": "API_TOKEN"}
        rf"(?i)({_QUOTE}val(?:ue)?{_QUOTE}\s{{0,8}}:\s{{0,8}}{_QUOTE}){_TAKEN}[^\"'\n]{{1,2000}}"
        rf"(?={_QUOTE}\s{{0,80}},\s{{0,80}}{_QUOTE}(?:name|key|variable|header|field){_QUOTE}\s{{0,8}}:\s{{0,8}}{_QUOTE}[\w.-]{{0,40}}{SENSITIVE})",
        r"\g<1>removed",
    ),
    needs=_STEMS,
)
_PLACED = rules(
    (
        "password",
        rf"(?i)({_QUOTE}-p{_QUOTE}\s{{0,80}},\s{{0,80}}{_QUOTE}){_TAKEN}(?!--|-[a-z][\\\"']|[/.]|no:|\d{{1,5}}[\\\"'])[^\"'\n]+",
        r"\g<1>removed",
    ),
    (
        "password",  # the short option of programs that log in
        r"(?im)((?<![\w./-])(?:login|sshpass|mysql(?:dump|admin)?|mariadb|twine|htpasswd)\s(?:[^\n]{0,200}?\s)?-p[ =]?)"
        r"(?!removed\b)(?=[^\s/-])\S+",
        r"\g<1>removed",
    ),
    (
        "password",
        r"(?<!\S)(-u|--user|--proxy-user)([ =]?)(?!removed\b)[\"']?[^\s:'\"]{1,200}:[^\s'\"]+",
        r"\g<1>\g<2>removed",
    ),
    (
        "password",
        r"(?i)\b((?:machine\s{1,8}\S{1,200}|default)\s{1,8}login\s{1,8})(?!removed\b)\S{1,200}"
        r"((?:\s{1,8}account\s{1,8}\S{1,200})?\s{1,8}password\s{1,8})\S+",
        r"\g<1>removed\g<2>removed",
    ),
    ("password", r"(?i)(\"auth\"\s{0,8}:\s{0,8}\")(?!removed\")[^\"\n]+", r"\g<1>removed"),
    ("password", r"(?<=://)(?!user@)[^/\s@]{1,2000}@", "user@"),
    (
        "password",  # me:abc@host.org:repository
        r"(?<![\w.:/@+-])(?!user@)[\w.+-]{1,64}:(?!//)[^\s:@/\"']{1,200}@(?=[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}[:/])",
        "user@",
    ),
    ("token", r"(://[^/\s]{1,200}/t/)(?!removed/)[\w-]{6,200}(?=/)", r"\g<1>removed"),  # conda's
    ("password", r"(\becho (?:-n )?)(?!removed\b)\S{1,200}(?= {0,4}\| {0,4}sudo (?:-\w+ ){0,4}-S\b)", r"\g<1>removed"),
    (
        "token",
        r"(?i)([?&;](?:sig|signature|x-amz-[a-z-]{1,30}|access_token|token|key|code|auth|sv|se)=)(?!removed\b)[^&\s\"'#]+",
        r"\g<1>removed",
    ),
    (
        "public key",
        r"\b((?:ssh|ecdsa|sk)-[\w@.-]{2,40} )(?!removed)AAAA[\w+/=]{16,}(?: [^\s\"']+)?",
        r"\g<1>removed",
    ),
)
SECRETS = (*_FORMATS, *_WRAPPED, *_NAMED, *_PLACED)


# A word, an acronym, a version or a number of an ordinary name written without separators: RefreshV2Test, 8bit.
_ORDINARY = (
    r"(?:(?<!\d)[a-z]{2,40}(?![a-z])|[A-Z][a-z]{2,40}(?![a-z])|[A-Z]{2,6}(?![A-Z])"
    r"|[vV]?\d{1,14}(?!\d)(?:(?:st|nd|rd|th|x|d|k|b|bit|fa|vec)(?![a-z]))?)"
)
# An address whose slashes became underscores: https:__me:abc@host.log. Without a colon its scheme must be known.
_ADDRESS = (
    r"(?:\b[a-z][a-z0-9+.-]{1,20}(?::|%3a)(?:[_-]{1,3}|%2f%2f)"
    r"|(?<![a-z0-9])(?:https?|ftps?|ssh|git|svn|wss?|rsync|postgres(?:ql)?|mysql|rediss?|mongodb|amqps?|smb)"
    r"(?:\+[a-z]{2,6})?(?:[_-]{2,3}|%2f%2f))"
)

# In the name of a file, where blanks and quotes do not end a value: token-abc123.log. It has a figure, as
# `token-refresh.log` has none.
IN_NAMES = rules(
    (
        "password",
        rf"(?i)((?:{SENSITIVE}|bearer|authorization[=_.,+~@: -]{{1,3}}basic)(?:[=_.,+~@: -]|%3[ad]){{1,3}})"
        r"(?!removed\b)(?=[^/\s]{0,60}\d)(?=[^/\s]{0,60}[a-z])[^/\s]{6,}",
        r"\g<1>removed",
    ),
    (
        "password",  # nothing between: authTokena1b2c3d4.log; but tokenRefreshV2Test.log
        rf"((?i:{SENSITIVE}))(?!removed)(?=[A-Za-z0-9]{{8}})(?=[A-Za-z]{{0,60}}\d)(?=\d{{0,60}}[A-Za-z])"
        rf"(?!s?{_ORDINARY}{{1,30}}(?![A-Za-z0-9]))[^/\s]{{8,}}",
        r"\g<1>removed",
    ),
    ("password", rf"(?i)({_ADDRESS})(?![_-]|user(?:@|%40))[^/\s@]{{1,2000}}?(?:@|%40)", r"\g<1>user@"),
)


def take_out_known_formats(text: str, removed: Counter[str]) -> str:
    """Return the text without what detect-secrets knows by its format."""
    spans: list[tuple[int, int]] = []
    for begin in range(0, max(len(text), 1), WINDOW - OVERLAP):
        window = text[begin : begin + WINDOW]
        for analyse in _detectors():
            for secret in {found.strip() for found in analyse(window)} - {"", "removed"}:
                at = window.find(secret)
                while at >= 0:
                    # Some of its patterns give a part of what they match: the `ghp` of a token.
                    spans.append((begin + at, _end_of_word(text, begin + at + len(secret))))
                    at = window.find(secret, at + len(secret))
    if not spans:
        return text
    parts, end = [], 0
    for first, last in sorted(spans):
        if first >= end:
            parts += [text[end:first], "removed"]
            removed["secret of a known format"] += text[first:last] != "removed"
        end = max(end, last)
    return "".join([*parts, text[end:]])


def _end_of_word(text: str, at: int) -> int:
    found = _WORD.match(text, at)
    return found.end() if found else at


_WORD = re.compile(r"[\w-]{0,400}")


@lru_cache(maxsize=1)
def _detectors() -> tuple[Callable[[str], Iterable[str]], ...]:
    """Return how each of its detectors reads a text; none checks whether a secret is valid, which takes a network."""
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    classes: Mapping[str, type] = get_mapping_from_secret_type_to_class()
    return tuple(each().analyze_string for each in classes.values() if each.__name__ not in _LEFT_TO_OURS)
