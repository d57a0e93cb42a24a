"""From decoded grey values to the square that a backbone takes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from negatoscope.errors import BadInput
from negatoscope.vision.prepare import as_image, prepare, read_grey, short_side_to


def scene(height: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width), dtype=np.uint8)


@pytest.mark.parametrize("fit", ["squash", "crop", "letterbox"])
@pytest.mark.parametrize("shape", [(300, 200), (200, 300), (64, 64), (5, 900)])
def test_every_fit_gives_a_square_from_0_to_1(fit, shape):
    image = prepare(scene(*shape), 64, fit=fit)
    assert image.shape == (1, 64, 64)
    assert image.dtype == torch.float32
    assert 0 <= image.min() <= image.max() <= 1


def test_squash_averages_what_it_drops():
    # 8 x 8 checkerboard of ones and zeros: without antialiasing every second cell would be all there is.
    board = (np.indices((8, 8)).sum(0) % 2 * 255).astype(np.uint8)
    assert torch.allclose(prepare(board, 2), torch.full((1, 2, 2), 0.5), atol=0.05)


def test_letterbox_keeps_the_shape_and_adds_black():
    image = prepare(np.full((100, 50), 255, np.uint8), 20, fit="letterbox")[0]
    assert image[:, 5:15].min() == 1
    assert image[:, :5].max() == image[:, 15:].max() == 0


def test_crop_takes_the_middle():
    grey = np.zeros((100, 300), np.uint8)
    grey[:, 100:200] = 255
    assert prepare(grey, 50, fit="crop").min() > 0.5


def test_short_side_follows_torchvisions_rule():
    assert short_side_to(as_image(scene(333, 320)), 256).size == (256, 266)  # int(256 * 333 / 320)
    assert short_side_to(as_image(scene(320, 389)), 256).size == (311, 256)  # int(311.2)


def test_sixteen_bits_are_scaled_by_the_bits_in_use():
    grey = np.linspace(0, 4095, 64 * 64).astype(np.uint16).reshape(64, 64)
    assert prepare(grey, 64, bits=12).max() == 1
    assert prepare(grey, 64).max() == pytest.approx(4095 / 65535)
    assert len(np.unique(prepare(grey, 64, bits=12))) == 4096


@pytest.mark.parametrize("grey", [np.zeros((4, 4, 3), np.uint8), np.zeros((0, 4), np.uint8), np.zeros((4, 4))])
def test_what_is_no_grey_picture_is_refused(grey):
    with pytest.raises(BadInput, match="expected grey values"):
        prepare(grey, 8)


def test_read_grey_names_file_and_study(tmp_path):
    Image.fromarray(scene(10, 12)).save(tmp_path / "a.png")
    assert np.array_equal(read_grey(tmp_path / "a.png"), scene(10, 12))
    (tmp_path / "b.png").write_bytes((tmp_path / "a.png").read_bytes()[:60])
    with pytest.raises(BadInput, match=r"study s1: .*b\.png"):
        read_grey(tmp_path / "b.png", where="study s1")


def test_read_grey_shows_deep_pictures_through_a_window(tmp_path):
    deep = np.linspace(1000, 3000, 100 * 100).astype(np.uint16).reshape(100, 100)  # 12 bits in a 16-bit file
    Image.fromarray(deep).save(tmp_path / "deep.png")
    grey = read_grey(tmp_path / "deep.png")
    assert grey.dtype == np.uint8
    assert (grey.min(), grey.max()) == (0, 255)
