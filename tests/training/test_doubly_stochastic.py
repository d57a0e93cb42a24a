"""The penalty on patches that no word looks at."""

from __future__ import annotations

import pytest
import torch

from negatoscope.errors import WrongUse
from negatoscope.models.base import Reading
from negatoscope.training.objectives import build_objective
from negatoscope.vision.sight import Sight
from tests.models.every import batch_of, tiny

MASK = torch.tensor([[True, True, True], [True, True, False]])  # the second study has two patches


def _reading(alpha: torch.Tensor, words: torch.Tensor) -> Reading:
    sight = Sight(torch.zeros(2, 3, 4), torch.zeros(2, 4), MASK, (1, 1, 3))
    return Reading(torch.zeros(2, 2, 5), torch.zeros(2, 2, 4), words, sight, {"attention": alpha})


def test_by_hand() -> None:
    alpha = torch.tensor([[[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]], [[0.25, 0.75, 0.0], [1.0, 0.0, 0.0]]])
    words = torch.tensor([[True, True], [True, False]])  # the second study's second word is padding
    loss = build_objective("doubly-stochastic", {})(_reading(alpha, words), batch_of((3, 3)))["doubly-stochastic"]
    first = (1 - 0.5) ** 2 + (1 - 1.0) ** 2 + (1 - 0.5) ** 2
    second = (1 - 0.25) ** 2 + (1 - 0.75) ** 2
    assert loss.item() == pytest.approx((first + second) / 2)


def test_it_moves_what_decides_where_to_look() -> None:
    reporter, batch = tiny("visual-attention"), batch_of()
    build_objective("doubly-stochastic", {"looks": 2.0})(reporter(batch), batch)["doubly-stochastic"].backward()
    gradient = reporter.get_parameter("attention.W.weight").grad
    assert gradient is not None
    assert gradient.abs().max() > 0


def test_a_model_that_does_not_look() -> None:
    batch = batch_of()
    with pytest.raises(WrongUse, match="does not look at patches"):
        build_objective("doubly-stochastic", {})(tiny("nic")(batch), batch)
