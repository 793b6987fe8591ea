"""One small program for each library: `run(device)` returns tensors, which are the same on mps as on the CPU.

Nothing is fetched by a program: models are drawn. `python programs.py NAME` runs one, in the Python of a torch.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch


def _numbers(*sizes: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


def _gradients(module: Any, out: Any) -> list[torch.Tensor]:
    out.square().mean().backward()
    return [out, *(each.grad for each in module.parameters() if each.grad is not None)]


def transformers(device: str) -> list[torch.Tensor]:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    model = GPT2LMHeadModel(
        GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=2)
    )
    model = model.eval().to(device)
    words = torch.randint(5, 99, (2, 11), generator=torch.Generator().manual_seed(1)).to(device)
    said = model.generate(input_ids=words, do_sample=False, max_new_tokens=8, pad_token_id=0)
    return [said, *_gradients(model, model(input_ids=words).logits)]


def accelerate(device: str) -> list[torch.Tensor]:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)  # one for a process, otherwise
    torch.manual_seed(0)
    accelerator = Accelerator(cpu=device == "cpu")
    assert accelerator.device.type == device
    model, optimizer = accelerator.prepare(model := torch.nn.Linear(6, 3), torch.optim.AdamW(model.parameters()))
    accelerator.backward(model(_numbers(5, 6).to(device)).square().mean())
    optimizer.step()
    return list(model.parameters())


def x_transformers(device: str) -> list[torch.Tensor]:
    from x_transformers import Decoder, TransformerWrapper

    torch.manual_seed(0)
    layers = Decoder(dim=32, depth=1, heads=4, attn_gate_values=True)
    model = TransformerWrapper(num_tokens=64, max_seq_len=32, attn_layers=layers).to(device)
    words = torch.randint(1, 64, (2, 16), generator=torch.Generator().manual_seed(1))
    return _gradients(model, model(words.to(device)))


def einops(device: str) -> list[torch.Tensor]:
    from einops import rearrange, reduce, repeat

    x = _numbers(2, 3, 8, 8).to(device)
    parts = rearrange(x, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=4)
    return [parts, reduce(x, "b c h w -> b c", "max"), repeat(parts[0], "n d -> n r d", r=3)]


def torchmetrics(device: str) -> list[torch.Tensor]:
    import torchmetrics.functional.classification as metrics

    scores = _numbers(40, 5).softmax(-1).to(device)
    labels = torch.randint(0, 5, (40,), generator=torch.Generator().manual_seed(1)).to(device)
    binned = metrics.multiclass_average_precision(scores, labels, 5, average=None, thresholds=11)
    return [binned, metrics.multiclass_accuracy(scores, labels, 5), metrics.multiclass_auroc(scores, labels, 5)]


def pytorch_lightning(device: str) -> list[torch.Tensor]:
    import pytorch_lightning as lightning

    class Module(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(6, 1)

        def training_step(self, batch: Any, _: int) -> Any:
            return (self.layer(batch[0]) - batch[1]).square().mean()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    torch.manual_seed(0)
    module, x = Module(), _numbers(32, 6)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)
    plain = {
        "logger": False,
        "enable_checkpointing": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    lightning.Trainer(accelerator=device, devices=1, max_epochs=2, **plain).fit(module, data)
    return list(module.parameters())


def safetensors(device: str) -> list[torch.Tensor]:
    from safetensors.torch import load_file, save_file

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.safetensors"
        save_file({"a": _numbers(3, 4).to(device), "b": _numbers(2).half().to(device)}, file)
        return list(load_file(file, device=device).values())


def diffusers(device: str) -> list[torch.Tensor]:
    from diffusers import DDIMScheduler, UNet2DModel

    torch.manual_seed(0)
    blocks = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    model = UNet2DModel(sample_size=8, block_out_channels=(32, 64), layers_per_block=1, **blocks).to(device)
    scheduler = DDIMScheduler()
    scheduler.set_timesteps(2)
    picture = _numbers(1, 3, 8, 8).to(device)
    for step in scheduler.timesteps:
        picture = scheduler.step(model(picture, step).sample, step, picture).prev_sample
    return _gradients(model, model(picture, 1).sample)


def peft(device: str) -> list[torch.Tensor]:
    from peft import LoraConfig, get_peft_model

    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    model = get_peft_model(plain, LoraConfig(target_modules=["0", "2"], init_lora_weights=False)).to(device)
    return _gradients(model, model(_numbers(5, 6).to(device)))


def torch_geometric(device: str) -> list[torch.Tensor]:
    from torch_geometric.nn import GATConv, GCNConv

    torch.manual_seed(0)
    edges = torch.tensor([[0, 1, 2, 3, 3], [1, 2, 3, 0, 1]]).to(device)
    one, other = GCNConv(4, 8).to(device), GATConv(8, 3).to(device)
    out = other(one(_numbers(4, 4).to(device), edges).relu(), edges)
    return [*_gradients(one, out), *(each.grad for each in other.parameters() if each.grad is not None)]


def kornia(device: str) -> list[torch.Tensor]:
    from kornia import color, filters, geometry

    x = _numbers(1, 3, 12, 12).sigmoid().to(device)
    turned = geometry.rotate(x, torch.tensor([30.0]).to(device))
    return [filters.gaussian_blur2d(x, (3, 3), (1.0, 1.0)), filters.sobel(x), color.rgb_to_lab(x), turned]


def torchdiffeq(device: str) -> list[torch.Tensor]:
    from torchdiffeq import odeint

    torch.manual_seed(0)
    field = torch.nn.Linear(3, 3).to(device)
    times = torch.linspace(0.0, 1.0, 5).to(device)
    return _gradients(field, odeint(lambda _, y: field(y), _numbers(2, 3).to(device), times, method="rk4"))


PROGRAMS: dict[str, Callable[[str], list[torch.Tensor]]] = {
    each.__name__: each
    for each in (
        *(transformers, accelerate, x_transformers, einops, torchmetrics, pytorch_lightning, safetensors, diffusers),
        *(peft, torch_geometric, kornia, torchdiffeq),
    )
}


def main(name: str) -> None:
    """Run a program on both devices; fail where the results differ."""
    for place, (cpu, mps) in enumerate(zip(PROGRAMS[name]("cpu"), PROGRAMS[name]("mps"), strict=True)):
        torch.testing.assert_close(
            mps.detach().cpu(), cpu.detach(), rtol=1e-3, atol=1e-4, msg=lambda text, at=place: f"result {at}: {text}"
        )
    print("same")


if __name__ == "__main__":
    main(sys.argv[1])
