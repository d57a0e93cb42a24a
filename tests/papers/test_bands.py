"""A run inside its band passes, one outside fails; bands follow from three seeds or more, and stay those of one
recipe."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from negatoscope.errors import WrongUse
from negatoscope.papers.bands import RowBand, bands_of, check, read_bands, shipped_bands, write_bands
from negatoscope.papers.intervals import Figure
from negatoscope.papers.paper import paper_names
from negatoscope.papers.scoring import Result


def _result(name: str, kind: str = "ours", digest: str = "d1", **figures: Sequence[float]) -> Result:
    made = {
        name.replace("_", "-"): Figure(float(np.mean(each)), tuple(each), None, 0.0, 1.0)
        for name, each in figures.items()
    }
    seeds = tuple(range(1, 1 + max((len(each) for each in figures.values()), default=0)))
    return Result(name, name.upper(), kind, made, seeds=seeds, digest=digest)


BAND = RowBand(digest="d1", seeds=(1, 2, 3), where="here", figures={"BLEU-4": (0.10, 0.12, 0.14)})


@pytest.mark.parametrize(("value", "stays"), [(0.12, True), (0.10, True), (0.14, True), (0.0999, False), (0.2, False)])
def test_a_run_outside_its_band_is_told(value: float, stays: bool) -> None:
    found = check([_result("nic", BLEU_4=[0.12, value])], {"nic": BAND})
    assert found.figures == 2
    assert found.without == ()
    assert (found.left == ()) == stays
    if not stays:
        assert f"nic, seed 2: BLEU-4 {value:.4f} is not within 0.1000 to 0.1400 (mean 0.1200)" in found.left


def test_what_cannot_be_held_against_a_band() -> None:
    rows = [_result("hlstm", BLEU_4=[0.12]), _result("nic", digest="other", BLEU_4=[0.9]), _result("kerp", "quoted")]
    found = check(rows, {"nic": BAND})
    assert (found.figures, found.left) == (0, ())
    assert [line.split(":")[0] for line in found.without] == ["hlstm", "nic"]
    assert "another recipe" in found.without[1]


def test_a_row_that_came_to_nothing_left_its_band() -> None:
    failed = replace(_result("nic"), notes=("seed 1: the loss is not finite",))
    assert check([failed], {"nic": BAND}).left == ("nic: no figures, seed 1: the loss is not finite",)
    assert check([_result("nic", CIDEr=[0.3])], {"nic": BAND}).left == ("nic: no BLEU-4",)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=5), min_size=1, max_size=4))
def test_bands_are_prediction_intervals_of_the_larger_spread(rows: list[list[float]]) -> None:
    made = bands_of([_result(f"r{n}", BLEU_4=each) for n, each in enumerate(rows)], ["BLEU-4", "CIDEr"], "here")
    freedom = sum(len(each) - 1 for each in rows)
    squares = sum((value - sum(each) / len(each)) ** 2 for each in rows for value in each)
    for n, each in enumerate(rows):
        low, mean, high = made[f"r{n}"].figures["BLEU-4"]
        assert "CIDEr" not in made[f"r{n}"].figures
        own = np.std(each, ddof=1)
        s = max(own, np.sqrt(squares / freedom))
        half = max(student.ppf(0.995, freedom) * s * np.sqrt(1 + 1 / len(each)), 0.01 * abs(np.mean(each)), 0.002)
        assert (low, mean, high) == pytest.approx((np.mean(each) - half, np.mean(each), np.mean(each) + half), abs=1e-4)
        # A run that the band was made of lies within it.
        assert check([_result(f"r{n}", BLEU_4=each)], made).left == ()


def test_two_seeds_are_too_few() -> None:
    with pytest.raises(WrongUse, match="3 seeds"):
        bands_of([_result("nic", BLEU_4=[0.1, 0.2])], ["BLEU-4"], "here")
    made = bands_of([_result("nic", BLEU_4=[0.1, 0.2]), _result("st", BLEU_4=[0.1, 0.1, 0.1])], ["BLEU-4"], "here")
    assert list(made) == ["st"]
    assert made["st"].figures["BLEU-4"] == (0.098, 0.1, 0.102)


def test_files_keep_what_others_wrote(tmp_path: Path) -> None:
    path = tmp_path / "wcl.yaml"
    assert read_bands(path).tables == {}
    other = BAND.model_copy(update={"digest": "d2"})
    write_bands(path, "wcl", "1", "iu-xray", {"st": BAND})
    write_bands(path, "wcl", "1", "phantom", {"st": other})
    write_bands(path, "wcl", "1", "iu-xray", {"mdt": other})
    write_bands(path, "wcl", "2", "iu-xray", {"st": other})
    write_bands(path, "wcl", "1", "phantom", {"st": BAND})
    found = read_bands(path).tables
    assert found["1"] == {"iu-xray": {"st": BAND, "mdt": other}, "phantom": {"st": BAND}}
    assert found["2"]["iu-xray"] == {"st": other}
    assert path.read_text(encoding="utf-8").startswith("# What rows of wcl came to here")
    path.write_text("'1': {iu-xray: {st: {digset: x}}}\n", encoding="utf-8")
    with pytest.raises(WrongUse, match="did you mean 'digest'"):
        read_bands(path)


def test_bands_that_ship_are_readable_and_inside_out() -> None:
    """Of whatever papers have some so far."""
    for name in paper_names():
        for tables in read_bands(shipped_bands(name)).tables.values():
            for rows in tables.values():
                for band in rows.values():
                    assert len(band.seeds) >= 3
                    assert all(low < mean < high for low, mean, high in band.figures.values())


def test_a_band_tells_on_what_its_runs_were_made(tmp_path: Path) -> None:
    for seed, device in ((1, "NVIDIA H200"), (2, "cpu"), (3, "cpu")):
        folder = tmp_path / f"seed-{seed}"
        folder.mkdir()
        about = {"finished": True, "epochs": 1, "of_epochs": 1, "seconds": 1.0, "torch": "2.11.0", "device": device}
        (folder / "run.json").write_text(json.dumps(about), encoding="utf-8")
    runs = tuple(f"seed-{seed}" for seed in (1, 2, 3))
    row = replace(_result("nic", BLEU_4=[0.1, 0.2, 0.3]), runs=runs)
    made = bands_of([row], ["BLEU-4"], "--set train.epochs=2", tmp_path)["nic"]
    assert made.where == "NVIDIA H200 (torch 2.11.0), cpu (torch 2.11.0); --set train.epochs=2"
