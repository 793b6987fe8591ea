"""Writes benchmarks/README.md from benchmarks/results.json; `record` does so by itself with each new figure.

nox -s benchmark -- readme [--check]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from shared.page import README, RESULTS, render


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where it is out of step")
    arguments = parser.parse_args(argv)
    text = render(json.loads(RESULTS.read_text(encoding="utf-8")))
    if arguments.check:
        if not README.is_file() or README.read_text(encoding="utf-8") != text:
            print("benchmarks/README.md is out of step: nox -s benchmark -- readme", file=sys.stderr)
            return 1
        return 0
    README.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
