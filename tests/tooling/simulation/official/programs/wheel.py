"""Run with an official wheel: what its CPU code and its Python must do. Prints a line `NAME ok`, or what went wrong."""

from __future__ import annotations

import importlib
import io
import os
import subprocess
import sys
import threading
import traceback

import torch


def training() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    inputs = torch.randn(64, 8)
    targets, losses = inputs.sum(1, keepdim=True), []
    for _ in range(30):
        optimiser.zero_grad()
        loss = (model(inputs) - targets).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    # The same numbers as torch 2.13.0 on x86-64 Linux, and as every release since 1.12.
    assert abs(losses[0] - 8.676647) < 1e-4, losses[0]
    assert abs(losses[-1] - 0.418909) < 1e-4, losses[-1]


def convolution() -> None:
    layers = [torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.MaxPool2d(2), torch.nn.Flatten()]
    result = torch.nn.Sequential(*layers, torch.nn.Linear(8 * 49, 4))(torch.randn(4, 3, 16, 16))
    result.sum().backward()
    assert tuple(result.shape) == (4, 4)


def errors() -> None:
    try:
        torch.ones(3).view(7)
    except RuntimeError as error:
        assert "shape '[7]' is invalid" in str(error)
        return
    raise AssertionError("no error")


def linear_algebra() -> None:
    matrix = torch.randn(6, 6, dtype=torch.float64)
    left, values, right = torch.linalg.svd(matrix)
    assert torch.allclose(left * values @ right, matrix)
    assert torch.allclose(torch.linalg.eigh(torch.eye(4)).eigenvalues, torch.ones(4))
    assert torch.allclose(matrix @ torch.linalg.inv(matrix), torch.eye(6, dtype=torch.float64), atol=1e-8)
    complex_matrix = torch.randn(4, 4, dtype=torch.complex64)
    assert torch.allclose(
        complex_matrix @ torch.linalg.solve(complex_matrix, torch.eye(4) + 0j), torch.eye(4) + 0j, atol=1e-3
    )


def threads() -> None:
    found = []
    started = [threading.Thread(target=lambda i=i: found.append(int(torch.ones(10).sum()) + i)) for i in range(4)]
    for each in started:
        each.start()
    for each in started:
        each.join()
    assert sorted(found) == [10, 11, 12, 13]


def save_and_load() -> None:
    file = io.BytesIO()
    torch.save({"a": torch.arange(5), "b": [torch.ones(2)]}, file)
    file.seek(0)
    assert torch.load(file)["a"].tolist() == [0, 1, 2, 3, 4]


def script() -> None:
    assert torch.jit.script(torch.nn.ReLU())(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]


def arrays() -> None:
    numpy = importlib.import_module("numpy")
    assert torch.from_numpy(numpy.arange(3.0)).sum().item() == 3.0
    assert torch.ones(2).numpy().tolist() == [1.0, 1.0]


def workers() -> None:
    loader = torch.utils.data.DataLoader([torch.tensor(i * i) for i in range(8)], batch_size=4, num_workers=2)
    assert [each.tolist() for each in loader] == [[0, 1, 4, 9], [16, 25, 36, 49]]


def processes() -> None:
    program = "import torch, sys; sys.exit(int(torch.ones(5).sum().item()))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 5
    child = os.fork()
    if not child:
        os._exit(int((torch.ones(3) + 1).sum().item()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 6


def fourier_and_sort() -> None:
    assert torch.fft.fft(torch.ones(4)).real.tolist() == [4.0, 0.0, 0.0, 0.0]
    values = torch.randn(1000)
    assert torch.equal(torch.sort(values).values, torch.tensor(sorted(values.tolist())))


def compiled() -> None:
    if not hasattr(torch, "compile"):  # before 2.0
        return

    def add(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
        return torch.sin(left) + right

    values = torch.randn(4)
    try:
        result = torch.compile(add, backend="eager")(values, values)
    except RuntimeError as error:
        assert "not yet supported" in str(error)  # 2.0 says so of Python 3.11
        return
    assert torch.equal(result, torch.sin(values) + values)


CHECKS = (
    *(training, convolution, errors, linear_algebra, threads, save_and_load, script, arrays, workers, processes),
    *(fourier_and_sort, compiled),
)


def main() -> int:
    wanted, failed = sys.argv[1:], 0
    for check in CHECKS:
        if wanted and check.__name__ not in wanted:
            continue
        try:
            check()
            print(check.__name__, "ok", flush=True)
        except BaseException:
            failed += 1
            print(check.__name__, traceback.format_exc(), flush=True)
    return 3 if failed == 0 else 1


if __name__ == "__main__":  # a worker of Python 3.14 imports this file anew, as on a Mac
    sys.exit(main())
