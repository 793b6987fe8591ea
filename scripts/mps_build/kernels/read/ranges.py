"""Some ranges of a large member of an archive, in one pass."""

from __future__ import annotations

from collections.abc import Sequence

from ...inspection.audit.archive import Member
from ...inspection.audit.macho import Section
from ...inspection.audit.sources import Source


def cut(source: Source, member: Member, sections: Sequence[Section]) -> list[bytes]:
    """Return some sections of a large member in one pass."""
    found = [bytearray() for _ in sections]
    end = max((each.offset + each.size for each in sections), default=0)
    position = 0
    for piece in source.pieces(member) if sections else ():
        for section, data in zip(sections, found, strict=True):
            begin = max(section.offset, position)
            stop = min(section.offset + section.size, position + len(piece))
            if begin < stop:
                data += piece[begin - position : stop - position]  # noqa: PLW2901
        position += len(piece)
        if position >= end:
            break
    return [bytes(each) for each in found]
