"""What all rows of a table stand on: one store, one cache of features, one set of references, rows that need no model.

A folder of results holds of them what scoring needs and nothing large, so that it can be carried elsewhere:

    grounds.json                           what the store and the features are
    complete/references-val.jsonl          the validation reports (abnormal/: their abnormal sentences)
    complete/vocabulary.json               the words that scoring knows
    complete/constant-report/reports-val.jsonl, nearest-study/..., consensus-of-15/...
    runs/..., tables/...

The store, its abnormal-only sibling (STORE.abnormal) and the features lie where they were, outside of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from negatoscope.errors import BadInput, WrongUse
from negatoscope.metrics.baselines import constant_report
from negatoscope.metrics.protocol import Protocol, protocol_named
from negatoscope.papers.paper import Form
from negatoscope.studies.store import Store, read_about
from negatoscope.text.tags import tags_of_study
from negatoscope.text.words import Vocabulary
from negatoscope.vision.features import FeatureCache
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import write_json, write_text

Data = Literal["iu-xray", "phantom"]
CONSTANT, NEAREST, CONSENSUS = "constant-report", "nearest-study", "consensus-of-15"
MODELLESS = {
    CONSTANT: "One report for everybody",
    NEAREST: "Nearest training study",
    CONSENSUS: "Most typical of the 15 nearest",
}
WORDS: Mapping[Data, dict[str, Any]] = {
    "iu-xray": {"cleaning": "iu-xray", "cutoff": 3, "max_words": 60},
    "phantom": {"cleaning": "iu-xray", "cutoff": 2, "max_words": 90},
}
REFERENCES = "references-val.jsonl"
REPORTS = "reports-val.jsonl"


@dataclass(frozen=True)
class Grounds:
    data: Data
    folder: Path
    store: Path
    features: Path
    about: Mapping[str, Any]
    """`studies` of each split, `tags` (whether there are MeSH heads, how many), `features`: the cache's key."""
    here: bool = True
    """Whether store and features are at hand: without them nothing can be trained, only scored."""

    @property
    def width(self) -> int:
        return int(self.about["features"]["width"])

    def store_of(self, form: Form) -> Path:
        return self.store if form == "complete" else abnormal_sibling(self.store)

    def protocol(self, form: Form) -> Protocol:
        path = self.folder / form / "vocabulary.json"
        if not path.exists():
            raise BadInput("no vocabulary of these reports", where=path, remedy="run with the store first")
        return protocol_named("r2gen", vocabulary=Vocabulary.load(path))

    def references(self, form: Form) -> Path:
        path = self.folder / form / REFERENCES
        if not path.exists():
            raise BadInput("no references here", where=path, remedy="run with the store first: --store STORE")
        return path

    def modelless(self, form: Form) -> dict[str, Path]:
        """Name -> reports, of the rows that need no model."""
        found = {name: self.folder / form / name / REPORTS for name in MODELLESS}
        return {name: path for name, path in found.items() if path.exists()}


def abnormal_sibling(store: Path) -> Path:
    return store.with_name(f"{store.name}.abnormal")


def known_grounds(folder: Path) -> Grounds | None:
    """What a folder of results tells of itself, without store or features."""
    path = folder / "grounds.json"
    if not path.exists():
        return None
    said = json.loads(path.read_text(encoding="utf-8"))
    absent = Path("absent")
    return Grounds(said["data"], folder, absent, absent, said["about"], here=False)


def stand_on(
    data: Data,
    folder: Path,
    store: Path,
    features: Path,
    forms: Iterable[Form],
    *,
    watch: Watch = quiet,
    say: Callable[[str], None] = print,
) -> Grounds:
    """Store and features that are there, and everything made of them that scoring needs. Raises WrongUse where the
    folder holds results of another store."""
    opened, cache = Store.open(store), FeatureCache.open(features)
    about = {"studies": opened.counts(), "tags": _mesh_heads(opened), "features": cache.key.model_dump(mode="json")}
    known = known_grounds(folder)
    if known is not None and (known.data != data or dict(known.about) != about):
        raise WrongUse("holds results of another store or other features", where=folder, remedy="--into ANOTHER_FOLDER")
    write_json(folder / "grounds.json", {"data": data, "about": about})
    grounds = Grounds(data, folder, store, features, about)
    for form in dict.fromkeys(forms):
        if form == "abnormal":
            _make_sibling(opened, say, watch)
        _write_references(grounds, form)
        _write_modelless(grounds, form, cache, say, watch)
    return grounds


def _mesh_heads(store: Store) -> int:
    """Training studies' different MeSH heads of at least five studies; 0 where there are no tags."""
    from collections import Counter

    seen = Counter(head for study in store.studies("train") for head in tags_of_study(study, "mesh"))
    return sum(count >= 5 for count in seen.values())


def _make_sibling(store: Store, say: Callable[[str], None], watch: Watch) -> None:
    from negatoscope.retrieval.abnormal_store import extract_abnormal
    from negatoscope.text.abnormal import AbnormalSentences

    into = abnormal_sibling(store.path)
    about = read_about(into)
    if about is None or not about.complete:
        done = extract_abnormal(store, into, AbnormalSentences.default(), watch=watch)
        say(f"{into}: {done.studies:,} of {done.of_studies:,} studies, abnormal sentences alone")


def _write_references(grounds: Grounds, form: Form) -> None:
    store = Store.open(grounds.store_of(form))
    folder = grounds.folder / form
    rows = [row for row in store.table(["id", "report"], "val").to_pylist() if row["report"].strip()]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    known = folder / REFERENCES
    if known.exists() and known.read_text(encoding="utf-8") != text:
        raise WrongUse("holds results against other references", where=known, remedy="--into ANOTHER_FOLDER")
    write_text(known, text)
    training = store.table(["report"], "train")["report"].to_pylist()
    Vocabulary.build(training, **WORDS[grounds.data]).save(folder / "vocabulary.json")


def _write_modelless(
    grounds: Grounds, form: Form, cache: FeatureCache, say: Callable[[str], None], watch: Watch
) -> None:
    """The constant report is chosen on training reports alone: it is scored on validation."""
    folder = grounds.folder / form
    if len(grounds.modelless(form)) == len(MODELLESS):
        return
    store = Store.open(grounds.store_of(form))
    asked = [json.loads(line)["id"] for line in (folder / REFERENCES).read_text(encoding="utf-8").splitlines()]
    training = store.table(["report"], "train")["report"].to_pylist()
    constant = constant_report(training, (), grounds.protocol(form), watch)
    _write(folder / CONSTANT, asked, [constant.report] * len(asked), {"report": constant.report})
    say(f"constant report of {constant.candidates:,} candidates, training BLEU-4 {constant.training_bleu:.3f}")
    from negatoscope.retrieval.nearest import Library, study_vectors

    learned = [study for study in store.studies("train") if study.pictures]
    library = Library.of(learned, study_vectors(learned, cache, watch=watch))
    wanted = [store.study(one) for one in asked]
    queries = study_vectors(wanted, cache, watch=watch)
    nearest = library.nearest(queries)
    _write(folder / NEAREST, asked, [one.report for one in nearest])
    _write(folder / CONSENSUS, asked, [one.report for one in library.consensus(queries, 15)])


def _write(folder: Path, ids: Sequence[str], reports: Sequence[str], about: Mapping[str, Any] | None = None) -> None:
    rows = ({"id": study, "report": report} for study, report in zip(ids, reports, strict=True))
    if about:
        write_json(folder / "about.json", dict(about))
    write_text(folder / REPORTS, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
