"""Generated cases: operators described as data, rows that pair their conditions, one judge for all.

`spec.py` is what a description is, `tables_*.py` describe, `rows.json` pairs the conditions (made by
tests/sensitivity/pairing.py), `asking.py` asks a row, `listed.py` makes the cases.
"""
