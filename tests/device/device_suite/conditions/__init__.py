"""Generated cases: operators described as data, rows that pair their conditions, one judge for all.

`operators/` describes (engine/description.py says how), `rows.json` pairs the conditions (made by
tests/sensitivity/pairing.py), `asking.py` asks a row, `listed.py` makes the cases.
"""
