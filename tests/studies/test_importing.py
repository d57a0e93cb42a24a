"""An import ends whole or not at all, goes on where it stopped, and ends with the same bytes either way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from small_sources import as_png, drawn, r2gen_row, tree, write_r2gen

from negatoscope.errors import BadInput, Trouble, WrongUse
from negatoscope.studies.image_files import image_name, made_smaller
from negatoscope.studies.importing import import_studies
from negatoscope.studies.pixels import read_pixels
from negatoscope.studies.seen_ids import SeenIds
from negatoscope.studies.sources import Damaged, Drawing, Found, Source, open_source
from negatoscope.studies.splits import Splitting
from negatoscope.studies.store import Store
from negatoscope.studies.study import Picture, Study


class Few(Source):
    """Studies that are handed to it."""

    name = "few"
    needs_path = False

    def __init__(
        self, items: list[Found | Damaged], stop_before: int | None = None, error: BaseException | None = None
    ):
        super().__init__(None)
        self.items, self.stop_before, self.error = items, stop_before, error
        self.asked = 0

    def examinations(self) -> Iterator[Found | Damaged]:
        for number, item in enumerate(self.items):
            if number == self.stop_before and self.error is not None:
                raise self.error
            self.asked += 1
            yield item


def drawn_study(number: int, dtype: type = np.uint8, **changes: Any) -> Found:
    study = Study(f"study-{number}", (Picture(""), Picture("", "lateral")), f"report {number} says so", "train")
    mask = np.zeros((12, 10), bool)
    mask[2:5] = True

    def draw() -> Drawing:
        return Drawing((drawn(2 * number, dtype=dtype), drawn(2 * number + 1, dtype=dtype)), {"effusion@0": mask})

    return Found(replace(study, **changes), draw, f"number {number}")


def few(count: int = 10) -> list[Found | Damaged]:
    return [drawn_study(number) for number in range(count)]


def test_drawn_pictures_and_masks_come_back(tmp_path: Path) -> None:
    report = import_studies(Few([drawn_study(0), drawn_study(1, np.uint16)]), tmp_path / "store")
    assert (report.studies, report.pictures, report.added, report.splits["train"]) == (2, 4, 2, 2)
    store = Store.open(tmp_path / "store")
    for number, dtype in enumerate((np.uint8, np.uint16)):
        study = store.at(number)
        for nth, picture in enumerate(study.pictures):
            pixels = read_pixels(store.picture_path(picture))
            np.testing.assert_array_equal(pixels.grey, drawn(2 * number + nth, dtype=dtype))
            assert (picture.height, picture.width, picture.bits) == (12, 10, 8 * np.dtype(dtype).itemsize)
            assert picture.sha256 == pixels.sha256()
        mask = np.asarray(Image.open(store.picture_path(study.masks["effusion@0"])))
        assert mask.dtype == bool
        assert mask.sum() == 30
        assert study.pictures[1].view == "lateral"


def test_files_are_copied_as_they_are(tmp_path: Path) -> None:
    source = write_r2gen(tmp_path / "source", {"train": [r2gen_row(1)]})
    Image.fromarray(drawn(5)).save(source / "images/CXR1_IM-0001/1.png", "JPEG")  # whatever the name says
    import_studies(open_source("r2gen-json", source), tmp_path / "store")
    store = Store.open(tmp_path / "store")
    first, second = (store.picture_path(picture) for picture in store.at(0).pictures)
    assert first.read_bytes() == (source / "images/CXR1_IM-0001/0.png").read_bytes()
    assert second.read_bytes() == (source / "images/CXR1_IM-0001/1.png").read_bytes()
    assert (first.suffix, second.suffix) == (".png", ".jpg")


def test_other_formats_become_png(tmp_path: Path) -> None:
    source = write_r2gen(tmp_path / "source", {"train": [r2gen_row(1)]})
    Image.fromarray(drawn(5, dtype=np.uint16)).save(source / "images/CXR1_IM-0001/0.png", "TIFF")
    import_studies(open_source("r2gen-json", source), tmp_path / "store")
    store = Store.open(tmp_path / "store")
    picture = store.at(0).pictures[0]
    assert store.picture_path(picture).read_bytes().startswith(b"\x89PNG")
    np.testing.assert_array_equal(read_pixels(store.picture_path(picture)).grey, drawn(5, dtype=np.uint16))
    assert picture.bits == 16


def test_a_short_side_makes_larger_pictures_smaller_and_only_those(tmp_path: Path) -> None:
    source = write_r2gen(tmp_path / "source", {"train": [r2gen_row(1)]})
    (source / "images/CXR1_IM-0001/1.png").write_bytes(as_png(drawn(3, 40, 60)))
    for form, ending in (("png", ".png"), ("jpeg", ".jpg")):
        import_studies(open_source("r2gen-json", source), tmp_path / form, short_side=20, form=form)  # pyright: ignore[reportArgumentType]
        store = Store.open(tmp_path / form)
        small, large = store.at(0).pictures
        assert (small.height, small.width) == (12, 10)
        assert (large.height, large.width) == (20, 30)
        assert large.path.endswith(ending)
        assert read_pixels(store.picture_path(large)).sha256() == large.sha256


def test_reference_leaves_the_pictures_where_they_are(tmp_path: Path) -> None:
    source = write_r2gen(tmp_path / "source", {"train": [r2gen_row(1)]})
    import_studies(open_source("r2gen-json", source), tmp_path / "store", images="reference")
    store = Store.open(tmp_path / "store")
    assert store.picture_path(store.at(0).pictures[0]) == (source / "images/CXR1_IM-0001/0.png").resolve()
    assert not (tmp_path / "store/images").exists()
    with pytest.raises(WrongUse, match="--images copy"):
        import_studies(open_source("r2gen-json", source), tmp_path / "other", images="reference", short_side=3)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_made_smaller_keeps_brightness_and_range(dtype: type) -> None:
    ramp = np.broadcast_to(np.linspace(0, np.iinfo(dtype).max, 400), (300, 400)).astype(dtype)
    small = made_smaller(ramp, 30)
    assert (small.shape, small.dtype) == ((30, 40), dtype)
    assert small.mean() == pytest.approx(ramp.mean(), rel=0.005)
    steps = np.where(np.arange(400) % 20 < 10, 0, np.iinfo(dtype).max).astype(dtype)
    assert made_smaller(np.tile(steps, (300, 1)), 299).max() == np.iinfo(dtype).max  # Lanczos overshoots; nothing wraps


@pytest.mark.parametrize(
    "id", ["../../x", "/etc/passwd", "a/b\\c", "..", ".hidden", "x" * 300, "naïve\n", "a b", "CON\0"]
)
def test_no_id_names_a_file_outside_the_store(id: str) -> None:
    name = image_name(id, "0", ".png")
    folder, two, file = name.split("/")
    assert folder == "images"
    assert len(two) == 2
    assert not file.startswith(".")
    assert len(file) < 120
    assert file.isascii()
    assert file.isprintable()


def test_ids_that_look_alike_once_made_safe_keep_their_own_files() -> None:
    names = {image_name(id, "0", ".png") for id in ("a/b", "a\\b", "a_b", "a:b", "a b")}
    assert len(names) == 5


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("killed"), OSError(5, "bad disk")])
@pytest.mark.parametrize("stop_before", [0, 1, 5, 6, 9])
def test_a_stopped_import_goes_on_and_ends_with_the_same_bytes(
    tmp_path: Path, stop_before: int, error: Exception
) -> None:
    import_studies(Few(few()), tmp_path / "at once", studies_a_part=3)
    with pytest.raises(type(error)):
        import_studies(Few(few(), stop_before, error), tmp_path / "store", studies_a_part=3)
    with pytest.raises(BadInput, match="resume"):
        Store.open(tmp_path / "store")
    assert not list((tmp_path / "store").rglob("*.part"))
    import_studies(Few(few()), tmp_path / "store", studies_a_part=3)
    assert tree(tmp_path / "store") == tree(tmp_path / "at once")


def test_resuming_draws_nothing_that_is_there(tmp_path: Path) -> None:
    import_studies(Few(few()), tmp_path / "store", studies_a_part=3)
    before = tree(tmp_path / "store")

    def never() -> Drawing:
        raise AssertionError("it was there already")

    again = [Found(item.study, never) for item in few() if isinstance(item, Found)]
    report = import_studies(Few([*again, drawn_study(10)]), tmp_path / "store", studies_a_part=3)
    assert (report.added, report.studies) == (1, 11)
    store = Store.open(tmp_path / "store")
    assert [study.id for study in store] == [f"study-{n}" for n in range(11)]
    after = tree(tmp_path / "store")
    assert {name: after[name] for name in before if name != "store.json"} == {
        name: before[name] for name in before if name != "store.json"
    }


_IMPORT = """
import sys
from pathlib import Path
from negatoscope.studies.importing import import_studies
from negatoscope.studies.sources import open_source
import_studies(open_source("r2gen-json", Path(sys.argv[1])), Path(sys.argv[2]), studies_a_part=20)
"""


def test_sigkill_leaves_nothing_that_is_taken_for_whole(tmp_path: Path) -> None:
    source = write_r2gen(tmp_path / "source", {"train": [r2gen_row(number) for number in range(150)]})
    import_studies(open_source("r2gen-json", source), tmp_path / "at once", studies_a_part=20)
    running = subprocess.Popen([sys.executable, "-c", _IMPORT, str(source), str(tmp_path / "store")])
    until = time.monotonic() + 60
    while running.poll() is None and not (tmp_path / "store/studies/part-00001.parquet").exists():
        assert time.monotonic() < until
        time.sleep(0.002)
    assert running.poll() is None, "it ended before it could be killed"
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    with pytest.raises(BadInput, match="resume"):
        Store.open(tmp_path / "store")
    (tmp_path / "store/images/.left-over.png.99.part").write_bytes(b"half")
    import_studies(open_source("r2gen-json", source), tmp_path / "store", studies_a_part=20)
    assert tree(tmp_path / "store") == tree(tmp_path / "at once")


def test_two_imports_into_one_store_at_once(tmp_path: Path) -> None:
    refused: list[str] = []

    class Nosy(Few):
        def examinations(self) -> Iterator[Found | Damaged]:
            with pytest.raises(Trouble, match="another import") as caught:
                import_studies(Few(few()), tmp_path / "store")
            refused.append(str(caught.value))
            yield from super().examinations()

    import_studies(Nosy(few(2)), tmp_path / "store")
    assert len(refused) == 1


def test_other_settings_need_another_store(tmp_path: Path) -> None:
    import_studies(Few(few(2)), tmp_path / "store")
    with pytest.raises(WrongUse, match=r"keeping: short_side: \(null, now 5\)"):
        import_studies(Few(few(2)), tmp_path / "store", short_side=5)
    with pytest.raises(WrongUse, match=r"splitting: by: \(\"source\", now \"seeded\"\)"):
        import_studies(Few(few(2)), tmp_path / "store", splitting=Splitting(by="seeded"))
    source = write_r2gen(tmp_path / "source", {"train": [r2gen_row(1)]})
    with pytest.raises(WrongUse, match="begun with another source"):
        import_studies(open_source("r2gen-json", source), tmp_path / "store")
    assert len(Store.open(tmp_path / "store")) == 2


def test_a_misspelt_path_does_not_tie_the_store_to_it(tmp_path: Path) -> None:
    source = write_r2gen(tmp_path / "source", {"train": [r2gen_row(1)]})
    with pytest.raises(BadInput, match=r"annotation\.json"):
        import_studies(open_source("r2gen-json", tmp_path / "sorce"), tmp_path / "store")
    assert import_studies(open_source("r2gen-json", source), tmp_path / "store").studies == 1


def test_a_folder_that_holds_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("dear to somebody")
    with pytest.raises(WrongUse, match=r"thesis\.tex"):
        import_studies(Few(few(1)), tmp_path)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_the_splitting_decides(tmp_path: Path) -> None:
    studies = [drawn_study(n, patient=f"p{n % 7}") for n in range(40)]
    import_studies(Few(list(studies)), tmp_path / "store", splitting=Splitting(by="seeded", shares=(0.4, 0.3, 0.3)))
    table = Store.open(tmp_path / "store").table(["patient", "split"]).to_pylist()
    assert len({(row["patient"], row["split"]) for row in table}) == 7
    assert len({row["split"] for row in table}) == 3


def test_what_a_source_leaves_out_by_its_own_rule_is_counted_and_no_reason_to_stop(tmp_path: Path) -> None:
    items = [drawn_study(0), Damaged("x", "a report without an image", known=True)]
    report = import_studies(Few(items), tmp_path / "store")
    assert (report.left_out, report.damaged) == ({"a report without an image": 1}, 0)
    assert '"known": true' in (tmp_path / "store/bad.jsonl").read_text()
    assert Store.open(tmp_path / "store").counts()["left_out"] == 1


def test_an_empty_source_makes_no_store(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="not one study found"):
        import_studies(Few([]), tmp_path / "store")
    with pytest.raises(BadInput, match="resume"):
        Store.open(tmp_path / "store")


def test_a_watch_sees_every_examination(tmp_path: Path) -> None:
    told = []

    def watch(items, what, total=None):
        told.append((what, total))
        for item in items:
            told.append(item)
            yield item

    import_studies(Few(few(5)), tmp_path / "store", watch=watch)
    assert told[0] == ("importing few", None)
    assert len(told) == 6


def test_seen_ids_against_a_set() -> None:
    seen, reference = SeenIds(), set()
    for number in np.random.default_rng(3).integers(0, 5000, 8000):
        id = f"study {number}"
        assert (id in seen) == (id in reference)
        assert seen.add(id) == (id not in reference)
        reference.add(id)
    assert len(seen) == len(reference)


def test_unknown_sources_and_settings() -> None:
    with pytest.raises(WrongUse, match="did you mean 'iu-xray'"):
        open_source("iuxray", "x")
    with pytest.raises(WrongUse, match="'annotation'"):
        open_source("r2gen-json", "x", {"anotation": "y"})
    with pytest.raises(WrongUse, match="needs a path"):
        open_source("coco")
