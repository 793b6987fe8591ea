"""All tables, by the area that each describes: one test file asks one of them."""

from __future__ import annotations

from . import (
    tables_binary,
    tables_conversions,
    tables_convolution,
    tables_factories,
    tables_fourier,
    tables_grids,
    tables_indexing,
    tables_linear_algebra,
    tables_losses,
    tables_matrices,
    tables_movement,
    tables_norms,
    tables_padding,
    tables_pointwise,
    tables_pooling,
    tables_reductions,
    tables_resampling,
    tables_scattering,
    tables_searching,
    tables_sorting,
)

TABLES = (
    tables_pointwise.t,
    tables_binary.t,
    tables_reductions.t,
    tables_sorting.t,
    tables_searching.t,
    tables_movement.t,
    tables_padding.t,
    tables_conversions.t,
    tables_factories.t,
    tables_scattering.t,
    tables_indexing.t,
    tables_convolution.t,
    tables_pooling.t,
    tables_resampling.t,
    tables_grids.t,
    tables_norms.t,
    tables_losses.t,
    tables_matrices.t,
    tables_linear_algebra.t,
    tables_fourier.t,
)
