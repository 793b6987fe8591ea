"""Faults for `verify_kernels --plant`: functions from the LLVM IR of a kernel to another text, by rule."""

from __future__ import annotations

import re

NAMES = ("sums", "products", "whole", "less", "signed", "equal", "loads")


def sums(text: str) -> str:
    """The first sum is a difference."""
    return re.sub(r"= fadd ((?:\w+ )*?)(half|float)", r"= fsub \1\2", text, count=1)


def products(text: str) -> str:
    """The first product is a sum."""
    return re.sub(r"= fmul ((?:\w+ )*?)(half|float)", r"= fadd \1\2", text, count=1)


def whole(text: str) -> str:
    """The first sum of whole numbers is a difference."""
    return re.sub(r"= add (?:nuw |nsw )*i(\d+)", r"= sub i\1", text, count=1)


def less(text: str) -> str:
    """The first comparison of unsigned numbers is turned around."""
    return text.replace("icmp ult", "icmp ugt", 1)


def signed(text: str) -> str:
    """The first comparison of signed numbers is turned around."""
    return text.replace("icmp slt", "icmp sgt", 1)


def equal(text: str) -> str:
    """The first equality is an inequality."""
    return text.replace("icmp eq", "icmp ne", 1)


def loads(text: str) -> str:
    """The first address is that of element 0."""
    address = r"(getelementptr inbounds (?:float|half|i\d+), \S+ %\S+, i64) %\w+"
    return re.sub(address, r"\1 0", text, count=1)
