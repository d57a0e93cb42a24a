"""Batch to Sight: only present views are computed, the rest is masked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from negatoscope.errors import BadInput, WrongUse
from negatoscope.studies.batch import Batch
from negatoscope.vision import backbones
from negatoscope.vision.backbones.resnet import Basic, ResNet
from negatoscope.vision.encoder import Encoder, EncoderSettings, build_encoder
from negatoscope.vision.precision import fast_precision, has_bf16_instructions

PRESENT = torch.tensor([[True, True], [True, False], [False, True]])


class Counting(ResNet):
    """Remembers how many pictures passed through it."""

    seen = 0

    def forward(self, x: Tensor) -> Tensor:
        self.seen += len(x)
        return super().forward(x)


@pytest.fixture
def backbone() -> Counting:
    torch.manual_seed(0)
    return Counting(Basic, (1, 1, 1, 1), narrowest=16)


def grey_batch(height: int = 64, width: int = 96) -> Batch:
    torch.manual_seed(1)
    return Batch(("a", "b", "c"), PRESENT, images=torch.rand(3, 2, 1, height, width))


def test_only_present_views_pass_through_and_the_rest_is_masked(backbone: Counting):
    encoder = Encoder(backbone).eval()
    batch = grey_batch()
    assert batch.images is not None
    sight = encoder(batch)
    assert backbone.seen == 4
    assert sight.grid == (2, 2, 3)
    assert sight.patches.shape == (3, 12, 128)
    assert sight.mask.shape == (3, 12)
    assert sight.mask[:, [0, 6]].tolist() == PRESENT.tolist()
    assert sight.patches[~sight.mask].abs().sum() == 0
    lone = encoder.maps(batch.images[1, :1])  # (1, D, 2, 3)
    assert torch.allclose(sight.patches[1, sight.of_view(0)], lone[0].flatten(1).T, atol=1e-5)
    assert torch.allclose(sight.overall[1], lone[0].mean((1, 2)), atol=1e-5)
    assert torch.allclose(sight.overall[0], sight.patches[0].mean(0), atol=1e-5)


def test_what_stands_in_an_empty_slot_does_not_matter(backbone: Counting):
    encoder = Encoder(backbone).eval()
    batch = grey_batch()
    assert batch.images is not None
    images = batch.images.clone()
    images[1, 1] = float("nan")
    assert torch.equal(encoder(Batch(batch.ids, PRESENT, images=images)).patches, encoder(batch).patches)


def test_grey_is_normalised_as_three_equal_channels(backbone: Counting):
    encoder = Encoder(backbone).eval()
    batch = grey_batch()
    assert batch.images is not None
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in (backbones.IMAGENET_MEAN, backbones.IMAGENET_STD))
    colour = (batch.images.expand(-1, -1, 3, -1, -1) - mean) / std
    assert torch.allclose(encoder(Batch(batch.ids, PRESENT, images=colour)).patches, encoder(batch).patches, atol=1e-5)


def test_cached_features_skip_the_backbone(backbone: Counting):
    encoder = Encoder(backbone).eval()
    batch = grey_batch(64, 64)
    seen = encoder(batch)
    features = seen.patches.view(3, 2, 4, 128).half()
    backbone.seen = 0
    cached = encoder(Batch(batch.ids, PRESENT, features=features))
    assert backbone.seen == 0
    assert cached.grid == seen.grid == (2, 2, 2)
    assert cached.patches.dtype == torch.float32
    assert torch.allclose(cached.overall, seen.overall, atol=2e-3)
    assert torch.equal(cached.mask, seen.mask)
    without = Encoder(None, width=128)
    assert torch.equal(without(Batch(batch.ids, PRESENT, features=features)).overall, cached.overall)
    with pytest.raises(WrongUse, match="cached features"):
        without(batch)
    pooled = encoder(Batch(batch.ids, PRESENT, features=features.float().mean(2, keepdim=True)))
    assert pooled.grid == (2, 1, 1)
    assert torch.allclose(pooled.overall, seen.overall, atol=2e-3)


def test_features_of_another_width_nothing_at_all_and_no_view(backbone: Counting):
    encoder = Encoder(backbone)
    with pytest.raises(BadInput, match="64 wide, the encoder's 128"):
        encoder(Batch(("a",), torch.ones(1, 1, dtype=torch.bool), features=torch.zeros(1, 1, 4, 64)))
    with pytest.raises(BadInput, match="neither images nor features"):
        encoder(Batch(("a",), torch.ones(1, 1, dtype=torch.bool)))
    with pytest.raises(BadInput, match="no view"):
        encoder(Batch(("a",), torch.zeros(1, 1, dtype=torch.bool), images=torch.zeros(1, 1, 1, 32, 32)))


def test_frozen_backbones_do_not_move_and_need_no_gradient(backbone: Counting):
    encoder = Encoder(backbone, frozen=True).train()
    before = {key: tensor.clone() for key, tensor in backbone.state_dict().items()}
    sight = encoder(grey_batch())
    assert not sight.patches.requires_grad
    assert all(torch.equal(tensor, before[key]) for key, tensor in backbone.state_dict().items())
    free = Encoder(backbone.requires_grad_(True)).train()
    assert free(grey_batch()).patches.requires_grad


def test_bf16_is_near_float32_and_comes_back_as_float32(backbone: Counting):
    full = Encoder(backbone).eval()(grey_batch())
    half = Encoder(backbone, precision="bf16").eval()(grey_batch())
    assert half.patches.dtype == torch.float32
    assert not torch.equal(half.patches, full.patches)
    assert torch.nn.functional.cosine_similarity(half.overall, full.overall).min() > 0.999


def test_built_from_settings_the_same_for_the_same_seed(tmp_path: Path):
    def built(seed: int, **said: Any) -> Any:
        torch.manual_seed(seed)
        return build_encoder(EncoderSettings(backbone="resnet10-narrow", **said))

    one, two, three = built(0), built(0), built(1)
    x = torch.rand(1, 1, 32, 32)
    assert torch.equal(one.eval().maps(x), two.eval().maps(x))
    assert not torch.equal(one.maps(x), three.eval().maps(x))
    assert built(0, frozen_norms=True).backbone.frozen_norms
    assert not any(p.requires_grad for p in built(0, frozen=True).parameters())
    with pytest.raises(BadInput, match="no such file"):
        built(0, weights=tmp_path / "none.pth")
    # A checkpoint brings the weights: the file of a recipe may be gone by then.
    assert (
        build_encoder(EncoderSettings(backbone="resnet10-narrow", weights=Path("gone")), pretrained=False).width == 128
    )


def test_normalisation_is_not_saved_with_the_weights(backbone: Counting):
    assert not {"scale", "shift"} & Encoder(backbone).state_dict().keys()


def test_bf16_is_chosen_by_the_processors_own_word(tmp_path: Path):
    info = tmp_path / "cpuinfo"
    for flags, expected in (("fpu avx512f avx512_bf16", True), ("amx_tile amx_bf16", True), ("avx2 avx512f", False)):
        info.write_text(f"processor: 0\nflags\t\t: {flags}\n")
        assert has_bf16_instructions(info) is expected
    assert has_bf16_instructions(tmp_path / "none") is False
    assert fast_precision("cpu") in ("float32", "bf16")


def test_features_of_several_stages() -> None:
    """The earlier map averaged down to the last one's grid, side by side with it."""
    backbone = backbones.build("resnet10-narrow", pretrained=False).eval()
    encoder = Encoder(backbone, stages=(3, 4)).eval()
    assert encoder.width == sum(backbone.widths[2:])
    images = torch.rand(2, 1, 64, 64)
    with torch.no_grad():
        several, last = encoder.maps(images), Encoder(backbone).eval().maps(images)
        third = backbone.stages((images * encoder.scale + encoder.shift).contiguous())[2]
    torch.testing.assert_close(several[:, backbone.widths[2] :], last)
    torch.testing.assert_close(several[:, : backbone.widths[2]], torch.nn.functional.avg_pool2d(third, 2))


@pytest.mark.parametrize(("stages", "said"), [((0, 4), "no stage 0"), ((5,), "no stage 5"), ((4, 4), "named twice")])
def test_stages_that_there_are_not(stages: tuple[int, ...], said: str) -> None:
    with pytest.raises(WrongUse, match=rf"encoder.stages: .*{said}.*stages 1 to 4"):
        Encoder(backbones.build("resnet10-narrow", pretrained=False), stages=stages)
