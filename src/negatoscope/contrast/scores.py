"""How alike two sets of vectors are: equation (4) of Contrastive Attention, and footnote 2's two other forms.

    x (G, X, d), y (G, Y, d)  ->  M (G, h, X, Y), one matrix for each of the h heads, before the softmax

G sets are met at once, each x with the y of its own set. Weights are stored so that they are applied as `x @ W`, as
printed. Biases are left out, as in the paper's equations.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

Form = Literal["dot", "bilinear", "additive"]


class Dot(nn.Module):
    """M = x Wx (y Wy)^T / sqrt(d), Vaswani et al. 2017.

    Reckoned as ((x Wx) Wy^T) y^T: x is a few studies, y the whole pool, which is so never projected.
    """

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.Wx, self.Wy = matrices(heads, d), matrices(heads, d)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        rows = x.reshape(-1, x.shape[-1]) @ self.Wx  # (h, G X, d)
        rows = rows @ self.Wy.transpose(1, 2) / math.sqrt(x.shape[-1])
        return meet(rows, y)


class Bilinear(nn.Module):
    """M = x W y^T with one matrix a head, You et al. 2016."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.W = matrices(heads, d)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return meet(x.reshape(-1, x.shape[-1]) @ self.W, y)


class Additive(nn.Module):
    """M_ij = tanh(x_i Wx + y_j Wy) w, Bahdanau et al. 2015. Every pair goes through d tanh: the slow one."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.Wx, self.Wy = matrices(heads, d), matrices(heads, d)
        self.w = matrices(heads, d, 1)  # (h, d, 1)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        # A head at a time: (G, X, Y, d) of one head is large enough.
        each = [
            ((x @ Wx).unsqueeze(2) + (y @ Wy).unsqueeze(1)).tanh() @ w for Wx, Wy, w in zip(self.Wx, self.Wy, self.w)
        ]
        return torch.stack(each, 1).squeeze(-1)  # (G, h, X, Y)


FORMS: dict[Form, type[Dot] | type[Bilinear] | type[Additive]] = {
    "dot": Dot,
    "bilinear": Bilinear,
    "additive": Additive,
}


def matrices(heads: int, rows: int, columns: int | None = None) -> nn.Parameter:
    """(h, rows, columns), each head's drawn for itself as Glorot and Bengio 2010 do."""
    weight = nn.Parameter(torch.empty(heads, rows, columns or rows))
    for one in weight.data:
        nn.init.xavier_uniform_(one)
    return weight


def meet(rows: Tensor, y: Tensor) -> Tensor:
    """Rows (h, G X, d), y (G, Y, d) -> (G, h, X, Y): one product a set, all heads in it."""
    h, (G, Y, d) = len(rows), y.shape
    rows = rows.view(h, G, -1, d).transpose(0, 1).reshape(G, -1, d)  # (G, h X, d)
    return (rows @ y.transpose(1, 2)).view(G, h, -1, Y)


def gather(shares: Tensor, y: Tensor) -> Tensor:
    """softmax(M) y: shares (G, h, X, Y), y (G, Y, d) -> (G, h, X, d). The values are y itself, with no projection."""
    G, h, X, Y = shares.shape
    return (shares.reshape(G, h * X, Y).to(y.dtype) @ y).view(G, h, X, -1)
