"""Regressions in normalisation: the catalogue's entries, each as the smallest case that shows it."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from engine import Cases
from engine.acts import backward, leaf

cases = Cases("regressions")


def _row(d: Any) -> Any:
    return d.normal(4, 4 + d.k), d.normal(4 + d.k), d.normal(4 + d.k), d.normal(4, 4 + d.k)


# https://github.com/pytorch/pytorch/issues/183825: layer_norm parameter gradients wrong and nondeterministic when
# input does not require grad
@cases.case("issue-183825", issue="183825", make=_row, terms=16)
def _parameters_learn_although_the_input_is_frozen(x: Any, w: Any, b: Any, grad: Any) -> Any:
    answers = []
    for wants in (False, True):
        given = leaf(x) if wants else x
        weight, bias = leaf(w), leaf(b)
        normed = F.layer_norm(given, (x.shape[-1],), weight, bias)
        answers.append(backward(normed, weight, bias, grad=grad))
    return answers


# https://github.com/pytorch/pytorch/issues/131750: layer_norm on a row slice normalises rows 0..n instead
@cases.case("issue-131750", issue="131750", make=lambda d: d.normal(6 + d.k, 4), terms=4)
def _row_slice_is_normalised_where_it_lies(x: Any) -> Any:
    return F.layer_norm(x[1:3], (4,)), F.layer_norm(x[1:3].clone(), (4,)), torch.layer_norm(x[3:], (4,))


def _residual_group_norms(x: Any, weights: Any, biases: Any) -> Any:
    start = leaf(x)
    learned = [(leaf(w), leaf(b)) for w, b in zip(weights, biases)]
    y = start
    for weight, bias in learned:
        y = y + F.group_norm(y, 8, weight, bias)
    return backward(y, start, *(one for pair in learned for one in pair))


def _stack(depth: int) -> Any:
    def make(d: Any) -> Any:
        return (
            d.normal(1, 32, 8, 8 + d.k),
            [d.normal(32) for _ in range(depth)],
            [d.normal(32) for _ in range(depth)],
        )

    return make


# https://github.com/pytorch/pytorch/issues/88331: GroupNorm backward NaN (1.13.0 regression; SD CLIP guidance,
# textual inversion)
cases.add("issue-88331", _residual_group_norms, issue="88331", make=_stack(10), terms=4096)
# https://github.com/pytorch/pytorch/issues/99981: GroupNorm training crashes kernel
cases.add("issue-99981", _residual_group_norms, issue="99981", make=_stack(1), terms=256)


def _trained_batch_norm(x: Any, w: Any, b: Any, mean: Any, var: Any) -> Any:
    return F.batch_norm(x, mean, var, w, b, training=True, momentum=0.1)


def _channels(count: int) -> Any:
    def make(d: Any) -> Any:
        c = count
        return (
            d.normal(4, 6, 8, 8 + d.k),
            d.normal(c),
            d.normal(c),
            d.normal(c),
            d.uniform(0.5, 2, c),
            d.normal(4, 6, 8, 8 + d.k),
        )

    return make


# https://github.com/pytorch/pytorch/issues/133520: batch_norm wrong on sliced input (regression; FLUX)
@cases.case("issue-133520-columns", issue="133520", make=_channels(3), terms=256)
def _batch_norm_of_a_channel_slice(x: Any, w: Any, b: Any, mean: Any, var: Any, grad: Any) -> Any:
    base, weight, bias = leaf(x), leaf(w), leaf(b)
    return backward(_trained_batch_norm(base[:, 1:4], weight, bias, mean, var), base, weight, bias, grad=grad[:, :3])


@cases.case("issue-133520-rows", issue="133520", make=_channels(6), terms=256)
def _batch_norm_of_a_row_slice(x: Any, w: Any, b: Any, mean: Any, var: Any, grad: Any) -> Any:
    base, weight, bias = leaf(x), leaf(w), leaf(b)
    evaluated = F.batch_norm(x[2:], mean, var, w, b, training=False)
    trained = backward(_trained_batch_norm(base[2:], weight, bias, mean, var), base, weight, bias, grad=grad[2:])
    return evaluated, trained


# https://github.com/pytorch/pytorch/issues/134580: batch_norm2d wrong for channels_last input
@cases.case("issue-134580", issue="134580", make=_channels(6), terms=256)
def _batch_norm_of_channels_last(x: Any, w: Any, b: Any, mean: Any, var: Any, grad: Any) -> Any:
    given, weight, bias = leaf(x.contiguous(memory_format=torch.channels_last)), leaf(w), leaf(b)
    return backward(_trained_batch_norm(given, weight, bias, mean, var), given, weight, bias, grad=grad)


def _batch_norm_backward(training: bool, affine: bool) -> Any:
    def act(x: Any, w: Any, b: Any, mean: Any, var: Any, grad: Any) -> Any:
        answers = []
        for given in (x.contiguous(memory_format=torch.channels_last), x.permute(0, 1, 3, 2), x.permute(3, 1, 0, 2)):
            start, weight, bias = leaf(given), leaf(w), leaf(b)
            normed = F.batch_norm(
                start, mean.clone(), var.clone(), weight if affine else None, bias if affine else None, training
            )
            back = grad.contiguous(memory_format=torch.channels_last).reshape(given.shape)
            answers.append(backward(normed, start, *((weight, bias) if affine else ()), grad=back))
        return answers

    return act


# https://github.com/pytorch/pytorch/issues/175189: BatchNorm2d backward wrong on channels_last / permuted input; LSTM
# input grad too
for _training in (True, False):
    for _affine in (True, False):
        cases.add(
            f"issue-175189-{'train' if _training else 'eval'}-{'affine' if _affine else 'plain'}",
            _batch_norm_backward(_training, _affine),
            issue="175189",
            make=_channels(6),
            terms=256,
        )
