"""XProNet (Wang, Bhalerao, He: Cross-modal Prototype Driven Network for Radiology Report Generation, ECCV 2022).

R2GenCMN with a memory that knows findings. Each observation c has P prototypes, initialised from the training studies
that show it (`begin`); a study asks the prototypes of its own observations alone, and answers are joined, not added:

    p'     = W_p p                                        the prototypes in the decoder's width
    r_x    = responses of the study's prototypes to x     as in R2GenCMN, top_k of them
    x     <- W_f [x; r_x]                                 one W_f for patches, one for words

Which observations a study shows is known of training studies by their labels. The published code takes them from the
REFERENCE report at test time too, which no user has: here a small head of ours predicts them from the image (`labels:
predicted`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from negatoscope.errors import BadInput
from negatoscope.models.base import Encoder as ImageEncoder
from negatoscope.models.base import Reading, State, for_all, log_probabilities, per_study
from negatoscope.models.layers import KeysValues, place, xavier
from negatoscope.models.linear import Linear
from negatoscope.models.past import PastState
from negatoscope.models.prototypes import initial_prototypes, joint_features
from negatoscope.models.r2gencmn import Responding
from negatoscope.models.transformer import Transformer, TransformerSettings
from negatoscope.studies.batch import Batch
from negatoscope.studies.study import OBSERVATIONS
from negatoscope.vision.sight import Sight, masked_mean

REFERENCE_WARNING = (
    "labels: reference feeds XProNet the labels of the very report it is asked to write: for comparing with the "
    "published code, never for a result"
)


class XProNetSettings(TransformerSettings):
    top_k: int = Field(15, ge=1)
    """Prototypes that answer a patch or a word, in each head."""
    per_observation: int = Field(20, ge=1)
    """P: prototypes of each observation."""
    text_width: int = Field(768, ge=0)
    """Of a prototype's second part, which tells of reports; the first is as wide as the image features."""
    labels: Literal["predicted", "reference"] = "predicted"
    """Which observations choose a study's prototypes when it is not being learned from. reference: those of the report
    that is to be written, as the published code does; its figures are no results."""


def shown(labels: Tensor) -> Tensor:
    """(B, 14) of 1, 0, -1, NaN -> True where an observation is positive or uncertain; "No Finding" where none is."""
    found = labels.nan_to_num(0.0) != 0
    found[:, 0] |= ~found.any(1)
    return found


@dataclass(frozen=True)
class SightOfObservations(Sight):
    observations: Tensor  # (B, 14) bool: whose prototypes may be asked
    predicted: Tensor  # (B, 14) logits, from the image


@dataclass(frozen=True)
class XProNetState(State):
    decoder: PastState
    askable: Tensor = per_study()  # (B, 14 P) bool
    prototypes: KeysValues = for_all()  # (h, 14 P, d / h) twice


class XProNet(Transformer):
    Settings = XProNetSettings
    tiny: ClassVar[Mapping[str, Any]] = {**Transformer.tiny, "per_observation": 4, "top_k": 3, "text_width": 6}
    name = "xpronet"
    paper = "Wang et al.: Cross-modal Prototype Driven Network for Radiology Report Generation"
    year = 2022

    def __init__(self, settings: XProNetSettings, encoder: ImageEncoder, words: int) -> None:
        super().__init__(settings, encoder, words)
        d = settings.width
        self.per_observation, self.text_width, self.labels = (
            settings.per_observation,
            settings.text_width,
            settings.labels,
        )
        rows, wide = len(OBSERVATIONS) * settings.per_observation, encoder.width + settings.text_width
        self.prototypes = nn.Parameter(torch.randn(rows, wide))  # (14 P, D + text)
        self.narrow = Linear(wide, d)  # W_p
        self.ask = Responding(d, settings.heads, settings.top_k)
        self.join_patches, self.join_words = Linear(2 * d, d), Linear(2 * d, d)  # W_f
        self.observe = nn.Linear(d, len(OBSERVATIONS))  # ours
        for part in (self.ask, self.join_words):
            xavier(part)
        if settings.labels == "reference":
            warnings.warn(REFERENCE_WARNING, stacklevel=2)

    def begin(self, batches: Callable[[], Iterable[Batch]], seed: int) -> None:
        """Prototypes from the training studies: per observation, K-Means over image and report features of those that
        show it."""
        images, texts, labels = joint_features(self.encoder, batches(), self.words, self.text_width, seed)
        drawn = initial_prototypes(torch.cat([images, texts], 1), shown(labels), self.per_observation, seed)
        with torch.no_grad():
            self.prototypes.copy_(drawn)

    def look(self, batch: Batch) -> SightOfObservations:
        sight = super().look(batch)
        predicted = self.observe(sight.overall)  # (B, 14)
        return SightOfObservations(
            **vars(sight), observations=self._observations(batch, predicted), predicted=predicted
        )

    def _observations(self, batch: Batch, predicted: Tensor) -> Tensor:
        if self.training or self.labels == "reference":
            if batch.labels is None:
                raise BadInput(
                    "XProNet learns from labels, and there are none",
                    where=f"batch of {batch.ids[0]}",
                    remedy="see `negatoscope label`",
                )
            return shown(batch.labels)
        likeliest = predicted == predicted.amax(1, keepdim=True)
        return (predicted > 0) | likeliest

    def start(self, sight: SightOfObservations) -> XProNetState:  # pyright: ignore[reportIncompatibleMethodOverride]
        held, askable = self._held(), self._askable(sight)
        patches, _ = self._patches(sight, held, askable)
        return XProNetState(self.decoder.start(patches, sight.mask), askable, held)

    def step(self, words: Tensor, state: XProNetState) -> tuple[Tensor, XProNetState]:  # pyright: ignore[reportIncompatibleMethodOverride]
        y = self.embed(words.view(len(state.askable), -1), state.decoder.position, one=True)  # (B, k, d)
        answer = self.ask(y, state.prototypes, state.askable)
        x, decoder = self.decoder.step(self.join_words(torch.cat([y, answer], -1)), state.decoder)
        return log_probabilities(self.out(x.flatten(0, 1))), XProNetState(decoder, state.askable, state.prototypes)

    def read(self, sight: SightOfObservations, words: Tensor, mask: Tensor) -> Reading:  # pyright: ignore[reportIncompatibleMethodOverride]
        held, askable = self._held(), self._askable(sight)
        patches, seen = self._patches(sight, held, askable)  # (B, N, d) twice
        y = self.embed.drop(self.embed(words))  # (B, T, d)
        answer = self.ask(y, held, askable)
        hidden = self.decoder(self.join_words(torch.cat([y, answer], -1)), patches, sight.mask)  # (B, T, d)
        extra = {
            "image_response": masked_mean(seen, sight.mask),  # (B, d)
            "word_response": masked_mean(answer, mask),  # (B, d)
            "observations": sight.predicted,
        }
        return Reading(self.out(hidden), hidden, mask, sight.with_features(patches, sight.overall), extra)

    def _held(self) -> KeysValues:
        return self.ask.keys_values(self.narrow(self.prototypes))

    def _askable(self, sight: SightOfObservations) -> Tensor:
        return sight.observations.repeat_interleave(self.per_observation, 1)  # (B, 14 P)

    def _patches(self, sight: Sight, held: KeysValues, askable: Tensor) -> tuple[Tensor, Tensor]:
        """What the decoder reads, and what the prototypes answered the patches."""
        answer = self.ask(sight.patches, held, askable)
        x = self.join_patches(torch.cat([sight.patches, answer], -1))
        return self.among_patches(self.embed.drop(place(x)), sight.mask), answer
