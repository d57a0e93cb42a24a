"""Vision models of transformers as backbones: tiny ones, drawn at random and saved as a user's local folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from negatoscope.errors import BadInput
from negatoscope.studies.batch import Batch
from negatoscope.vision.encoder import EncoderSettings, build_encoder
from negatoscope.vision.weights import weights_hash

transformers = pytest.importorskip("transformers")

SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}


def tiny(family: str) -> Any:
    torch.manual_seed(0)
    if family == "vit":
        return transformers.ViTModel(
            transformers.ViTConfig(image_size=64, patch_size=16, intermediate_size=64, **SMALL)
        )
    if family == "dinov2":
        return transformers.Dinov2Model(transformers.Dinov2Config(image_size=56, patch_size=14, **SMALL))
    if family == "swin":
        shape = {"embed_dim": 16, "depths": [1, 1, 1], "num_heads": [1, 2, 2], "window_size": 4}
        return transformers.SwinModel(transformers.SwinConfig(image_size=64, patch_size=4, **shape))
    if family == "resnet":
        return transformers.ResNetModel(
            transformers.ResNetConfig(depths=[1, 1], hidden_sizes=[16, 32], embedding_size=8)
        )
    part = {"image_size": 64, "patch_size": 16, "intermediate_size": 64, **SMALL}
    text = {"vocab_size": 20, "intermediate_size": 64, **SMALL}
    return transformers.CLIPModel(transformers.CLIPConfig(vision_config=part, text_config=text))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory):
    made: dict[str, Path] = {}

    def find(family: str) -> Path:
        if family not in made:
            made[family] = tmp_path_factory.mktemp(family)
            tiny(family).save_pretrained(made[family])
        return made[family]

    return find


def loaded(folder: Path, **said: Any) -> Any:
    encoder = build_encoder(EncoderSettings(backbone=f"hub:{folder}", **said)).eval()
    assert encoder.backbone is not None
    return encoder.backbone


@pytest.mark.parametrize(
    ("family", "stride", "prefix"),
    [("vit", 16, 1), ("dinov2", 14, 1), ("swin", 16, 0), ("resnet", 8, None), ("clip", 16, 1)],
)
def test_tokens_become_a_map_of_any_shape(family: str, stride: int, prefix: int | None, folder):
    backbone = loaded(folder(family))
    assert (backbone.stride, backbone.prefix) == (stride, prefix)
    for height, width in ((64, 64), (112, 84), (96, 160)):
        x = torch.rand(2, 3, height, width)
        with torch.no_grad():
            seen, stages = backbone(x), backbone.stages(x)
        # Families that pad round up, those that drop what is left of a patch round down.
        shapes = {(height // stride, width // stride), (-(-height // stride), -(-width // stride))}
        assert tuple(seen.shape[2:]) in shapes
        assert seen.shape[:2] == (2, backbone.width)
        assert torch.equal(stages[-1], seen)
        assert [stage.shape[1] for stage in stages] == list(backbone.widths)


@pytest.mark.parametrize("family", ["vit", "dinov2"])
def test_patches_lie_where_they_are_in_the_picture(family: str, folder):
    backbone = loaded(folder(family))
    x = torch.rand(1, 3, 4 * backbone.patch, 3 * backbone.patch)
    more = {"interpolate_pos_encoding": True} if family == "vit" else {}
    with torch.no_grad():
        tokens = tiny(family).eval()(pixel_values=x, **more).last_hidden_state  # (1, 1 + 12, D)
        seen = backbone(x)
    for row in range(4):
        for column in range(3):
            assert torch.allclose(seen[0, :, row, column], tokens[0, 1 + 3 * row + column], atol=1e-5)


def test_swin_keeps_rows_and_columns_apart(folder):
    backbone = loaded(folder("swin"))
    x = torch.rand(1, 3, 112, 84)
    with torch.no_grad():
        theirs = tiny("swin").eval()(pixel_values=x, output_hidden_states=True, interpolate_pos_encoding=True)
        stages = backbone.stages(x)
    for ours, reshaped in zip(stages[:-1], theirs.reshaped_hidden_states[1:-1], strict=True):
        assert torch.allclose(ours, reshaped, atol=1e-5)


def test_the_models_own_mean_and_deviation_are_used(folder, tmp_path: Path):
    tiny("dinov2").save_pretrained(tmp_path)
    said = {"image_mean": [0.53, 0.53, 0.53], "image_std": [0.26, 0.26, 0.26]}  # as RAD-DINO's
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(said))
    encoder = build_encoder(EncoderSettings(backbone=f"hub:{tmp_path}")).eval()
    grey = torch.full((1, 1, 56, 56), 0.53)
    with torch.no_grad():
        assert encoder.backbone is not None
        assert torch.allclose(encoder.maps(grey), encoder.backbone(torch.zeros(1, 3, 56, 56)), atol=1e-5)
    assert loaded(folder("dinov2")).mean == (0.485, 0.456, 0.406)


def test_it_learns_as_part_of_an_encoder(folder):
    encoder = build_encoder(EncoderSettings(backbone=f"hub:{folder('vit')}"))
    sight = encoder(Batch(("a",), torch.ones(1, 2, dtype=torch.bool), images=torch.rand(1, 2, 1, 64, 48)))
    assert sight.grid == (2, 4, 3)
    sight.overall.sum().backward()
    assert encoder.backbone is not None
    assert sum(parameter.grad is not None for parameter in encoder.backbone.parameters()) > 20


def test_without_pretrained_weights_the_shape_is_the_same(folder):
    encoder = build_encoder(EncoderSettings(backbone=f"hub:{folder('vit')}"), pretrained=False)
    other = loaded(folder("vit"))
    assert encoder.backbone is not None
    assert encoder.backbone.widths == other.widths
    assert weights_hash(encoder.backbone) != weights_hash(other)


def test_folders_that_cannot_be_used_say_so_in_one_line(folder, tmp_path: Path):
    model = tiny("vit")
    cases: dict[str, Path] = {name: tmp_path / name for name in ("none", "empty", "pickled", "incomplete", "code")}
    for name in ("empty", "pickled", "incomplete", "code"):
        cases[name].mkdir()
    model.config.save_pretrained(cases["pickled"])
    torch.save(model.state_dict(), cases["pickled"] / "pytorch_model.bin")
    model.save_pretrained(cases["incomplete"])
    tensors = load_file(cases["incomplete"] / "model.safetensors")
    dropped = next(key for key in tensors if "layer" in key)
    save_file(
        {key: t for key, t in tensors.items() if key != dropped},
        cases["incomplete"] / "model.safetensors",
        {"format": "pt"},
    )
    model.save_pretrained(cases["code"])
    config = {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Config", "AutoModel": "mine.Model"}}
    (cases["code"] / "config.json").write_text(json.dumps(config))
    (cases["code"] / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Config: pass\n")
    for name, path in cases.items():
        with pytest.raises(BadInput) as caught:
            loaded(path)
        assert str(path) in str(caught.value), name
        assert "\n" not in str(caught.value)
    assert not (tmp_path / "ran").exists()
    with pytest.raises(BadInput, match="1 tensors are missing"):
        loaded(cases["incomplete"])
