"""The share of CVSE's attention inside masks, against loops, and on features whose findings have a known place."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from negatoscope.cli import app
from negatoscope.errors import BadInput, WrongUse
from negatoscope.reading_room.finding_sheet import finding_sheet
from negatoscope.retrieval.pointing import MaskedMap, cells, pointing, summary
from negatoscope.retrieval.recipe import CVSERecipe
from negatoscope.retrieval.retriever import Retriever
from negatoscope.retrieval.training import train_cvse
from negatoscope.studies.store import Store
from negatoscope.studies.study import Study
from negatoscope.text.abnormal import AbnormalSentences
from negatoscope.text.sentence_files import load_groups
from negatoscope.vision.features import FeatureCache
from tests.retrieval.small import SAID, place_of, store_at

Drawn = tuple[Store, FeatureCache]


@pytest.mark.parametrize("shape", [(9, 9), (30, 20), (7, 11), (2, 50)])
def test_cells_are_the_covered_parts_whatever_the_size(shape: tuple[int, int]) -> None:
    mask = np.random.default_rng(0).random(shape) < 0.3
    fine = np.kron(mask, np.ones((3, 3)))  # every cell is now a whole number of pixels
    height, width = fine.shape[0] // 3, fine.shape[1] // 3
    wanted = [
        [fine[y * height : (y + 1) * height, x * width : (x + 1) * width].mean() for x in range(3)] for y in range(3)
    ]
    np.testing.assert_allclose(cells(mask, 3), wanted, atol=1e-12)


def test_the_summary_by_loops() -> None:
    rng = np.random.default_rng(1)
    found = []
    for study in range(6):
        for _ in range(1 + study % 2):
            attention = rng.random(9)
            found.append(
                MaskedMap(
                    "ab"[study % 2],
                    Study(f"s{study}"),
                    int(study % 3 == 0),
                    "said",
                    attention / attention.sum(),
                    rng.random(9) * (rng.random(9) < 0.5),
                )
            )
    done = summary(found, 2, seed=0)
    inside = [float(one.attention @ one.mask) for one in found]
    chance = [
        np.mean([other.attention @ one.mask for other in found if other.slot == one.slot and other.study != one.study])
        for one in found
    ]
    assert (done.every.maps, done.studies, done.unknown) == (9, 6, 2)
    assert done.every.inside == pytest.approx(np.mean(inside))
    assert done.every.uniform == pytest.approx(np.mean([one.mask.mean() for one in found]))
    assert done.every.chance == pytest.approx(np.mean(chance))
    assert done.every.hit == pytest.approx(np.mean([one.mask[one.attention.argmax()] > 0 for one in found]))
    assert done.every.hit_by_any == pytest.approx(np.mean([(one.mask > 0).mean() for one in found]))
    assert done.every.low < done.every.inside < done.every.high
    assert done.by_finding["a"].inside == pytest.approx(
        np.mean([x for x, one in zip(inside, found) if one.finding == "a"])
    )


def test_a_study_alone_in_its_view_tells_nothing_of_chance() -> None:
    def looked(study: str, slot: int, cell: int) -> MaskedMap:
        return MaskedMap("a", Study(study), slot, "said", np.eye(4)[cell], np.eye(4)[0])

    assert summary([looked("s1", 0, 0)], 0).every.chance is None
    three = [looked("s1", 0, 0), looked("s2", 0, 0), looked("s3", 1, 0)]
    assert summary(three, 0).every.chance == pytest.approx(1), "0 for the lone one would halve what others reach"


def _masked(store: Store, root: Path) -> Store:
    """The same studies; the cell of each finding is masked in both views. Pictures lie as 30 x 30 squares."""
    root.mkdir()
    studies = []
    for study in store.studies():
        masks = {}
        for number, (finding, both) in enumerate(SAID.items()):
            if any(said in study.report for said in both):
                for at, picture in enumerate(study.pictures):
                    Image.fromarray(np.full((30, 30), 100, np.uint8)).save(root / picture.path)
                    cells = np.zeros(9, np.uint8)
                    cells[place_of(number, picture.view)] = 255
                    name = f"{study.id}-{number}-{at}.png"
                    Image.fromarray(np.kron(cells.reshape(3, 3), np.ones((10, 10), np.uint8))).save(root / name)
                    masks[f"{finding}@{at}"] = name
        studies.append(replace(study, masks=masks))
    return store_at(root, studies)


@pytest.fixture(scope="module")
def masked(drawn: Drawn, tmp_path_factory: pytest.TempPathFactory) -> Store:
    return _masked(drawn[0], tmp_path_factory.mktemp("masked") / "store")


@pytest.fixture(scope="module")
def conditional(recipe_for: Callable[..., CVSERecipe], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("conditional")
    train_cvse(recipe_for(model={"attention": "conditional"}, train={"epochs": 20}), folder)
    return folder


def _measured(folder: Path, store: Store, cache: FeatureCache) -> tuple[float, float | None, float]:
    group_of = load_groups(folder / "groups").of_sentence()
    done = pointing(Retriever.load(folder), group_of, store, cache, AbnormalSentences.default())
    assert done.unknown == 0
    assert done.studies == sum(len({name.split("@")[0] for name in s.masks}) == 1 for s in store.studies("val"))
    return done.every.inside, done.every.chance, done.every.uniform


def test_conditional_attention_finds_the_cell(conditional: Path, masked: Store, drawn: Drawn) -> None:
    inside, chance, uniform = _measured(conditional, masked, drawn[1])
    assert chance is not None
    assert uniform == pytest.approx(1 / 9)
    assert inside > 3 * uniform
    assert inside > 1.5 * chance


def test_pictures_may_come_in_any_order(conditional: Path, masked: Store, drawn: Drawn, tmp_path: Path) -> None:
    turned = []
    for study in masked.studies("val"):
        last = len(study.pictures) - 1
        masks = {f"{name.split('@')[0]}@{last - int(name.split('@')[1])}": path for name, path in study.masks.items()}
        turned.append(replace(study, pictures=study.pictures[::-1], masks=masks))
    other = store_at(tmp_path, turned)
    for path in masked.path.glob("*.png"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    assert _measured(conditional, other, drawn[1]) == pytest.approx(_measured(conditional, masked, drawn[1]))


def test_what_cannot_be_measured(conditional: Path, masked: Store, drawn: Drawn) -> None:
    retriever, classifier = Retriever.load(conditional), AbnormalSentences.default()
    with pytest.raises(BadInput, match="no study with a masked finding"):
        pointing(retriever, {}, drawn[0], drawn[1], classifier)
    with pytest.raises(BadInput, match="no study with a masked finding"):
        pointing(retriever, {}, masked, drawn[1], classifier)
    cropped = FeatureCache(drawn[1].path, drawn[1].key.model_copy(update={"fit": "crop"}))
    other = replace(retriever, key=cropped.key)
    with pytest.raises(WrongUse, match="whole pictures only"):
        pointing(other, {}, masked, cropped, classifier)
    assert isinstance(next(masked.studies()), Study)


def test_command_prints_every_finding(conditional: Path, masked: Store, tmp_path: Path) -> None:
    asked = ["retrieve", "pointing", str(conditional), "--store", str(masked.path)]
    done = CliRunner().invoke(app, [*asked, "--json"])
    assert done.exit_code == 0, done.output
    assert set(json.loads(done.stdout)["by_finding"]) <= set(SAID)
    done = CliRunner().invoke(app, [*asked, "--picture", str(tmp_path / "sheet.png")], env={"COLUMNS": "160"})
    assert "every finding" in done.stdout
    assert (tmp_path / "sheet.png").is_file()


def test_the_sheet_shows_the_first_study_of_each_finding(
    conditional: Path, masked: Store, drawn: Drawn, tmp_path: Path
) -> None:
    """Attention all in one corner is red there and nowhere else; a view that the study lacks stays dark."""
    one = next(study for study in masked.studies("val") if study.masks)
    frontal = next(at for at, picture in enumerate(one.pictures) if picture.view == "frontal")
    finding = next(name.split("@")[0] for name in one.masks)
    corner = np.eye(1, 9)[0]
    maps = [
        MaskedMap(finding, replace(one, id=f"s{row}"), 0, "Said.", attention, np.full(9, 0.1))
        for row, attention in enumerate((corner, corner[::-1]))
    ]
    assert f"{finding}@{frontal}" in one.masks
    sheet = finding_sheet(Retriever.load(conditional), masked, maps, tmp_path / "sheet.png")
    pixels = np.asarray(Image.open(sheet).convert("RGB")).astype(int)[:168]
    plain, under, beside = pixels[:, :168], pixels[:, 172 : 172 + 168], pixels[:, 344 : 344 + 168]
    assert plain[10, 10].max() - plain[10, 10].min() < 8
    assert under[10, 10, 0] - under[10, 10, 2] > 80
    assert under[150, 150].max() - under[150, 150].min() < 8
    assert beside.max() < 40
