"""All tables, by the area that each describes: one test file asks one of them."""

from __future__ import annotations

from . import (
    tables_binary,
    tables_indexing,
    tables_matrices,
    tables_movement,
    tables_neural,
    tables_pointwise,
    tables_reductions,
)

TABLES = (
    tables_pointwise.t,
    tables_binary.t,
    tables_reductions.t,
    tables_movement.t,
    tables_indexing.t,
    tables_neural.t,
    tables_matrices.t,
)
