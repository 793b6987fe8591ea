"""What a program answered, made readable, and which program a probe's argv runs: wrappers and shells taken apart."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mps_build.common.logs.text import clean_line

# What an answer tells: keys and values as docs/host/recorded_macs.md lists them.
Facts = dict[str, Any]

# What log_text leaves: npm's and language servers' prefixes, and a viewer's numbered gutter.
_RELAYS = re.compile(r"^\s*(?:npm (?:ERR!|error|WARN)\s|\([\w .-]+\) std(?:err|out):\s?|(?:remote|stderr|stdout):\s)")
# No answer that we read is nearly that long; a log that somebody put in one's place may be.
_LONGEST = 1_000_000
_GUTTER = re.compile(r"^\s*\d*\s*[│┃|]\s?")
_QUOTES = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "—": "-", "–": "-", "\u00a0": " "})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One program's two streams as meant, and its exit status (None: not known).

    `ends_whole` says whether the last line of stdout was ended: a number at the very end of
    a text that was not may have lost its tail.
    """

    stdout: str
    stderr: str
    exit: int | None
    ends_whole: bool

    @classmethod
    def of(cls, stdout: str, stderr: str, exit: int | None) -> Answer:
        """Return the answer with terminal controls removed; `ends_whole` is false for a cut-off text."""
        return cls(
            stdout=_clean(stdout),
            stderr=_clean(stderr),
            exit=exit,
            ends_whole=_unescaped(stdout).endswith(("\n", "\r")),
        )

    @property
    def text(self) -> str:
        """Both streams, one after the other: which one an answer takes differs by tool and option."""
        return f"{self.stdout}\n{self.stderr}"

    @property
    def last_line(self) -> str:
        """The last line of stdout that says anything."""
        return next((line.strip() for line in reversed(self.stdout.splitlines()) if line.strip()), "")


def as_sentences(text: str) -> str:
    """Return the text with plain quotes and without gutters, its lines kept: for reading values out of messages."""
    lines = (_GUTTER.sub("", line) for line in text.translate(_QUOTES).splitlines())
    return "\n".join(lines)


def unwrapped(text: str) -> str:
    """Return the text without any white space: a phrase is found however its message was wrapped.

    >>> unwrapped("requires Xcode, but\\nactive devel\\noper directory")
    'requiresXcode,butactivedeveloperdirectory'
    """
    return "".join(text.split())


def first(pattern: str, text: str, flags: int = re.MULTILINE) -> str | None:
    """Return the first group of the first match, if there is one."""
    match = re.search(pattern, text, flags)
    return match.group(1) if match else None


def _clean(text: str) -> str:
    lines = text[:_LONGEST].replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(_RELAYS.sub("", clean_line(line)) for line in lines)


def _unescaped(text: str) -> str:
    return re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", text).rstrip(" \t")


_SHELLS = frozenset({"sh", "bash", "zsh", "dash", "ksh"})
_VALUE_OPTIONS = {"sudo": ("-u", "-g", "-C", "-h"), "env": ("-u", "-S", "-C"), "nice": ("-n",)}
_WRAPPERS = frozenset({"env", "sudo", "nice", "time", "command", "exec", "nohup", "caffeinate", "arch"})
_KEYWORDS = frozenset({"if", "then", "else", "elif", "do", "while", "until", "!", "{"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
# xcrun's options that answer for themselves; with any other word xcrun runs that tool.
_XCRUN_VALUES = frozenset({"--sdk", "-sdk", "--toolchain", "-toolchain"})
_XCRUN_FLAGS = frozenset(
    {"--log", "-log", "-l", "--verbose", "-v", "--no-cache", "-n", "--kill-cache", "-k", "--run", "-r"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One program call: the program's plain name, its arguments, and variables set for it alone."""

    program: str
    arguments: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)

    def has(self, *options: str) -> bool:
        """Say whether an option was given, with one dash or two."""
        return any(argument.lstrip("-") in options for argument in self.arguments if argument.startswith("-"))


def calls_of(argv: Sequence[str]) -> tuple[Call, ...]:
    """Return the calls that an argv stands for, in order; a shell script's are taken one by one.

    >>> [call.program for call in calls_of(["sh", "-c", "xcrun -f metal && sudo xcrun metal --version | head -1"])]
    ['xcrun', 'metal', 'head']
    """
    words, environ = _unwrap([str(word) for word in argv])
    if not words:
        return ()
    program, variables = _plain(words[0]), [f"{name}={value}" for name, value in environ.items()]
    if program in _SHELLS:
        script = _script(words[1:])
        if script is not None:
            return tuple(call for command in _simple_commands(script) for call in calls_of([*variables, *command]))
    if program == "xcrun" and (tool := _tool_of_xcrun(words[1:])):
        return calls_of([*variables, *tool])
    return (Call(program=program, arguments=tuple(words[1:]), environ=environ),)


def _plain(word: str) -> str:
    return word.rstrip("/").rsplit("/", 1)[-1]


def _unwrap(words: list[str]) -> tuple[list[str], dict[str, str]]:
    """Take off `env A=B`, `sudo`, `timeout 9`, `nice`, `time`, `arch -x86_64`."""
    environ: dict[str, str] = {}
    while words:
        program = _plain(words[0])
        if words[0] in _KEYWORDS:
            words = words[1:]
        elif _ASSIGNMENT.match(words[0]):
            name, value = words[0].split("=", 1)
            environ[name] = value
            words = words[1:]
        elif program in _WRAPPERS and len(words) > 1:
            words = words[1:]
            while words and words[0].startswith("-"):
                takes_value = words[0] in _VALUE_OPTIONS.get(program, ())
                words = words[2:] if takes_value and len(words) > 1 else words[1:]
        elif program in ("timeout", "gtimeout"):
            words = words[1:]
            while words and words[0].startswith("-"):
                words = words[2:] if words[0] in ("-k", "-s") else words[1:]
            words = words[1:]
        else:
            break
    return words, environ


def _script(arguments: Sequence[str]) -> str | None:
    for index, argument in enumerate(arguments):
        if re.fullmatch(r"-[a-z]*c[a-z]*", argument) and index + 1 < len(arguments):
            return arguments[index + 1]
    return None


def _simple_commands(script: str) -> list[list[str]]:
    try:
        lexer = shlex.shlex(re.sub(r"\d?>&\d|&>\s*\S+", " ", script), posix=True, punctuation_chars=";|&\n()")
        lexer.whitespace = " \t\r"
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:  # an unclosed quote: no script that we can take apart
        return []
    commands: list[list[str]] = [[]]
    for word in words:
        if word and set(word) <= set(";|&\n()"):
            commands.append([])
        elif re.match(r"\d?[<>]", word):
            continue
        else:
            commands[-1].append(word)
    return [command for command in commands if command]


def _tool_of_xcrun(arguments: Sequence[str]) -> Sequence[str] | None:
    """Return the tool that xcrun is to run with its arguments, or None where xcrun answers itself."""
    index = 0
    while index < len(arguments):
        word = arguments[index]
        if word in _XCRUN_VALUES:
            index += 2
        elif word in _XCRUN_FLAGS:
            index += 1
        elif word.startswith("-"):
            return None
        else:
            return arguments[index:]
    return None
