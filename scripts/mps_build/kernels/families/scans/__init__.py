"""Running sums, products, minima and maxima along a dimension."""
