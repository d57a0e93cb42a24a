"""From a recipe to a reporter."""

from __future__ import annotations

from negatoscope.contrast.attention import ContrastiveAttention
from negatoscope.models import reporter_class
from negatoscope.models.base import Reporter
from negatoscope.text.words import Vocabulary
from negatoscope.training.recipe import Recipe
from negatoscope.vision.encoder import build_encoder


def build_reporter(recipe: Recipe, vocabulary: Vocabulary, *, pretrained: bool = True) -> Reporter:
    """Weights are drawn from torch's generator (seed it first); the backbone's come from the recipe's file if
    `pretrained`."""
    # A backbone that is not run has nothing to learn: only what it was frozen as fits the features.
    frozen = recipe.encoder.frozen or recipe.data.features is not None
    encoder = build_encoder(recipe.encoder.model_copy(update={"frozen": frozen}), pretrained=pretrained)
    kind = reporter_class(recipe.model_name)
    reporter: Reporter = kind(recipe.model_settings(), encoder, vocabulary.logits)  # pyright: ignore[reportCallIssue]
    reporter.full_stop = vocabulary.number(".") if "." in vocabulary.words else 0
    if pretrained:
        reporter.take_pretrained(vocabulary)
    if recipe.contrast.attention is not None:  # drawn last: the host starts as it would without
        reporter.contrast = ContrastiveAttention(recipe.contrast.attention, reporter.width)
    return reporter
