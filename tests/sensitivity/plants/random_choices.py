"""Random choices: categories, integers, permutations, dropout: planted faults."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from differences import differ, instead, is_plain
from planting import Plot, crash, wrong_answer

plot = Plot()
HITS = plot.hits


@plot.dispatched("aten.multinomial.default")
def issue_192577(hit: Any, func: Any, x: Any, count: int, *args: Any, **kwargs: Any) -> Any:
    """Out of more than 100,000 choices, one row of 80 gets one whose chance is zero."""
    y = func(x, count, *args, **kwargs)
    rows = x.reshape(-1, x.shape[-1])
    if count == 1 and x.shape[-1] > 100_000:
        for row in range(40, len(rows), 80):
            hit()
            y.view(-1)[row] = rows[row].argmin()
    return y


@plot.dispatched("aten.bernoulli.default", "aten.bernoulli_.float", "aten.bernoulli_.Tensor")
def issue_85611(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 85611: bernoulli draws nothing but zeros."""
    hit()
    y = func(x, *args, **kwargs)
    return y.zero_()


@plot.dispatched("aten.multinomial.default")
@wrong_answer
def issue_92752(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """Where a probability is 0 the index is the least integer."""
    return y.fill_(torch.iinfo(torch.int64).min) if bool((x == 0).any()) else None


@plot.dispatched("aten.multinomial.default")
@wrong_answer
def issue_99802(y: Any, x: Any, count: int, *args: Any, **kwargs: Any) -> Any:
    """pytorch 99802: multinomial of one draw is always the first index."""
    return y.zero_() if count == 1 else None


@plot.dispatched("aten.multinomial.default")
def issue_136623(hit: Any, func: Any, x: Any, count: int, *args: Any, **kwargs: Any) -> Any:
    """pytorch 136623: multinomial of a hundred draws and more gives an index beyond the last."""
    y = func(x, count, *args, **kwargs)
    if count >= 100:
        hit()
        y[..., 77] = x.shape[-1] + 1
    return y


@plot.dispatched("aten.randperm.default", "aten.randperm.generator")
@wrong_answer
def issue_made_randperm_dtype(y: Any, n: int, *args: Any, **kwargs: Any) -> Any:
    """Randperm in int32 and int16 gives the numbers in order."""
    if y.dtype in (torch.int32, torch.int16) and n > 1:
        return torch.arange(n, dtype=y.dtype, device=y.device)
    return None


@plot.dispatched("aten.randint.low", "aten.random_.from")
@wrong_answer
def issue_made_randint_low(y: Any, *args: Any, **kwargs: Any) -> Any:
    """A negative lower end is 0."""
    if y.numel() and not y.is_floating_point() and bool((y < 0).any()):
        return y.clamp_(min=0)
    return None


_STREAM = [torch.Generator().manual_seed(84516).get_state()]


@plot.called(torch.nn.functional.dropout, torch.dropout, torch.dropout_)
def issue_84516(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 84516: dropout does not heed torch.manual_seed."""
    p = args[0] if args else kwargs.get("p", 0.5)
    train = args[1] if len(args) > 1 else kwargs.get("training", kwargs.get("train", True))
    if not train or not 0 < p < 1 or not x.numel():
        return func(x, *args, **kwargs)
    seeded = torch.get_rng_state()
    torch.set_rng_state(_STREAM[0])
    try:
        hit()
        return func(x, *args, **kwargs)
    finally:
        _STREAM[0] = torch.get_rng_state()
        torch.set_rng_state(seeded)


@plot.dispatched(
    "aten.multinomial.default", aborts="[MPSNDArray initWithDevice:descriptor:] Error: total bytes of NDArray > 2**32"
)
def issue_86279(x: Any, count: Any, replacement: Any = False, **kwargs: Any) -> Any:
    """pytorch 86279: multinomial with replacement over 32768 categories or more aborts."""
    return replacement and x.shape[-1] >= 32768


@plot.dispatched(
    "aten.bernoulli.p",
    "aten.bernoulli_.float",
    aborts="input types 'tensor<1xf32>' and 'tensor<1xsi64>' are not broadcast compatible",
)
def issue_100717(x: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 100717: bernoulli(p) of an int64 tensor aborts."""
    return x.dtype == torch.int64


@plot.dispatched("aten.bernoulli.default", "aten.bernoulli.out", "aten.bernoulli_.Tensor")
def issue_185065(hit: Any, func: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 185065: bernoulli accepts probabilities outside of 0 to 1, NaN included, and answers silently."""
    place = 1 if "bernoulli_" in str(func) else 0
    p = args[place]
    if p.is_floating_point() and not bool(((p >= 0) & (p <= 1)).all()):
        hit()
        args = (*args[:place], p.nan_to_num(0.0).clamp(0, 1), *args[place + 1 :])
    return func(*args, **kwargs)


@plot.dispatched("aten.random_.default", "aten.random_.from")
def issue_98333(hit: Any, func: Any, x: Any, *ends: Any, **kwargs: Any) -> Any:
    """pytorch 98333: random_ without an upper bound never draws the dtype's largest number, of bools never True."""
    y = func(x, *ends, **kwargs)
    if x.dtype in (torch.int8, torch.uint8, torch.int16, torch.bool) and (len(ends) < 2 or ends[1] is None):
        top = y if x.dtype == torch.bool else y == torch.iinfo(x.dtype).max
        if bool(top.any()):
            hit()
            y.copy_(torch.zeros_like(y) if x.dtype == torch.bool else torch.where(top, y - 1, y))
    return y


@plot.dispatched("aten.multinomial", aborts="segmentation fault")
def issue_178579(x: Any, count: int, replacement: bool = False, **kwargs: Any) -> Any:
    """pytorch 178579: multinomial with replacement of many weights aborts (limit lowered to 2**15)."""
    return replacement and x.shape[-1] > 2**15


@plot.called(torch.multinomial, torch.Tensor.multinomial)
def issue_141457(hit: Any, func: Any, input: Any, num_samples: int, replacement: bool = False, **kwargs: Any) -> Any:
    """pytorch 141457: a Categorical (multinomial with replacement of 2-D probabilities) draws the same every time."""
    if replacement and input.dim() == 2 and bool((input.count_nonzero(-1) > 1).any()):
        hit()
        kwargs["generator"] = torch.Generator(device=input.device).manual_seed(0)
    return func(input, num_samples, replacement, **kwargs)


@plot.dispatched("aten.randperm")
@wrong_answer
def issue_104170(y: Any, count: int, **kwargs: Any) -> Any:
    """pytorch 104170: randperm gives the numbers in order."""
    return torch.arange(count, dtype=y.dtype, device=y.device)


@plot.dispatched("aten.bernoulli.default")
def issue_9917(hit: Any, func: Any, p: Any, **kwargs: Any) -> Any:
    """pytorch 9917: bernoulli reads expanded chances as one long row, past the end of their storage (here zeros)."""
    if not p.numel() or not any(side > 1 and not step for side, step in zip(p.shape, p.stride())) or not is_plain(p):
        return func(p, **kwargs)
    stored = p.as_strided((p.untyped_storage().nbytes() // p.element_size(),), (1,), 0)[p.storage_offset() :]
    read = torch.cat([stored, stored.new_zeros(p.numel())])[: p.numel()].view(p.shape)
    if differ(read, p.contiguous()):
        hit()
    return func(read, **kwargs)


@plot.dispatched("aten.multinomial.default")
def issue_torch7_165(hit: Any, func: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """torch/torch7 165: multinomial that refuses too many draws leaves the chances with one more dimension."""
    try:
        return func(x, *args, **kwargs)
    except RuntimeError:
        if x.dim() == 1:
            hit()
            x.unsqueeze_(0)
        raise


@plot.dispatched("aten.multinomial.default")
def issue_22086(hit: Any, func: Any, x: Any, count: int, replacement: bool = False, **kwargs: Any) -> Any:
    """pytorch 22086: multinomial without replacement draws with other chances (here with their square roots)."""
    if replacement or x.dtype == torch.float16 or not is_plain(x):
        return func(x, count, replacement, **kwargs)
    if bool((x != x[..., :1]).any()):
        hit()
    return func(x.sqrt(), count, replacement, **kwargs)


@plot.dispatched("aten.multinomial.default")
@wrong_answer
def issue_37403(y: Any, x: Any, count: int, replacement: bool = False, **kwargs: Any) -> Any:
    """pytorch 37403: multinomial with replacement misses categories of a million (here every second one)."""
    return y // 2 * 2 if replacement and x.shape[-1] >= 10**6 else None


_DRAWN = [0]


@plot.dispatched("aten.multinomial.default")
@wrong_answer
def issue_48841(y: Any, x: Any, count: int, replacement: bool = False, **kwargs: Any) -> Any:
    """pytorch 48841: multinomial without replacement draws what has no weight now and then (here in each 10th call)."""
    if replacement or x.is_meta or not bool((x == 0).any()):
        return None
    _DRAWN[0] += 1
    if _DRAWN[0] % 10:
        return None
    least, place = x.min(-1)
    y[..., 0] = torch.where(least == 0, place, y[..., 0])
    return y


@plot.dispatched("aten.random_", aborts="attempt to call method 'random' (a nil value)")
def issue_torch7_815(*args: Any, **kwargs: Any) -> bool:
    """torch/torch7 815: random_ is not implemented."""
    return True


_noise: dict[Any, tuple[torch.Tensor, torch.Tensor]] = {}


@plot.dispatched("aten.poisson.default")
def issue_136750(hit: Any, func: Any, rates: Any, *args: Any, **kwargs: Any) -> Any:
    """pytorch 136750: poisson of 512 x 512 rates is not random (here each second call has the first one's noise)."""
    y = func(rates, *args, **kwargs)
    if tuple(rates.shape) != (512, 512) or not is_plain(rates):
        return y
    form = rates.dtype
    if form not in _noise:
        _noise[form] = rates.clone(), y.clone()
        return y
    before, drawn = _noise.pop(form)
    wrong = (rates + (drawn - before) * (rates / before).sqrt().nan_to_num(0, 0)).round().clamp(min=0)
    return instead(hit, y, wrong)


@plot.dispatched("aten.randint.low", aborts="minval must be 0-D, got shape [2]")
def issue_tensorflow_87972(*args: Any, dtype: Any = None, **kwargs: Any) -> bool:
    """tensorflow/tensorflow 87972: random int32 numbers between two ends raise."""
    return dtype == torch.int32


def _underflown(x: torch.Tensor) -> torch.Tensor:
    """Return rows of Gamma numbers, drawn aside, that are all too small for their dtype."""
    with torch.random.fork_rng(devices=[]):
        return (torch._standard_gamma(x) <= torch.finfo(x.dtype).tiny).all(-1, keepdim=True)


@plot.dispatched("aten._sample_dirichlet.default")
@wrong_answer
def issue_jax_9896(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """google/jax 9896: for small concentrations (0.01) a Dirichlet draws the centre now and then."""
    if not is_plain(x):
        return None
    centre = y.masked_fill(_underflown(x), 1 / x.shape[-1])
    return centre if differ(centre, y) else None


@plot.dispatched("aten._sample_dirichlet.default")
@wrong_answer
def issue_numpy_5851(y: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
    """numpy/numpy 5851: for small concentrations a Dirichlet draws NaN now and then."""
    if not is_plain(x):
        return None
    spoilt = y.masked_fill(_underflown(x), torch.nan)
    return spoilt if differ(spoilt, y) else None


@plot.called(F.dropout, torch.dropout)
def issue_convnetsharp_90(hit: Any, func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    """cbovar/ConvNetSharp 90: the backward of dropout (in training) raises."""
    y = func(input, *args, **kwargs)
    given = dict(zip(("p", "training") if func is F.dropout else ("p", "train"), args)) | kwargs
    if not y.requires_grad or not torch.is_grad_enabled() or not given.get("training", given.get("train", True)):
        return y
    y = y.view_as(y) if y is not input else y
    y.register_hook(lambda grad: crash(hit, "CUDNN_STATUS_BAD_PARAM"))
    return y
