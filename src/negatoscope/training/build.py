"""From a recipe to a reporter."""

from __future__ import annotations

from negatoscope.models import reporter_class
from negatoscope.models.base import Reporter
from negatoscope.text.words import Vocabulary
from negatoscope.training.recipe import Recipe
from negatoscope.vision.encoder import build_encoder


def build_reporter(recipe: Recipe, vocabulary: Vocabulary, *, pretrained: bool = True) -> Reporter:
    """Weights are drawn from torch's generator (seed it first); the backbone's come from the recipe's file if
    `pretrained`."""
    encoder = build_encoder(recipe.encoder, pretrained=pretrained)
    kind = reporter_class(recipe.model_name)
    return kind(recipe.model_settings(), encoder, vocabulary.logits)  # pyright: ignore[reportCallIssue]
