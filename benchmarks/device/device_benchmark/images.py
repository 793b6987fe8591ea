"""ResNet-50 and VGG-16 for 224x224 images, after their papers: https://arxiv.org/abs/1512.03385 and 1409.1556."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

_VGG16 = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
_RESNET50 = ((64, 3), (128, 4), (256, 6), (512, 3))


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 with a shortcut; the stride sits in the 3x3, as everybody trains it since 2016."""

    def __init__(self, given: int, width: int, stride: int) -> None:
        super().__init__()
        self.narrow = nn.Sequential(nn.Conv2d(given, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU())
        self.middle = nn.Sequential(
            nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.wide = nn.Sequential(nn.Conv2d(width, width * 4, 1, bias=False), nn.BatchNorm2d(width * 4))
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or given != width * 4:
            self.shortcut = nn.Sequential(
                nn.Conv2d(given, width * 4, 1, stride=stride, bias=False), nn.BatchNorm2d(width * 4)
            )

    def forward(self, x: torch.Tensor) -> Any:
        return torch.relu(self.wide(self.middle(self.narrow(x))) + self.shortcut(x))


def resnet50() -> nn.Module:
    """Return ResNet-50 for 1000 classes: 25.6 million weights."""
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    given = 64
    for stage, (width, blocks) in enumerate(_RESNET50):
        for block in range(blocks):
            layers.append(Bottleneck(given, width, 2 if stage and not block else 1))
            given = width * 4
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(given, 1000))
    _draw(model)
    return model


def vgg16() -> nn.Module:
    """Return VGG-16 for 1000 classes: 138.4 million weights, most of them in the first linear layer."""
    layers: list[nn.Module] = []
    given = 3
    for width, convolutions in _VGG16:
        for _ in range(convolutions):
            layers += [nn.Conv2d(given, width, 3, padding=1), nn.ReLU()]
            given = width
        layers.append(nn.MaxPool2d(2))
    layers += [nn.Flatten(), nn.Linear(512 * 7 * 7, 4096), nn.ReLU(), nn.Dropout(0.5)]
    layers += [nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4096, 1000)]
    model = nn.Sequential(*layers)
    _draw(model)
    return model


def _draw(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.01)
            nn.init.zeros_(module.bias)
