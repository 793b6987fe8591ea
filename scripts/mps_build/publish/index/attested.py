"""Is an index that of the wheels which were attested? Run by release.yml before it is published, on its own.

    python3 -I attested.py SITE WHEELS BASE < SHA256SUMS

SITE is what publish_index wrote, WHEELS a folder of the files, BASE the address below which they will lie; the hashes
are lines of sha256sum. The standard library alone, so that what made the index had no part in judging it.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

_MEMBERS = {"metadata": r"[^/]+\.dist-info/METADATA", "cdx.json": r"[^/]+\.dist-info/sboms/mps-build\.cdx\.json"}
_DIGEST = re.compile(r"(?<![0-9a-fA-F])[0-9a-fA-F]{64}(?![0-9a-fA-F])")


class _Index:
    def __init__(self, site: Path, attested: Mapping[str, str], base: str) -> None:
        self.site, self.attested, self.base = site, attested, base
        self.metadata: dict[str, str] = {}
        self.listed: set[str] = set()

    def faults(self, wheels: Path) -> Iterator[str]:
        yield from self._beside(wheels)
        known = {*self.attested.values(), *self.metadata.values()}
        for path in sorted(self.site.rglob("*")):
            if path.is_symlink() or not (path.is_file() or path.is_dir()):
                yield self._at(path, "is no file")
            elif path.is_file() and path.parent != self.site / "wheels":
                text = path.read_text(encoding="utf-8")
                for strange in sorted(set(_DIGEST.findall(text)) - known):
                    yield self._at(path, f"names a hash of nothing that was attested: {strange}")
                yield from self._page(path, text) if path.suffix == ".html" else self._json(path, text)
        for name in sorted(name for name in self.attested if name.endswith(".whl") and name not in self.listed):
            yield f"{name} is not in the index"

    def _beside(self, wheels: Path) -> Iterator[str]:
        """What lies beside a wheel is a part of it."""
        for path in sorted((self.site / "wheels").iterdir()):
            stem, _, end = path.name.partition(".whl.")
            name = f"{stem}.whl"
            if end not in _MEMBERS or name not in self.attested:
                yield self._at(path, "does not belong to a wheel that was attested")
                continue
            with zipfile.ZipFile(wheels / name) as archive:
                held = [archive.read(each) for each in archive.namelist() if re.fullmatch(_MEMBERS[end], each)]
            if held != [path.read_bytes()]:
                yield self._at(path, "is not what the wheel holds")
            if end == "metadata":
                self.metadata[name] = hashlib.sha256(path.read_bytes()).hexdigest()

    def _page(self, path: Path, text: str) -> Iterator[str]:
        page = _Page()
        page.feed(text)
        page.close()
        is_listing = "simple" in path.relative_to(self.site).parts
        for tag, address, core in page.found:
            link, _, fragment = address.partition("#")
            is_inner = not link.endswith(".whl") and not re.match(r"[\w+.-]*:|[\\/]", link)
            if tag != "a" or not (link.startswith(self.base) or is_inner):
                yield self._at(path, f"<{tag}> leads elsewhere: {address}")
            elif link.endswith(".whl"):
                digest = fragment.removeprefix("sha256=") if is_listing else None
                yield from self._wheel(path, link, digest, core, needs_hash=is_listing)

    def _json(self, path: Path, text: str) -> Iterator[str]:
        if path.suffix == ".json" and path.parent.parent.name == "simple":
            for each in json.loads(text)["files"]:
                if unquote(each["url"]).rpartition("/")[2] != each["filename"]:
                    yield self._at(path, f"{each['filename']} is said of {each['url']}")
                core = each["core-metadata"]["sha256"]
                yield from self._wheel(path, each["url"], each["hashes"]["sha256"], core, needs_hash=True)

    def _wheel(self, path: Path, link: str, digest: str | None, core: str | None, *, needs_hash: bool) -> Iterator[str]:
        name = unquote(link.removeprefix(self.base)) if link.startswith(self.base) else ""
        if self.attested.get(name) != (digest if needs_hash else self.attested.get(name, "")):
            yield self._at(path, f"names {link} with {digest or 'no hash'}")
        elif needs_hash and core != self.metadata.get(name):
            yield self._at(path, f"names {link} with metadata of {core or 'no hash'}")
        else:
            self.listed.add(name)

    def _at(self, path: Path, what: str) -> str:
        return f"{path.relative_to(self.site)}: {what}"


class _Page(HTMLParser):
    """The elements of a page that lead anywhere: tag, address, hash of the metadata."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        core = (given.get("data-core-metadata") or "").removeprefix("sha256=") or None
        for key in ("href", "src", "action", "data", "srcset"):
            if key in given:
                self.found.append((tag, (given[key] or "").strip(), core))


def faults_of(site: Path, wheels: Path, attested: Mapping[str, str], *, base: str) -> tuple[str, ...]:
    """Return where an index is not that of the attested files.

    Args:
        attested: the sha256 of each file, by its name.
    """
    if not any(name.endswith(".whl") for name in attested):
        return ("no wheel was attested",)
    return tuple(_Index(site, attested, base).faults(wheels))


def main(words: list[str], sums: str) -> int:
    """Print each fault as an annotation of the workflow; return the exit status."""
    site, wheels, base = Path(words[0]), Path(words[1]), words[2]
    pairs = (line.partition("  ./") for line in sums.splitlines())
    try:
        found = faults_of(site, wheels, {name: digest for digest, _, name in pairs}, base=base)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        found = (f"it cannot be read: {error!r}",)
    for each in found:
        print("::error::this is not the index of what was attested:", re.sub(r"[^ -~]", "?", each))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], sys.stdin.read()))
