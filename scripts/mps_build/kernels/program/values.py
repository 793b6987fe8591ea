"""Inputs: the values at which arithmetic breaks, and seeded random ones, as bytes of an element type."""

from __future__ import annotations

import itertools
import math
import random
import struct
from bisect import bisect_left
from functools import cache

from .dtypes import DTYPES, DType

_FINITE = (0.0, 1.0, 0.5, 1.5, 2.0, 3.0, 0.1, 0.7, 10.0, 11.2, 100.0, 1000.0, 0.999, 1.001, 0.25, 4.5, 7.0, 20.0, 60.5,
           88.7, 89.5, 1e-3, 1e-7, 1e-12, 1e-20, 1e-30, 1e5, 1e9, 2.97e20, 9.3667e16, 1e30, 189.0, 2.5, 3.5, 1.57079637,
           3.14159274, 0.785398, 16777216.0, 16777217.0, 2147483648.0, 65504.0, 47904.0, 1e-38, 1e-45,
           0.33333334)  # fmt: skip


def pack(dtype: DType, numbers: list[float] | list[int]) -> bytes:
    """Return numbers as elements; complex types take two for each. Floats out of range become infinite.

    >>> pack(DTYPES["half"], [1.0, 1e6]).hex(), pack(DTYPES["char"], [-1, 300]).hex()
    ('003c007c', 'ff2c')
    """
    if dtype.name == "bfloat":
        return _pack_bfloat(numbers)
    if dtype.name.startswith("float8"):
        return b"".join(_pack_float8(dtype, float(each)) for each in numbers)
    if dtype.is_exact:
        bits = 8 * dtype.size
        unsigned = (
            [int(each) & ((1 << bits) - 1) for each in numbers]
            if dtype.kind != "bool"
            else [int(bool(n)) for n in numbers]
        )
        return struct.pack(f"<{len(numbers)}{dtype.struct.upper()}", *unsigned)
    return _pack_floats(dtype.struct, numbers)


def _pack_floats(code: str, numbers: list[float] | list[int]) -> bytes:
    try:
        return struct.pack(f"<{len(numbers)}{code}", *numbers)
    except OverflowError:
        return b"".join(_pack_float(code, float(each)) for each in numbers)


def _pack_float(code: str, number: float) -> bytes:
    try:
        return struct.pack(f"<{code}", number)
    except OverflowError:
        return struct.pack(f"<{code}", math.copysign(math.inf, number))


def _pack_bfloat(numbers: list[float] | list[int]) -> bytes:
    """Round floats to their upper halves, to even; every NaN is one."""
    words = struct.unpack(f"<{len(numbers)}I", _pack_floats("f", numbers))
    upper = [
        0x7FC0 if word & 0x7FFFFFFF > 0x7F800000 else (word + 0x7FFF + (word >> 16 & 1)) >> 16 & 0xFFFF
        for word in words
    ]
    return struct.pack(f"<{len(upper)}H", *upper)


def _pack_float8(dtype: DType, number: float) -> bytes:
    half = struct.unpack("<H", _pack_float("e", number))[0]
    return bytes([(half >> 8) if dtype.name == "float8_e5m2" else _e4m3(number)])


def _e4m3(number: float) -> int:
    if number != number or abs(number) > 448:  # noqa: PLR0124
        return 0x7F
    sign = 0x80 if math.copysign(1, number) < 0 else 0
    return sign | bisect_left(_between_e4m3(), abs(number))


@cache
def _between_e4m3() -> list[float]:
    """Return the middle between each code's number and the next one's, which goes to the lower."""
    return [(_from_e4m3(code) + _from_e4m3(code + 1)) / 2 for code in range(0x7E)]


@cache
def _from_e4m3(code: int) -> float:
    exponent, fraction = code >> 3 & 15, code & 7
    return float(fraction * 2.0**-9 if exponent == 0 else (8 + fraction) * 2.0 ** (exponent - 10))


def every_e4m3(code: int) -> float:
    """Return the number that a code of float8_e4m3fn stands for; the two NaNs give 1.

    >>> every_e4m3(0x38), every_e4m3(0xB8), every_e4m3(1), every_e4m3(0x7E)
    (1.0, -1.0, 0.001953125, 448.0)
    """
    magnitude = _from_e4m3(code & 0x7F) if code & 0x7F != 0x7F else 1.0
    return -magnitude if code & 0x80 else magnitude


@cache
def edges(name: str) -> tuple[float, ...] | tuple[int, ...]:
    """Return the values of a type at which arithmetic breaks."""
    dtype = DTYPES[name]
    if dtype.kind == "bool":
        return (0, 1)
    if dtype.is_exact:
        bits = 8 * dtype.size
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if dtype.kind == "signed" else (0, (1 << bits) - 1)
        near = {0, 1, 2, 3, 5, 7, 10, 16, 31, 32, 33, 63, 64, 100, 127, 128, 255, low, low + 1, high, high - 1}
        near |= {-each for each in near}
        near |= {(1 << b) + d for b in range(4, bits, 4) for d in (-1, 0, 1)}
        return tuple(sorted(each for each in near if low <= each <= high))
    tiny, smallest, largest = _limits(name)
    positive = (
        *_FINITE,
        tiny,
        smallest,
        smallest * 0.75,
        largest,
        math.nextafter(1.0, 2) if name == "double" else 1.0 + _eps(name),
    )
    return tuple(dict.fromkeys([*positive, *(-each for each in positive), -0.0, math.inf, -math.inf, math.nan]))


def _limits(name: str) -> tuple[float, float, float]:
    """Return the smallest subnormal, the smallest normal and the largest number."""
    if name in ("half", "half2"):
        return 2.0**-24, 2.0**-14, 65504.0
    if name == "bfloat":
        return 2.0**-133, 2.0**-126, 3.3895313892515355e38
    if name.startswith("float8"):
        return 2.0**-9, 2.0**-6, 448.0
    return 2.0**-149, 2.0**-126, 3.4028234663852886e38


def _eps(name: str) -> float:
    return {"half": 2.0**-10, "half2": 2.0**-10, "bfloat": 2.0**-7}.get(name, 2.0**-23)


POOL = 4096


def _one(random_: random.Random, dtype: DType) -> float:
    """Return a random number of a type: half of them small, the others of any size."""
    pick = random_.random()
    if dtype.kind == "bool":
        return random_.randrange(2)
    if dtype.is_exact:
        return random_.randrange(256) - 128 if pick < 0.5 else random_.getrandbits(64)
    if pick < 0.5:
        return random_.uniform(-4, 4)
    if pick < 0.7:
        return random_.uniform(-120, 120)
    tiny, _, largest = _limits(dtype.name)
    exponent = random_.uniform(math.log2(tiny), math.log2(largest))
    return random_.choice((-1.0, 1.0)) * float(2.0**exponent)


@cache
def _pool(seed: int, name: str) -> tuple[bytes, bytes]:
    """Return the edges of a type and random values, each shuffled, as bytes."""
    random_, dtype = random.Random(f"{seed}:{name}"), DTYPES[name]
    numbers = list(edges(name))
    random_.shuffle(numbers)
    if dtype.kind == "complex":
        pairs = list(itertools.product(numbers, repeat=2))
        random_.shuffle(pairs)
        numbers = [each for pair in pairs[:512] for each in pair]
    components = 2 if dtype.kind == "complex" else 1
    return pack(dtype, numbers), pack(dtype, [_one(random_, dtype) for _ in range(POOL * components)])


@cache
def _pair_pool(seed: int, first: str, second: str) -> tuple[tuple[bytes, bytes], tuple[bytes, bytes]]:
    """Return pairs of operands: edges against edges; then equal, neighbouring and independent values."""
    random_, one, two = random.Random(f"{seed}:{first}:{second}"), DTYPES[first], DTYPES[second]
    product = list(itertools.product(edges(first), edges(second)))
    random_.shuffle(product)
    others = []
    for _ in range(POOL):
        x, pick = _one(random_, one), random_.random()
        near = x * (1 + 2.0**-20) if not (one.is_exact or two.is_exact) else x
        others.append((x, x if pick < 0.1 else near if pick < 0.2 else _one(random_, two)))
    return _packed_pairs(one, two, product), _packed_pairs(one, two, others)


def _packed_pairs(one: DType, two: DType, pairs: list[tuple[float, float]]) -> tuple[bytes, bytes]:
    left = [_finite(one, x) for x, _ in pairs]
    right = [_finite(two, y) for _, y in pairs]
    if one.kind == "complex" and two.kind == "complex":
        left, right = left[: len(left) // 2 * 2], right[: len(right) // 2 * 2]
    elif one.kind == "complex":
        left = [part for each in left for part in (each, 0.5)]
    elif two.kind == "complex":
        right = [part for each in right for part in (each, 0.5)]
    return pack(one, left), pack(two, right)


def _turned(data: bytes, size: int, begin: int, count: int) -> bytes:
    """Return `count` elements from a pool, from element `begin` on, and from the beginning again after its end."""
    if not data or not count:
        return b""
    at = begin * size % len(data)
    whole = data[at:] + data[:at]
    return (whole * (count * size // len(data) + 1))[: count * size]


class Values:
    """A seeded source of inputs: equal seed, kernel and call give equal bytes."""

    def __init__(self, seed: int, salt: str) -> None:
        self.random = random.Random(f"{seed}:{salt}")
        self.seed = seed

    def sweep(self, dtype: DType, count: int) -> bytes:
        """Return `count` elements: edges for up to a half of them, then small and any-sized numbers."""
        first, rest = _pool(self.seed, dtype.name)
        part = min(len(first) // dtype.size, (count + 1) // 2)
        begin = self.random.getrandbits(16)
        return _turned(first, dtype.size, begin, part) + _turned(rest, dtype.size, begin, count - part)

    def pairs(self, first: DType, second: DType, count: int) -> tuple[bytes, bytes]:
        """Return two operands: edges against edges, equal and neighbouring values, and independent ones."""
        (left, right), (more_left, more_right) = _pair_pool(self.seed, first.name, second.name)
        part = min(len(left) // first.size, (count + 1) // 2)
        begin = self.random.getrandbits(16)
        return (
            _turned(left, first.size, begin, part) + _turned(more_left, first.size, begin, count - part),
            _turned(right, second.size, begin, part) + _turned(more_right, second.size, begin, count - part),
        )

    def moderate(self, dtype: DType, count: int, low: float = -2.0, high: float = 2.0) -> bytes:
        """Return ordinary values between two bounds (whole numbers for integers), for sums and products of many."""
        wanted = count * (2 if dtype.kind == "complex" else 1)
        if dtype.is_exact:
            bottom = max(int(low), 0) if dtype.kind in ("unsigned", "bool") else int(low)
            return pack(dtype, self.integers(wanted, bottom, max(bottom, int(high))))
        span, one = high - low, self.random.random
        return pack(dtype, [low + span * one() for _ in range(wanted)])

    def whole(self, dtype: DType, count: int, low: int, high: int) -> bytes:
        """Return whole numbers from low to high, both included: indices, lengths."""
        return pack(dtype, self.integers(count, low, high))

    def integers(self, count: int, low: int, high: int) -> list[int]:
        """Return so many random integers from `low` to `high`, both included."""
        if high - low >= 1 << 32:  # choices() draws by way of a float
            return [self.random.randint(low, high) for _ in range(count)]
        return self.random.choices(range(low, high + 1), k=count)


def _finite(dtype: DType, number: float) -> float:
    """A float that goes into an integer operand: NaN and infinities have no integer."""
    if dtype.is_exact and isinstance(number, float):
        return int(number) if math.isfinite(number) else 0
    return number


@cache
def every_value(size: int) -> bytes:
    """Return all values of a type of one or two bytes, as bytes."""
    return struct.pack(f"<{1 << 8 * size}{'BH'[size - 1]}", *range(1 << 8 * size))


def fill_pools(seed: int) -> None:
    """Make the pools of all types before workers fork: they share them."""
    for name in DTYPES:
        _pool(seed, name)
        _pair_pool(seed, name, name)
