"""Sorts, radix sorts kernel by kernel, medians by histograms of digits, and searches in what is sorted."""
