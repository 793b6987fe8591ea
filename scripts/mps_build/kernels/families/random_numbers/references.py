"""Philox, and what is drawn from it."""

from __future__ import annotations

import math
import struct
from typing import Any

import torch

_MASK = 0xFFFFFFFF


ROUNDS = 9  # one less than usual: the last round is left out


def _philox(seed: Any, index: Any, rounds: Any = ROUNDS, turned: Any = False) -> Any:
    """Return four words for one index; `turned`: with the halves of each product exchanged (up to 2.12)."""
    a, b, c, d = 0, 0, index >> 32 & _MASK, index & _MASK
    high, low = seed >> 32 & _MASK, seed & _MASK
    for _ in range(rounds):
        one, two = a * 0xD2511F53, c * 0xCD9E8D57
        upper, lower = (one >> 32, two >> 32), (one & _MASK, two & _MASK)
        if turned:
            upper, lower = lower, upper
        a, b, c, d = high ^ b ^ upper[1], lower[1], low ^ d ^ upper[0], lower[0]
        high, low = high + 0x9E3779B9 & _MASK, low + 0xBB67AE85 & _MASK
    return a, b, c, d


def _single(x: Any) -> Any:
    """Round to float32."""
    return struct.unpack("<f", struct.pack("<f", x))[0]


_UNIT = _single(4.656612873077392578125e-10 * (1 - 2.0**-24))


def _uniform(word: Any) -> Any:
    """A number from 0 to 1."""
    return _single(_single(float(word & 0x7FFFFFFF)) * _UNIT)


def _words(seed: Any, base: Any, count: Any) -> Any:
    words: list[int] = []
    index = base
    while len(words) < count:
        words += _philox(seed, index)
        index += 1
    return words[:count]


def drawn(kind: Any, seed: Any, base: Any, count: Any, one: Any, two: Any, bits: Any = 32, alone: Any = False) -> Any:
    """Return the numbers that a kernel must draw; `alone`: each from the first words of an index of its own."""
    if kind == "random_int":
        return _whole(seed, base, count, one, two, bits)
    if alone:
        each = 2 if kind in ("normal", "log_normal") else 1
        words = [_philox(seed, base + at, turned=True)[0] for at in range(each * count)]
    else:
        words = _words(seed, base, -(-count // 4) * 4)
    units = [_uniform(each) for each in words]
    if kind in ("normal", "log_normal"):
        numbers = []
        for first, second in zip(units[::2], units[1::2], strict=True):
            radius = math.sqrt(-2 * math.log(max(first, 2.0**-23)))
            angle = _single(second * _single(2 * math.pi))
            numbers += [one + two * radius * math.cos(angle), one + two * radius * math.sin(angle)]
        if kind == "log_normal":
            numbers = [math.exp(each) for each in numbers]
    elif kind == "uniform":
        numbers = [one + (two - one) * each for each in units]
    elif kind == "cauchy":
        numbers = [one + two * math.tan(_single(_single(math.pi) * _single(each - 0.5))) for each in units]
    elif kind == "exponential":
        numbers = [-math.log(_single(1 - each)) / one for each in units]
    elif kind == "geometric":
        numbers = [math.ceil(_single(_single(math.log(max(each, 2.0**-23))) / _single(one))) for each in units]
    else:
        numbers = [float(each < _single(one)) for each in units]
    return torch.tensor(numbers[::2] if len(numbers) == 2 * count and alone else numbers[:count], dtype=torch.float64)


def _whole(seed: Any, base: Any, count: Any, low: Any, span: Any, bits: Any) -> Any:
    if bits == 64:
        words = _words(seed, base, -(-count // 2) * 4)
        numbers = [high << 32 | rest for high, rest in zip(words[::2], words[1::2], strict=True)]
    else:
        numbers = _words(seed, base, count)
        if not span:
            numbers = [each - (each >> 31 << 32) for each in numbers]
    numbers = [low + (each % span if span else each) for each in numbers[:count]]
    return torch.tensor([(each + 2**63) % 2**64 - 2**63 for each in numbers], dtype=torch.int64)


def drawn_mask(seed: Any, base: Any, count: Any, chance: Any) -> Any:
    """True with the given chance, by the generator's words from `base` on."""
    return drawn("bernoulli", seed, base, count, chance, 0) != 0


def drawn_dropout(x: Any, seed: Any, base: Any, chance: Any, scale: Any) -> Any:
    """Dropout by that mask: what is kept is scaled, the rest is 0."""
    kept = drawn_mask(seed, base, x.numel(), chance).reshape(x.shape)
    return torch.where(kept, x * scale, torch.zeros_like(x))


def drawn_bernoulli_each(probabilities: Any, seed: Any, base: Any) -> Any:
    """1 with each element's own probability, else 0."""
    units = torch.tensor([_uniform(each) for each in _words(seed, base, probabilities.numel())], dtype=torch.float64)
    return (units < probabilities.to(torch.float64)).to(torch.float64)


def drawn_poisson(rates: Any, seed: Any, base: Any, apart: Any) -> Any:
    """Numbers of factors whose product stays above exp(-rate); each thread has `apart` indices of its own."""
    numbers = []
    for place, rate in enumerate(rates.to(torch.float64).tolist()):
        count, product, least = -1, 1.0, _single(math.exp(-rate))
        while product > least:
            count += 1
            product = _single(product * _uniform(_philox(seed, base + place * apart + count)[0]))
        numbers.append(max(count, 0))
    return torch.tensor(numbers, dtype=torch.float64)


def drawn_shuffle(seed: Any, base: Any, count: Any) -> Any:
    """A Fisher-Yates shuffle from the end."""
    numbers = list(range(count))
    words = _words(seed, base, count)
    for step, last in enumerate(range(count - 1, 0, -1)):
        other = words[step] % (last + 1)
        numbers[last], numbers[other] = numbers[other], numbers[last]
    return torch.tensor(numbers, dtype=torch.int64)


def drawn_islands(data: Any, keys: Any, seed: Any, base: Any) -> Any:
    """Each run of equal keys is shuffled, with numbers of its own."""
    out, begin, keys = data.tolist(), 0, keys.tolist()
    while begin < len(keys):
        end = begin
        while end < len(keys) and keys[end] == keys[begin]:
            end += 1
        order = drawn_shuffle(seed, base + begin, end - begin).tolist()
        out[begin:end] = [out[begin + each] for each in order]
        begin = end
    return torch.tensor(out, dtype=data.dtype)


def drawn_moments(x: Any, mean: Any, variance: Any, fourth: Any, low: Any, high: Any) -> Any:
    """Return the numbers themselves where their distribution is the right one, else what they should be near.

    Args:
        x: rows of independent numbers; mean, variance, fourth: one for each row (fourth: of (x - mean)**4).
    """
    n = x.shape[1]
    x64 = x.to(torch.float64)
    expected, spread, kurtosis = (torch.tensor(each, dtype=torch.float64) for each in (mean, variance, fourth))
    unit = (x64 - expected.unsqueeze(1)) / spread.sqrt().unsqueeze(1)
    slack = {torch.bfloat16: 2.0**-7, torch.float16: 2.0**-10}.get(x.dtype, 2.0**-20)
    good = unit.mean(1).abs() < 5 / math.sqrt(n) + slack * (1 + expected.abs() / spread.sqrt())
    width = ((kurtosis / spread**2 - 1).clamp(min=0.5) / n).sqrt()
    good &= (unit.square().mean(1) - 1).abs() < 6 * width + 4 * slack * (1 + expected.abs() / spread.sqrt())
    for lag in (1, 2, 3, 4, n // 2):
        good &= (unit[:, lag:] * unit[:, :-lag]).mean(1).abs() < 6 / math.sqrt(n - lag) + slack
    good &= (x64 >= low).all(1) & (x64 <= high).all(1)
    return torch.where(good.unsqueeze(1), x64, expected.unsqueeze(1) + torch.zeros_like(x64))
