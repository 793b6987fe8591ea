"""Which texts are addresses of a repository: nothing that runs a program, and nothing that git takes for an option."""

from __future__ import annotations

from .errors import UsageError

# What a recipe and a command line may name.
SCHEMES = ("https", "ssh", "file")


def address_fault(text: str, *, schemes: tuple[str, ...] = SCHEMES) -> str | None:
    """Return why a text is not the address of a repository; None for https, ssh and file addresses, and for paths.

    >>> address_fault("https://github.com/pytorch/pytorch.git"), address_fault("git@github.com:pytorch/pytorch")
    (None, None)
    >>> address_fault("--upload-pack=touch x")
    'begins with a dash: git would take it for an option'
    """
    if not text or not text.isprintable():
        return "is empty, or holds a control character"
    if text.startswith("-"):
        return "begins with a dash: git would take it for an option"
    scheme, is_url, rest = text.partition("://")
    if "::" in text.partition("/")[0]:
        return f"runs a program, git-remote-{text.partition('::')[0]}"
    if is_url and "/" not in scheme:
        if scheme not in schemes:
            return f"is an address of {scheme}, not of {', '.join(schemes)}"
        return "names a host that begins with a dash" if rest.rpartition("@")[2].startswith("-") else None
    host = text.partition(":")[0] if ":" in text.partition("/")[0] else ""
    return "names a host that begins with a dash" if host.rpartition("@")[2].startswith("-") else None


def check_address(text: str, *, what: str, schemes: tuple[str, ...] = SCHEMES) -> None:
    """Refuse what is not the address of a repository.

    Raises:
        UsageError: naming the fault.
    """
    if fault := address_fault(text, schemes=schemes):
        raise UsageError(f"{what} {text!r} {fault}", hint="give an https, ssh or file address, or a path")
