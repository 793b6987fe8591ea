"""Objective-C++ of a PyTorch tree, checked on any system: flags, headers, diagnostics, version guards."""
