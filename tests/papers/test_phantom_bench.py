"""The phantom bench: its figures against loops and by hand, what reports tell against what was drawn, and all of it
once, in little."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from negatoscope.errors import Trouble, WrongUse
from negatoscope.papers.phantom_bench import bench as room
from negatoscope.papers.phantom_bench.bench import Benched, bench
from negatoscope.papers.phantom_bench.heat import WAYS, measured, ranked, shares_of
from negatoscope.papers.phantom_bench.laid_out import save
from negatoscope.papers.phantom_bench.nearest import PROPERTIES, firsts, how_far, nearest, spread
from negatoscope.papers.phantom_bench.rare import drawn_in, split_by_frequency, told_in
from negatoscope.papers.phantom_bench.ready import plans_of
from negatoscope.papers.phantom_bench.sampling import Sample
from negatoscope.papers.phantom_bench.settings import ROWS, BenchSettings
from negatoscope.papers.phantom_bench.short import NORMAL, short_report
from negatoscope.papers.running import Ran
from negatoscope.papers.work import Job, state_of, work
from negatoscope.reading_room.phantom_sheet import bench_sheet
from negatoscope.studies.phantom.settings import FINDINGS, PhantomSettings

Array = NDArray[np.float64]


def maps_and_covers(seed: int, n: int = 6, patches: int = 9) -> tuple[Array, Array]:
    draw = np.random.default_rng(seed)
    covers = np.maximum(draw.random((n, 2, patches)) - 0.6, 0) * 2.5
    covers[:, :, 0] = 1.0
    covers[1, 1] = 0  # this finding cannot be seen from the side
    maps = draw.normal(size=(n, 2, patches))
    maps[2, 1] = np.nan  # this study has no lateral view
    return maps, covers


def test_heat_by_loops() -> None:
    maps, covers = maps_and_covers(1)
    found = measured(maps, covers)
    seen = {(k, v) for k in range(6) for v in range(2)} - {(1, 1), (2, 1)}

    def share(k: int, other: int, v: int) -> float:
        above = [max(0.0, value) for value in maps[k, v]]
        return sum(a * c for a, c in zip(above, covers[other, v], strict=True)) / sum(above)

    for k in range(6):
        views = [v for v in range(2) if (k, v) in seen]
        inside, chance, hit, order = [], [], [], []
        for v in views:
            inside.append(share(k, k, v))
            others = [j for j in range(6) if j != k and (j, v) in seen]
            chance.append(sum(share(j, k, v) for j in others) / len(others))
            best = max(range(9), key=lambda p: maps[k, v, p])
            hit.append(float(covers[k, v, best] > 0))
            wins = [
                (covers[k, v, p] * (1 - covers[k, v, q]), maps[k, v, p], maps[k, v, q])
                for p in range(9)
                for q in range(9)
            ]
            whole = sum(weight for weight, _, _ in wins)
            order.append(sum(weight * ((a > b) + 0.5 * (a == b)) for weight, a, b in wins) / whole)
        for name, values in (("share", inside), ("chance", chance), ("hit", hit), ("order", order)):
            assert found[name][k] == pytest.approx(sum(values) / len(values)), name
        assert found["uniform"][k] == pytest.approx(np.mean([covers[k, v].mean() for v in views]))


def test_a_map_that_is_the_mask_and_one_that_is_the_same_everywhere() -> None:
    cover = np.zeros((3, 2, 16))
    for k in range(3):
        cover[k, :, k : k + 4] = 1
    right = measured(cover, cover)
    assert right["share"].tolist() == [1, 1, 1]
    assert right["hit"].tolist() == [1, 1, 1]
    assert right["order"].tolist() == [1, 1, 1]
    assert (right["chance"] < 1).all()
    flat = measured(np.ones_like(cover), cover)
    assert flat["share"] == pytest.approx(flat["uniform"])
    assert flat["order"] == pytest.approx(0.5)
    assert shares_of(np.array([[-1.0, -2.0], [3.0, -1.0]])).tolist() == [[0.5, 0.5], [1, 0]]


def test_one_study_alone_has_no_chance_to_be_held_against() -> None:
    cover = np.zeros((1, 2, 4))
    cover[0, 0, 1] = 1
    found = measured(np.ones((1, 2, 4)), cover)
    assert found["share"][0] == pytest.approx(0.25)
    assert np.isnan(found["chance"][0]), "0 would say that nothing ever falls there"


def test_order_is_the_area_under_the_curve() -> None:
    from sklearn.metrics import roc_auc_score

    draw = np.random.default_rng(2)
    cover = (draw.random(40) < 0.3).astype(float)
    values = draw.integers(0, 6, 40).astype(float)  # with ties
    assert ranked(values, cover) == pytest.approx(roc_auc_score(cover, values))
    assert np.isnan(ranked(values, np.ones(40)))


def test_which_normals_are_chosen_and_how_far_they_are() -> None:
    shares = np.array([[[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], [[0.6, 0.3, 0.1], [0.9, 0.1, 0.0]]])
    assert firsts(shares).tolist() == [[0.5, 0, 0.5], [1, 0, 0]]
    pool = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [-1.0, 0.0]])
    assert nearest(np.array([[1.0, 0.0]]), pool, 2).tolist() == [[0.5, 0, 0.5, 0]]
    alike = np.full((1, 2, 4), 0.25)
    one = np.zeros((1, 2, 4))
    one[:, :, 0] = 1
    assert spread(alike).tolist() == [1]
    assert spread(one).tolist() == [0.25]


def test_a_random_normal_is_1_away_and_the_study_itself_0() -> None:
    plans = plans_of(PhantomSettings(studies=40, size=64, seed=3))
    ours = plans[:10]
    far = how_far(np.full((10, 40), 1 / 40), ours, plans)
    same = how_far(np.eye(40)[:10], ours, plans)
    assert set(far) == set(PROPERTIES)
    for name in PROPERTIES:
        told = ~np.isnan(far[name])
        assert far[name][told] == pytest.approx(1), name
        assert same[name][~np.isnan(same[name])] == pytest.approx(0), name
        assert told.any()


def test_means_over_studies_and_seeds() -> None:
    values = np.array([[1.0, np.nan, 0.0, 1.0], [1.0, np.nan, 1.0, 1.0]])
    one = Sample(4, 100, seed=1).mean(values, values - 0.5)
    assert one.each == (pytest.approx(2 / 3), 1.0)
    assert one.value == pytest.approx(5 / 6)
    assert one.low < one.value <= one.high
    assert one.difference == pytest.approx((0.5, 0.5)), "the same studies are drawn for both"


def test_recall_is_a_mean_over_findings_not_over_studies() -> None:
    asked = np.array([[1, 1], [1, 0], [1, 0], [1, 0]], float)
    hits = np.array([[[1, 0], [1, 0], [1, 1], [0, 1]]], float)
    one = Sample(4, 200).rates(hits, asked)
    assert one.value == pytest.approx((3 / 4 + 0 / 1) / 2), "what is told of a study without the finding is no hit"


def test_what_is_told_is_what_was_drawn() -> None:
    alike = dict.fromkeys(FINDINGS, 1.0)
    plans = plans_of(PhantomSettings(studies=300, size=64, seed=5, normal_share=0, frequencies=alike))
    told, drawn = told_in([short_report(plan) for plan in plans]), drawn_in(plans)
    assert (drawn.sum(0) >= 8).all()
    wrong = [(FINDINGS[f], short_report(plans[k])) for k, f in np.argwhere(told != drawn)]
    assert wrong == []
    assert told_in([NORMAL]).sum() == 0


def test_rare_and_frequent() -> None:
    frequency = np.array([0.3, 0.01, 0.0, 0.02])
    measured_of = np.array([[1.0, 1.0, 1.0, 0.0]])
    assert split_by_frequency(frequency, measured_of, 0.05) == ([1], [0]), "neither one nobody learned nor one unasked"


def run_here(
    jobs: Sequence[Job],
    at_once: int,
    *,
    deadline: float | None = None,
    threads: int | None = None,
    say: Callable[[str], None] = print,
) -> Ran:
    waiting = [job for job in jobs if not state_of(Path(job.folder)).finished]
    for job in waiting:
        work(job)
    return Ran(len(waiting), 0, (), 0)


LITTLE = BenchSettings(studies=60, held_out=40, size=64, image_size=96, teach_epochs=1, epochs=1, draws=20)


@pytest.fixture(scope="module")
def little(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Benched]:
    folder = tmp_path_factory.mktemp("bench")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "run_all", run_here)
        return folder, bench(folder, settings=LITTLE, seeds=(1,), say=lambda _line: None)


def test_from_nothing_to_the_page(little: tuple[Path, Benched], tmp_path: Path) -> None:
    _, done = little
    assert set(done.looking) == set(WAYS)
    for figures in done.looking.values():
        assert 0 <= figures["share"].value <= 1
        assert 0 <= figures["order"].value <= 1
    assert set(done.recall) == {row.name for row in ROWS}
    assert done.recall["r2gen+wcl"]["recall, frequent"].difference is not None
    assert 0 < done.masked <= 40
    page, data = save(done, tmp_path)
    text = page.read_text(encoding="utf-8")
    for title in ("## Where is the finding?", "## Which normals are near?", "## Are rare findings told?"):
        assert title in text
    assert "nan" not in text
    assert json.loads(data.read_text(encoding="utf-8"))["seeds"] == [1]
    with Image.open(bench_sheet(done, tmp_path / "sheet.png")) as sheet:
        assert sheet.height > 100 * len(done.pictured) > 0


def test_nothing_is_done_twice_and_other_phantoms_are_refused(
    little: tuple[Path, Benched], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, done = little

    def never(_job: Job) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr("tests.papers.test_phantom_bench.work", never)
    monkeypatch.setattr(room, "run_all", run_here)
    again = bench(folder, settings=LITTLE, seeds=(1,), say=lambda _line: None)
    assert again.recall == done.recall
    assert again.looking == done.looking
    other = LITTLE.model_copy(update={"studies": 70})
    with pytest.raises(WrongUse, match="phantoms of other settings"):
        bench(folder, settings=other, seeds=(1,), say=lambda _line: None)


def test_runs_that_are_left_are_told(little: tuple[Path, Benched], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "run_all", lambda *_some, **_more: Ran(0, 1, (), 2))
    with pytest.raises(Trouble, match="3 runs are left"):
        bench(little[0], settings=LITTLE, seeds=(1, 2), say=lambda _line: None)
