"""Make tests/device/device_suite/coverings.json anew: the rows of the tables in the test files.

python tests/sensitivity/cover.py
"""

from __future__ import annotations

import importlib
import json

import suite_in_process
from device_suite import covering


def main() -> None:
    """Write the file; one row of one table a line."""
    covering.making = True
    for path in sorted(suite_in_process.DEVICE_TESTS.glob("test_*.py")):
        if "covering(" in path.read_text(encoding="utf-8"):
            importlib.import_module(path.stem)
    tables = []
    for name, table in sorted(covering.made.items()):
        rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in table["rows"])
        tables.append(f'{json.dumps(name)}: {{"factors": {json.dumps(table["factors"])},\n"rows": [\n{rows}]}}')
        print(f"{name}: {len(table['rows'])} rows")
    covering.STORE.write_text("{\n" + ",\n".join(tables) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
