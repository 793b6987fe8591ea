"""Medians by histograms of digits."""
