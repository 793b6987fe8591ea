"""What lies behind a Mach-O's header: symbols, strings, metallibs, page hashes. Read while the member goes by."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from ..limits import (
    MOST_ALL_KEPT_BYTES,
    MOST_FLAGS_BYTES,
    MOST_KEPT_BYTES,
    MOST_SYMBOL_BYTES,
    MOST_SYMBOLS_BYTES,
    Malformed,
)
from .macho import MachO, Range, Section
from .metallib import HEADER as METALLIB_HEADER
from .metallib import FunctionList, MetallibHeader, parse_header
from .signature import CodeDirectory, Signature, parse_signature
from .symbols import Exports, object_string_offsets, string_spans, undefined_string_offsets


@dataclass(slots=True, kw_only=True)
class Allowance:
    """How many bytes may still be kept of one input, shared by all who keep some."""

    left: int


class RangeCollector:
    """Keeps chosen ranges of a stream; a delivered one may ask for ranges that come later.

    All ranges of all files together are held against `kept`, so that overlapping ones cannot multiply a file.
    """

    def __init__(self, kept: Allowance | None = None) -> None:
        self._position = 0
        self._kept = kept or Allowance(left=MOST_ALL_KEPT_BYTES)
        self._own = MOST_KEPT_BYTES
        # By where they begin; the number keeps equal ones in order, and functions from being compared.
        self._waiting: list[tuple[int, int, Range, Callable[[bytes], None]]] = []
        self._begun: list[tuple[Range, bytearray, Callable[[bytes], None]]] = []
        self._requested = 0

    def want(self, extent: Range, deliver: Callable[[bytes], None]) -> None:
        """Have `deliver` called with the bytes of `extent`, once they have gone by.

        Raises:
            Malformed: they are gone, or are more than is kept of one file, or of all.
        """
        if extent.size > self._own:
            raise Malformed(f"{extent.size} bytes at byte {extent.offset}; at most {self._own} more are kept")
        if extent.size > self._kept.left:
            raise Malformed(f"{extent.size} bytes; of all files, at most {MOST_ALL_KEPT_BYTES} are kept")
        if extent.offset < self._position:
            raise Malformed(f"byte {extent.offset} lies before what refers to it")
        self._own -= extent.size
        self._kept.left -= extent.size
        self._requested += 1
        heappush(self._waiting, (extent.offset, self._requested, extent, deliver))

    def update(self, data: bytes) -> None:
        """Take the next bytes, and deliver each range that is complete."""
        begin, end = self._position, self._position + len(data)
        pending, self._begun = self._begun, []
        # What a delivered range asks for may lie in this very piece.
        while pending or (self._waiting and self._waiting[0][0] < end):
            if pending:
                extent, kept, deliver = pending.pop()
            else:
                _, _, extent, deliver = heappop(self._waiting)
                kept = bytearray()
            kept += data[max(extent.offset + len(kept) - begin, 0) : extent.end - begin]
            if len(kept) == extent.size:
                deliver(bytes(kept))
            else:
                self._begun.append((extent, kept, deliver))
        self._position = end


class PageHasher:
    """Hashes a stream page by page, up to `limit`, as code signatures do."""

    def __init__(self, *, limit: int, page_size: int, hash_name: str = "sha256", hash_size: int | None = None) -> None:
        self.page_size = page_size
        self.hash_name = hash_name
        self._left = limit
        self._new = getattr(hashlib, hash_name)
        self._size = hash_size
        self._partial = b""
        self._digests: list[bytes] = []

    def update(self, data: bytes) -> None:
        """Take the next bytes, and add the digest of each page that is complete."""
        view = memoryview(data)[: self._left]
        self._left -= len(view)
        page = self.page_size
        if self._partial:
            missing = page - len(self._partial)
            self._partial += bytes(view[:missing])
            view = view[missing:]
            if len(self._partial) < page:
                return
            self._digests.append(self._new(self._partial).digest())
        whole = len(view) // page * page
        new, append = self._new, self._digests.append
        for at in range(0, whole, page):
            append(new(view[at : at + page]).digest())
        self._partial = bytes(view[whole:])

    def digests(self) -> bytes:
        """Return all digests, joined; call once, at the end."""
        if self._partial:
            self._digests.append(self._new(self._partial).digest())
            self._partial = b""
        return b"".join(digest[: self._size] for digest in self._digests)


# Below this both usual page sizes are hashed: which one is right stands at the end of the file.
BOTH_PAGE_SIZES_BYTES = 4 << 20
_COMMIT = re.compile(rb"\0COMMIT_SHA\0([0-9a-f]{40})\0")
_COMPILER = re.compile(rb"\0CXX_COMPILER\0([^\0]{1,4096})\0")
_FLAGS = (b" -DUSE_MPS", b"-DUSE_PTHREADPOOL")


@dataclass(slots=True, kw_only=True)
class Metallib:
    """One `__TEXT,metal_*` section; `fault` says why the rest could not be read."""

    section: str
    section_size: int
    header: MetallibHeader | None = None
    functions: FunctionList | None = None
    fault: str | None = None


@dataclass(slots=True, kw_only=True)
class Contents:
    """What the pass over one Mach-O has found; a part that could not be read is named in `faults`."""

    signature: Signature | None = None
    bad_pages: int = 0
    unhashed: tuple[CodeDirectory, ...] = ()
    exports: Exports = field(default_factory=Exports)
    undefined: frozenset[bytes] = frozenset()
    object_files: tuple[str, ...] = ()
    metallibs: dict[str, Metallib] = field(default_factory=dict)
    commit: str | None = None
    cxx_compiler: str | None = None
    cxx_flags: tuple[str, ...] = ()
    strings: bytes = b""
    metal_sources: int = 0
    faults: dict[str, str] = field(default_factory=dict)


class ContentsWatcher:
    """A `stream.Watcher` that asks for the ranges its Mach-O's header names."""

    def __init__(
        self,
        macho: MachO,
        *,
        size: int,
        kept: Allowance | None = None,
        keep_strings: bool = False,
        reads_imports: bool = True,
    ) -> None:
        self.found = Contents()
        self._macho = macho
        self._reads_imports = reads_imports
        self._keep_strings = keep_strings
        self._collector = RangeCollector(kept)
        self._hashers = _page_hashers(macho, size)
        self._spans: list[tuple[Range, bytes]] = []
        self._undefined: tuple[int, ...] = ()
        self._objects: tuple[int, ...] = ()
        for section in macho.sections:
            if section.segment == "__TEXT" and section.name.startswith("metal_"):
                self._ask_for_metallib(section)
            elif section.full_name == "__TEXT,__cstring" and section.size:
                self._want("strings", Range(offset=section.offset, size=section.size), self._take_strings)
        for name, deliver in (("signature", self._take_signature), ("exports_trie", self._take_exports)):
            if (extent := macho.linkedit.get(name)) and extent.size:
                self._want(name, extent, deliver)
        if (table := macho.symbols) and table.count:
            self._want("symbols", Range(offset=table.offset, size=16 * table.count), self._take_symbols)

    def update(self, data: bytes) -> None:
        """Take the next bytes of the file."""
        self._collector.update(data)
        for hasher in self._hashers:
            hasher.update(data)

    def finish(self) -> Contents:
        """Return what was found, after the last piece."""
        if self.found.signature:
            self.judge_pages(self._hashers, self.found.signature.directories)
        try:
            self.found.undefined = frozenset(self._strings_at(self._undefined))
            objects = set(self._strings_at(self._objects))
            self.found.object_files = tuple(sorted(path.decode("utf-8", "backslashreplace") for path in objects))
        except Malformed as error:
            self.found.faults["strings of symbols"] = str(error)
        self._spans.clear()
        return self.found

    def judge_pages(self, hashers: Iterable[PageHasher], directories: Iterable[CodeDirectory]) -> None:
        """Count the pages whose hash is not the signed one; what no hasher fits stays `unhashed`."""
        made = {(hasher.page_size, hasher.hash_name): hasher.digests() for hasher in hashers}
        left = []
        for directory in directories:
            digests = made.get((directory.page_size, directory.hash_name))
            if digests is None:
                left.append(directory)
            else:
                self.found.bad_pages += directory.bad_pages(digests)
        self.found.unhashed = tuple(left)

    def _want(self, what: str, extent: Range, deliver: Callable[[bytes], None]) -> None:
        def guarded(data: bytes) -> None:
            self.found.faults.pop(what, None)
            try:
                deliver(data)
            except Malformed as error:
                self.found.faults[what] = str(error)

        self.found.faults[what] = "lies outside the file"
        try:
            self._collector.want(extent, guarded)
        except Malformed as error:
            self.found.faults[what] = str(error)

    def _ask_for_metallib(self, section: Section) -> None:
        metallib = self.found.metallibs[section.name] = Metallib(section=section.name, section_size=section.size)
        what = f"metallib {section.name}"

        def take_header(data: bytes) -> None:
            try:
                header = metallib.header = parse_header(data)
                # The list must end inside the section, whatever the header says of the file's size.
                extent = Range(offset=section.offset + header.list_offset, size=header.list_size + 4)
                if extent.end > section.offset + section.size:
                    raise Malformed(f"its list of functions ends {extent.end - section.offset} bytes into the section")
            except Malformed as error:
                metallib.fault = str(error)
                return
            metallib.fault = "its list of functions lies outside the file"
            self._want(f"{what} functions", extent, take_functions)

        def take_functions(data: bytes) -> None:
            try:
                functions = FunctionList(data)
                functions.check()
                metallib.functions, metallib.fault = functions, None
            except Malformed as error:
                metallib.fault = str(error)

        if section.size < METALLIB_HEADER.size:
            metallib.fault = f"{section.size} bytes hold no metallib"
        else:
            metallib.fault = "lies outside the file"
            self._want(what, Range(offset=section.offset, size=METALLIB_HEADER.size), take_header)

    def _take_signature(self, data: bytes) -> None:
        self.found.signature = parse_signature(data)

    def _take_exports(self, data: bytes) -> None:
        self.found.exports = Exports(data)

    def _take_strings(self, data: bytes) -> None:
        found = self.found
        data = b"\0" + data
        found.metal_sources = data.count(b"#include <metal_stdlib>")
        if match := _COMMIT.search(data):
            found.commit = match[1].decode()
        if match := _COMPILER.search(data):
            found.cxx_compiler = match[1].decode("utf-8", "backslashreplace")
        found.cxx_flags = _flags_among(data)
        if self._keep_strings:
            found.strings = data

    def _take_symbols(self, data: bytes) -> None:
        table = self._macho.symbols
        assert table is not None
        if self._reads_imports:
            self._undefined = undefined_string_offsets(table, data)
        self._objects = object_string_offsets(data)
        for span in string_spans((*self._undefined, *self._objects), table.strings):
            self._want(f"strings at {span.offset}", span, self._keep_span(span))

    def _keep_span(self, span: Range) -> Callable[[bytes], None]:
        return lambda data: self._spans.append((span, data))

    def _strings_at(self, offsets: tuple[int, ...]) -> Iterable[bytes]:
        if not offsets or not self._spans or self._macho.symbols is None:
            return
        base = self._macho.symbols.strings.offset
        spans = iter(sorted(self._spans, key=lambda entry: entry[0].offset))
        span, data = next(spans)
        left = MOST_SYMBOLS_BYTES
        for offset in sorted(set(offsets)):
            while base + offset >= span.end:
                following = next(spans, None)
                if following is None:
                    return
                span, data = following
            begin = base + offset - span.offset
            if begin >= 0:
                end = data.find(b"\0", begin, begin + MOST_SYMBOL_BYTES)
                name = data[begin : end if end >= 0 else begin + MOST_SYMBOL_BYTES]
                # Names may share their ends, and so be many times as long as the string table.
                left -= len(name)
                if left < 0:
                    raise Malformed(f"the names of its symbols have more than {MOST_SYMBOLS_BYTES} bytes")
                yield name


def _flags_among(strings: bytes) -> tuple[str, ...]:
    """Return the compiler flags that torch.__config__ shows: the string with the first telling one."""
    at = next((at for flag in _FLAGS if (at := strings.find(flag)) >= 0), None)
    if at is None:
        return ()
    end = strings.find(b"\0", at)
    whole = strings[strings.rfind(b"\0", 0, at) + 1 : end if end >= 0 else len(strings)]
    return tuple(whole[:MOST_FLAGS_BYTES].decode("utf-8", "backslashreplace").split())


def hashers_for(directories: Iterable[CodeDirectory]) -> list[PageHasher]:
    """Return what hashes the pages as these directories do, for a second pass."""
    return [
        PageHasher(
            limit=directory.code_limit,
            page_size=directory.page_size,
            hash_name=directory.hash_name.partition("-")[0],
            hash_size=directory.hash_size,
        )
        for directory in directories
    ]


def _page_hashers(macho: MachO, size: int) -> list[PageHasher]:
    """Return what hashes the pages as the signature at the end of the file probably does.

    Its room tells: 4 KiB pages with SHA-256 need 32 bytes for each. codesign leaves some
    20 kB free, ld does not, so that a small file tells nothing and is hashed both ways.
    """
    extent = macho.linkedit.get("signature")
    if extent is None:
        return []
    sizes = [4096, 16384] if size <= BOTH_PAGE_SIZES_BYTES else [4096 if extent.size >= extent.offset // 128 else 16384]
    return [PageHasher(limit=extent.offset, page_size=page_size) for page_size in sizes]
