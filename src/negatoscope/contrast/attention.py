"""Contrastive Attention (Liu, Yin, Wu, Ge, Zhang, Sun: Contrastive Attention for Automatic Chest X-ray Report
Generation, Findings of ACL 2021): what sets a study apart from normal ones, between any encoder and any decoder.

    Att(x, y) = softmax(x Wx (y Wy)^T / sqrt(d)) y                                     (4)
    P'        = [Att_1(v, P); ...; Att_n(v, P)]          the closest normal images     (5), (6)
    v^c       = mean of the rows of Att([v; P'], [v; P'])         what is common       (7)
    v^d       = v - v^c                                      what sets v apart         (8)
    v'        = ReLU([v; v^d] W'),   v'_i = ReLU([v_i; v^d] W')      the same W'       (9), (10)

Symbols: B studies, N patches v_i, overall vector v, width d, P the normality pool of N_P overall vectors of normal
training studies, n heads. K is the number of places that are contrasted: 1, the overall vector, as in the paper; or,
at `level: patch` (the paper's first idea for the future), the overall vector and each of the N patches, each with its
like in the normal studies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn import functional as F

from negatoscope.contrast.scores import FORMS, Form, gather
from negatoscope.errors import BadInput, WrongUse
from negatoscope.settings import Settings
from negatoscope.vision.sight import Sight


class AttentionSettings(Settings):
    """A recipe's `contrast: {attention: ...}`; the defaults are the paper's."""

    heads: int = Field(6, ge=1)
    """n, of Aggregate Attention: Table 5 has 1, 2, 4, 6, 8, 10."""
    pool: int = Field(1000, ge=2)
    """N_P: normal training studies to compare with."""
    aggregate: bool = True
    """Without, Differentiate Attention stands alone over [v; P]: Table 5 (b)."""
    form: Form = "dot"
    """Footnote 2: dot, bilinear or additive."""
    level: Literal["overall", "patch"] = "overall"
    """patch: each patch is contrasted with the same place of the normal studies, besides the overall vector."""
    normal: Literal["auto", "tag", "label"] = "auto"
    """What makes a study normal: the MeSH tag 'normal', or CheXpert's 'No Finding'. auto: tags where there are any."""
    refresh: int = Field(1, ge=0)
    """Epochs between two refreshes of the pool while what makes its vectors learns; 0 fills it once."""
    seed: int = 1
    """Of the draw of the normal studies."""

    @model_validator(mode="after")
    def _affordable(self) -> AttentionSettings:
        if not self.aggregate and (self.level == "patch" or self.form == "additive"):
            raise ValueError("aggregate: false goes with level: overall and with form: dot or bilinear")
        if self.level == "patch" and self.form == "additive":
            raise ValueError("level: patch goes with form: dot or bilinear")
        return self


class AggregateAttention(nn.Module):
    """(5), (6): n ways of being close to a normal study."""

    def __init__(self, d: int, heads: int, form: Form = "dot") -> None:
        super().__init__()
        self.scores = FORMS[form](d, heads)

    def forward(self, v: Tensor, pool: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
        """v (K, B, d), P (K, N_P, d), allowed (K or 1, B, N_P) -> P' (K, B, n, d), and whom it is made of, and how
        much of each (K, B, n, N_P)."""
        M = widened(self.scores(v, pool)).masked_fill(~allowed.unsqueeze(1), -torch.inf)  # (K, n, B, N_P)
        shares = M.softmax(-1)
        return gather(shares, pool).transpose(1, 2), shares.transpose(1, 2)


class DifferentiateAttention(nn.Module):
    """(7): what a study has in common with normal ones."""

    def __init__(self, d: int, form: Form = "dot") -> None:
        super().__init__()
        self.scores = FORMS[form](d, 1)

    def forward(self, v: Tensor, closest: Tensor) -> Tensor:
        """v (K, B, d), P' (K, B, n, d) -> v^c (K, B, d)."""
        rows = torch.cat([v.unsqueeze(2), closest], 2)  # (K, B, n + 1, d)
        sets = rows.flatten(0, 1)
        shares = widened(self.scores(sets, sets)).softmax(-1)  # (K B, 1, n + 1, n + 1)
        # The mean of the rows of shares @ rows is the mean row of shares, @ rows.
        return gather(shares.mean(2, keepdim=True), sets).view_as(v)

    def alone(self, v: Tensor, pool: Tensor, allowed: Tensor) -> tuple[Tensor, Tensor]:
        """The same over [v; P], without Aggregate Attention: v (B, d), P (N_P, d), allowed (B, N_P) -> v^c (B, d),
        and what of v's own row falls on P (B, N_P).

        How normal studies meet each other is the same for every study of the batch, so those scores are reckoned once.
        """
        with torch.autocast(v.device.type, enabled=False):
            v, pool = widened(v), widened(pool)
            among = self.scores(pool[None], pool[None])[0, 0]  # (N_P, N_P)
            to_v = self.scores(pool[None], v[None])[0, 0]  # (N_P, B)
            of_v = self.scores(v[None], pool[None])[0, 0]  # (B, N_P)
            itself = self.scores(v.unsqueeze(1), v.unsqueeze(1)).view(-1, 1)  # (B, 1)
            common, first = [], []
            for b, may in enumerate(allowed):  # study by study: each has (N_P + 1)^2 shares
                top = torch.cat([itself[b], of_v[b]])  # (1 + N_P): the row of v
                rows = torch.cat([top[None], torch.cat([to_v[:, b : b + 1], among], 1)[may]])
                shares = rows.masked_fill(~F.pad(may, (1, 0), value=True), -torch.inf).softmax(-1)
                mean = shares.mean(0)
                common.append(mean[0] * v[b] + mean[1:] @ pool)
                first.append(shares[0, 1:])
            return torch.stack(common), torch.stack(first)


@dataclass(frozen=True)
class Contrasted:
    """What Contrastive Attention found, before it is worked into the features. Place 0 is the overall vector."""

    shares: Tensor  # (B, K, n, N_P): how much of each normal study each head took; n = 1 where there is no aggregation
    common: Tensor  # (B, K, d), v^c
    apart: Tensor  # (B, K, d), v^d


class ContrastiveAttention(nn.Module):
    """A Sight to a Sight of the same shape. Its normality pool is saved with its weights."""

    pool: Tensor  # (N_P, K, d)
    there: Tensor  # (N_P, K) bool: False where a normal study lacks the view of that patch
    said: Tensor  # (bytes,) uint8: JSON about the pool, above all its study ids
    made_after: Tensor  # () long: epochs that the reporter had learned when the vectors were made
    FROM_DATA = ("pool", "there", "said")
    """Buffers whose size is decided by the studies, not by the settings."""

    def __init__(self, settings: AttentionSettings, width: int) -> None:
        super().__init__()
        self.settings, self.width = settings, width
        self.aggregate = AggregateAttention(width, settings.heads, settings.form) if settings.aggregate else None
        self.differentiate = DifferentiateAttention(width, settings.form)
        self.update = nn.Linear(2 * width, width, bias=False)  # W'
        self.register_buffer("pool", torch.zeros(0, 1, width))
        self.register_buffer("there", torch.zeros(0, 1, dtype=torch.bool))
        self.register_buffer("said", torch.zeros(0, dtype=torch.uint8))
        self.register_buffer("made_after", torch.tensor(-1))
        self._rows: dict[str, int] | None = None

    # The pool

    def hold(self, pool: Tensor, there: Tensor, about: dict[str, Any], *, made_after: int = 0) -> None:
        """Takes a new pool: vectors (N_P, K, d), which of them exist (N_P, K), and `about`, JSON that has the `ids`."""
        if pool.shape[0] != len(about["ids"]) or pool.shape[-1] != self.width or there.shape != pool.shape[:2]:
            raise WrongUse(f"a pool of shape {tuple(pool.shape)} for {len(about['ids'])} studies, {self.width} wide")
        device = self.pool.device
        self.pool = pool.detach().to(device, torch.float32)
        self.there = there.to(device)
        self.said = torch.tensor(list(json.dumps(about).encode()), dtype=torch.uint8, device=device)
        self.made_after = torch.tensor(made_after, device=device)
        self._rows = None

    @property
    def about_pool(self) -> dict[str, Any]:
        """`ids`, and how they were chosen; empty before the first fill."""
        return json.loads(bytes(self.said.tolist())) if len(self.said) else {}

    @property
    def rows(self) -> dict[str, int]:
        """Study id -> its row of the pool."""
        if self._rows is None:
            self._rows = {id: row for row, id in enumerate(self.about_pool.get("ids", ()))}
        return self._rows

    def make_room(self, tensors: Mapping[str, Tensor]) -> None:
        """Gives the buffers the sizes of a checkpoint's, where the width fits."""
        fits = "pool" not in tensors or tensors["pool"].shape[-1:] == (self.width,)
        for name in self.FROM_DATA if fits else ():
            if name in tensors and tensors[name].shape != getattr(self, name).shape:
                setattr(self, name, getattr(self, name).new_zeros(tensors[name].shape))
        self._rows = None

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any, **named: Any) -> None:
        self.make_room({name: state_dict[prefix + name] for name in self.FROM_DATA if prefix + name in state_dict})
        super()._load_from_state_dict(state_dict, prefix, *rest, **named)

    # A batch

    def forward(self, sight: Sight, ids: Sequence[str]) -> Sight:
        """v', V' for v, V. A study of the pool is never compared with itself: `ids` tells who is who."""
        apart = self.compare(sight, ids).apart
        of_overall = apart[:, 0]  # (B, d)
        of_patches = apart[:, 1:] if self.settings.level == "patch" else apart  # (B, N or 1, d)
        # [p; v^d] W' = p W'_1 + v^d W'_2: the second is the same for all patches of a study, unless each has its own.
        W1, W2 = self.update.weight.split(self.width, 1)
        overall = F.linear(sight.overall, W1) + F.linear(of_overall, W2)  # (9)
        patches = F.linear(sight.patches, W1) + F.linear(of_patches, W2)  # (10)
        return sight.with_features(patches.relu(), overall.relu())

    def compare(self, sight: Sight, ids: Sequence[str]) -> Contrasted:
        """(5) to (8)."""
        v = self._places(sight).transpose(0, 1)  # (K, B, d)
        allowed = self._allowed(sight, ids)  # (K, B, N_P)
        pool = self.pool.transpose(0, 1)  # (K, N_P, d)
        if self.aggregate is None:
            common, shares = self.differentiate.alone(v[0], pool[0], allowed[0])
            common, shares = common.unsqueeze(0), shares.unsqueeze(0).unsqueeze(2)
        else:
            closest, shares = self.aggregate(v, pool, allowed)
            common = self.differentiate(v, closest)
        return Contrasted(shares.transpose(0, 1), common.transpose(0, 1), (v - common).transpose(0, 1))

    def _places(self, sight: Sight) -> Tensor:
        """(B, K, d). Raises where the host's features do not fit."""
        widths = {sight.patches.shape[-1], sight.overall.shape[-1]}
        if widths != {self.width}:
            raise WrongUse(
                f"contrastive attention is {self.width} wide, "
                f"the features of its host {' and '.join(map(str, sorted(widths)))}",
                where="contrast.attention",
                remedy="a host must hand out patches and overall vectors of its own `width`",
            )
        return places_of(sight, self.settings.level)

    def _allowed(self, sight: Sight, ids: Sequence[str]) -> Tensor:
        """(K, B, N_P) bool: not the study itself, and no patch that a normal study lacks."""
        if not len(self.pool):
            raise BadInput("the normality pool is empty", where="contrast.attention", remedy="training fills it")
        own = [(number, self.rows[id]) for number, id in enumerate(ids) if id in self.rows]
        allowed = torch.ones(len(ids), len(self.pool), dtype=torch.bool)
        if own:
            allowed[tuple(zip(*own))] = False
        allowed = allowed.to(self.pool.device, non_blocking=True).unsqueeze(0)  # (1, B, N_P)
        if self.settings.level == "overall":
            return allowed
        if self.pool.shape[1] != 1 + sight.patches.shape[1]:
            raise BadInput(
                f"{sight.patches.shape[1]} patches a study, {self.pool.shape[1] - 1} in the normality pool",
                where=f"study {ids[0]}",
                remedy="use the run's own image size and view slots",
            )
        allowed = allowed & self.there.T.unsqueeze(1)
        lonely = ~allowed.any(-1)  # (K, B)
        bare = (lonely[1:].T & sight.mask).any(1)
        if bare.any():
            raise BadInput(
                "has a view that no normal study of the pool has",
                where=f"study {ids[int(bare.nonzero()[0])]}",
                remedy="use level: overall, or a larger pool",
            )
        return allowed | lonely.unsqueeze(-1)  # where there is no picture anything will do: it is masked


def places_of(sight: Sight, level: str) -> Tensor:
    """(B, K, d): the overall vector, and at level `patch` all patches after it."""
    overall = sight.overall.unsqueeze(1)
    return overall if level == "overall" else torch.cat([overall, sight.patches], 1)


def widened(x: Tensor) -> Tensor:
    """bf16 to float32: a softmax over a thousand studies needs the digits."""
    return x if x.dtype == torch.float64 else x.float()
