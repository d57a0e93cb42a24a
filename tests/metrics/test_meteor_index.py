"""METEOR's index: what it keeps of the data, and when it is built."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import numpy as np
import pytest

from negatoscope.errors import BadInput, Trouble
from negatoscope.metrics import meteor
from negatoscope.metrics.meteor import Meteor, meteor_available
from negatoscope.metrics.meteor.index import LONGEST_PHRASE, fold, load_index, word_keys
from negatoscope.metrics.meteor.sources import Sources, find_sources

TABLE = "0.5\nchest film\nradiograph\n0.4\nradiograph\nchest film\n0.3\nradiograph\nplain x ray\n"
LISTS = {
    "function/english.words": "the\nof\n",
    "nonbreaking/english.prefixes": "# titles\nDr\nNo #NUMERIC_ONLY#\n\n",
    "synonym/english.exceptions": "foot\nfeet\n",
    "synonym/english.synsets": "foot\n11 12\npes\n11\ntumor\n13\ntumour\n13\n",
}


@pytest.fixture
def small(tmp_path: Path) -> Sources:
    """Data in the form of METEOR's, made up."""
    sources = Sources(tmp_path / "meteor-1.5.jar", tmp_path / "paraphrase-en.gz")
    with zipfile.ZipFile(sources.jar, "w") as jar:
        for name, text in LISTS.items():
            jar.writestr(name, text)
    with gzip.open(sources.paraphrases, "wt") as table:
        table.write(TABLE)
    return sources


def test_index_keeps_the_table_s_phrases_and_order(small, tmp_path):
    index = load_index(small, tmp_path / "cache")
    table = index.paraphrases
    film, radiograph = table.find(np.concatenate([phrase_key("chest film"), phrase_key("radiograph")]))
    assert min(film, radiograph) >= 0
    followers = table.values[table.first[radiograph] : table.first[radiograph + 1]]
    assert table.keys[followers].tolist() == [*phrase_key("chest film"), *phrase_key("plain x ray")]
    assert table.find(phrase_key("film chest")).tolist() == [-1]


def phrase_key(phrase: str) -> np.ndarray:
    key = np.zeros(1, np.uint64)
    for word in phrase.split():
        key = fold(key, word_keys([word]))
    return key


def test_paraphrases_synonyms_and_irregular_forms_match(small, tmp_path, monkeypatch):
    monkeypatch.setattr(meteor, "find_sources", lambda: small)
    ours = Meteor(tmp_path / "cache")
    rows = ours.rows(
        ["The chest film of feet", "tumours", "radiograph", "plain x ray"],
        [["the radiograph of pes"], ["tumor"], ["film"], ["radiograph"]],
    )
    # content of both and function words of both, by module: exact, stem, synonym, paraphrase
    assert rows[0, 4:20].reshape(4, 4).tolist() == [[0, 0, 2, 2], [0, 0, 0, 0], [1, 1, 0, 0], [2, 1, 0, 0]]
    assert rows[1, 4:20].reshape(4, 4).tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
    assert rows[2, 4:20].sum() == 0
    assert rows[3, 16:18].tolist() == [3, 1]  # the table leads from the reference to the prediction


def test_index_is_built_once_and_again_where_damaged_or_of_other_data(small, tmp_path):
    built = []

    def watch(items, what, total=None):
        built.append((what, total))
        return iter(items)

    cache = tmp_path / "cache"
    load_index(small, cache, watch)
    load_index(small, cache, watch)
    assert built == [("building METEOR's index, once", 1)]
    (path,) = cache.iterdir()
    assert small.checksum in path.name
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    load_index(small, cache, watch)
    path.write_bytes(data[:100])
    load_index(small, cache, watch)
    assert len(built) == 3
    with gzip.open(small.paraphrases, "wt") as table:
        table.write(TABLE.replace("plain", "thick"))
    load_index(small, cache, watch)
    assert len(built) == 4
    assert len(list(cache.iterdir())) == 2


def test_damaged_or_unwritable_files_are_named(small, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Trouble, match="XDG_CACHE_HOME"):
        load_index(small, tmp_path / "file")
    small.paraphrases.write_bytes(small.paraphrases.read_bytes()[:-20] + bytes(8))
    with pytest.raises(BadInput, match=r"paraphrase-en\.gz: not a whole gzip"):
        load_index(small, tmp_path / "cache")
    small.jar.write_bytes(b"no jar")
    with pytest.raises(BadInput, match=r"meteor-1\.5\.jar"):
        load_index(small, tmp_path / "cache")


@pytest.mark.skipif(not meteor_available(), reason="needs pycocoevalcap: pip install 'negatoscope[meteor]'")
@pytest.mark.full
def test_the_table_s_phrases_all_have_keys_of_their_own(tmp_path):
    """Otherwise two phrases would be taken for one."""
    sources = find_sources()
    phrases: set[bytes] = set()
    for some, others in sources.paraphrase_blocks(16 << 20):
        phrases.update(some, others)
    assert max(phrase.count(b" ") + 1 for phrase in phrases) == LONGEST_PHRASE
    assert len(load_index(sources, tmp_path).paraphrases.keys) == len(phrases)
