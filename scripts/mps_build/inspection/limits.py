"""The error of every reader of foreign bytes, and the budget of one wheel: what an audit reads of it at most.

Behind each number, what torch 2.15.0 has. A wheel that goes beyond one of them is rejected with what was too much (Z1,
A1, M5, R1, T2). They hold the time of the worst wheel below ten seconds and its memory below 1 GB; `CPU_SECONDS` is the
net below them.
"""

from __future__ import annotations


class Malformed(Exception):
    """The bytes are not the structure they claim to be."""


# The archive.
MOST_MEMBERS = 65_000  # 13 062
MOST_NAME_BYTES = 1_023  # 137; PATH_MAX of macOS is 1024 with its NUL
MOST_DIRECTORY_BYTES = 8_000_000  # 1.6 MB
MOST_LOCAL_EXTRA_BYTES = 1 << 20  # 0, in all members together
MOST_UNPACKED_BYTES = 2_000_000_000  # 565 MB
# Deflate cannot pass 1032:1; official members stay below 27:1, and small ones do no harm.
MOST_RATIO, RATIO_MATTERS_FROM_BYTES = 300, 50_000_000

# Text files.
MOST_TEXT_BYTES = 1 << 20  # METADATA 34 kB, WHEEL 120 B, version.py 290 B
MOST_RECORD_BYTES = 32 << 20  # 1.5 MB
MOST_FOLDS = 10_000  # 0; lines of one header of METADATA, some hold a licence
MOST_TAGS = 4_096  # 1
MOST_LEAK_BYTES = 32 << 20  # 1.1 MB of .cmake files, in all together
MOST_LEAKS = 1_000  # 0, of one file

# Compiled files.
MOST_BINARIES = 1_000  # 11
MOST_COMMAND_BYTES = 1 << 18  # 4 kB of load commands in one file
MOST_COMMANDS = 1_024  # 40
MOST_ALL_COMMAND_BYTES = 4 << 20  # 25 kB in all files together
MOST_SECTIONS = 255  # 30; a symbol's section is a number of one byte (MAX_SECT of mach-o/nlist.h)
MOST_RPATHS = 64  # 1
MOST_LOOKUPS = 200_000  # 60 dependencies times search paths, in all files together
MOST_KEPT_BYTES = 64 << 20  # 6.9 MB kept of a file at once: symbols, strings, metallibs' lists, signature
MOST_ALL_KEPT_BYTES = 192 << 20  # 23 MB in all files together
MOST_UNDEFINED = 200_000  # 1 239
MOST_OBJECTS = 20_000  # 0; a debug build has one path for each object file
MOST_SYMBOL_BYTES = 4_096  # longer names are cut
MOST_SYMBOLS_BYTES = 32 << 20  # 42 kB of the names of one file's undefined symbols and object files
MOST_FLAGS_BYTES = 1 << 16  # 1.5 kB
MOST_NODES = 200_000  # 55 941 of an exports trie
MOST_FUNCTIONS = 200_000  # 19 455 of a metallib

# What is reported.
MOST_FAULTS = 1_000  # of an archive's structure
MOST_FINDINGS = 500  # of one rule
MOST_EVIDENCE = 1_000  # characters of one finding

# The net: this much, and a second for each so many unpacked bytes as its size tells (2.1 s for 565 MB).
CPU_SECONDS, BYTES_A_SECOND = 7.0, 150_000_000
