"""Abnormal sentences: the shipped classifier, its training, its files, bad input."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from typer.testing import CliRunner

from negatoscope.cli import app
from negatoscope.errors import BadInput
from negatoscope.text.abnormal import LONGEST, AbnormalSentences, Lexicon, Shape, denied, order_features, words
from negatoscope.text.abnormal_training import (
    Recipe,
    as_rows,
    best_threshold,
    calibrate,
    design,
    figures,
    fit,
    label_noise,
    read_reports,
    train,
)
from negatoscope.text.sentence_files import read_lines

ABNORMAL = [
    "There is a small right pleural effusion.",
    "moderate cardiomegaly.",
    "Multilevel degenerative changes of the thoracic spine.",
    "Patchy opacity in the left lower lobe, concerning for pneumonia.",
]
NORMAL = [
    "No pleural effusion or pneumothorax.",
    "The lungs are clear.",
    "Heart size is within normal limits.",
    "No focal consolidation, effusion, or pneumothorax is seen.",
]
SMALL = Recipe(shape=Shape(order_bits=12, piece_bits=12))


def _reports(path: Path, count: int = 30) -> Path:
    rng = np.random.default_rng(0)
    rows = []
    for number in range(count):
        chosen = [(ABNORMAL + NORMAL)[i] for i in rng.integers(0, 8, 5)]
        rows.append({"id": f"r{number}", "sents": chosen, "labels": [sentence in ABNORMAL for sentence in chosen]})
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_shipped_classifier_tells_plain_cases() -> None:
    shipped = AbnormalSentences.default()
    assert shipped.abnormal(ABNORMAL).all()
    assert not shipped.abnormal(NORMAL).any()


def test_shipped_file_is_small() -> None:
    import negatoscope.text

    folder = Path(negatoscope.text.__file__).parent / "data"
    assert (folder / "abnormal.safetensors").stat().st_size < 3_000_000


def test_shipped_classifier_reaches_its_figures_on_dev(shared: Callable[[str], Path]) -> None:
    dev = as_rows(read_reports(shared("data/abnormal-sentences/dev.jsonl")))
    reached = figures(dev.labels, AbnormalSentences.default().abnormal(dev.sentences), dev.report, seed=1)
    assert reached.f1.value >= 0.980
    assert reached.f1.low < reached.f1.value < reached.f1.high


@pytest.mark.full
def test_the_one_command_makes_the_shipped_file_again(shared: Callable[[str], Path]) -> None:
    folder = shared("data/abnormal-sentences")
    model, trained = train(folder / "train.jsonl", None)
    shipped = AbnormalSentences.default()
    assert model.threshold == shipped.threshold
    np.testing.assert_allclose(model.probability(ABNORMAL + NORMAL), shipped.probability(ABNORMAL + NORMAL), atol=1e-3)
    assert trained.held_out_unseen.f1.value > 0.953


def test_no_word_gives_zero_and_unknown_words_a_probability() -> None:
    shipped = AbnormalSentences.default()
    assert shipped.probability(["", "   ", "...", "-- !"]).tolist() == [0.0] * 4
    unknown = shipped.probability(["zqxv wqrtz", "жизнь", "肺炎"])
    assert np.all((unknown > 0) & (unknown < 1))
    assert len(shipped.probability([])) == 0


def test_a_sentence_of_400_words_and_one_of_a_million() -> None:
    shipped = AbnormalSentences.default()
    assert shipped.abnormal([" ".join(["small pleural effusion"] * 133)])[0]
    long = "clear " * LONGEST
    assert shipped.probability([long + "effusion " * 200_000])[0] == shipped.probability([long])[0]


def test_answers_do_not_depend_on_the_company() -> None:
    shipped = AbnormalSentences.default()
    together = shipped.probability(ABNORMAL + [""] + NORMAL * 600)
    alone = np.concatenate([shipped.probability([sentence]) for sentence in ABNORMAL])
    np.testing.assert_allclose(together[: len(ABNORMAL)], alone, rtol=1e-12)


def test_commas_hyphens_numbers_and_case_do_not_matter() -> None:
    read = "a 0 cm right sided t0 opacity ; xxxx xxxx"
    assert words("A 1.5-cm, right-sided T11 opacity; ___ Xxxx.") == read.split()


def test_scope_of_a_denial_ends_at_a_turn_and_at_the_sentence() -> None:
    lexicon = Lexicon(Shape())
    rows, _, _ = lexicon.read(["no effusion but edema", "opacity"])
    scopes = denied(np.array(lexicon.cues)[rows]).astype(int).tolist()
    assert scopes == [0, 1, 1, 0, 0, 0, 0, 0, 0]  # <s> no effusion but edema </s> <s> opacity </s>


def test_order_features_stay_inside_their_sentence() -> None:
    lexicon = Lexicon(Shape())
    texts = ["no effusion", "mild edema is seen", "no"]

    def features(sentences: list[str]) -> list[list[int]]:
        rows, owner, _ = lexicon.read(sentences)
        hashes, cues = np.array(lexicon.hashes, np.uint64)[rows], np.array(lexicon.cues)[rows]
        buckets, owners = order_features(hashes, cues, owner, 18)
        return [sorted(buckets[owners == number].tolist()) for number in range(len(sentences))]

    assert features(texts) == [features([text])[0] for text in texts]


def test_inference_is_the_product_with_the_design_matrix() -> None:
    labels = np.array([True] * 4 + [False] * 4)
    model = fit(ABNORMAL + NORMAL, labels, SMALL)
    weights = np.concatenate([model.order, model.pieces]).astype(np.float64)
    np.testing.assert_allclose(
        model.logits(ABNORMAL + NORMAL), design(ABNORMAL + NORMAL, SMALL.shape) @ weights + model.bias, rtol=1e-9
    )


def test_calibration_finds_slope_and_shift() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 2, 40_000)
    labels = rng.random(40_000) < 1 / (1 + np.exp(-(2 * logits - 1)))
    assert calibrate(logits, labels) == pytest.approx((2, -1), abs=0.1)


def test_threshold_is_in_the_middle_of_the_best_range() -> None:
    probability = np.array([0.1, 0.3, 0.7, 0.9])
    assert best_threshold(np.array([False, False, True, True]), probability) == pytest.approx(0.5, abs=0.01)


def test_figures_and_noise_by_hand() -> None:
    labels, said = np.array([True, True, False, False]), np.array([True, False, True, False])
    reached = figures(labels, said, np.array([0, 0, 1, 1]), seed=0)
    assert (reached.f1.value, reached.precision.value, reached.recall.value, reached.errors) == (0.5, 0.5, 0.5, 2)
    noise = label_noise(["a", "a", "a", "b", "b", "c"], np.array([True, True, False, True, True, False]))
    assert (noise["repeated"], noise["conflicting"], noise["minority_rows"], noise["minority_share"]) == (2, 1, 1, 0.2)


def test_training_is_seeded_and_round_trips(tmp_path: Path) -> None:
    reports = _reports(tmp_path / "train.jsonl")
    first, trained = train(reports, reports, SMALL)
    second, _ = train(reports, None, SMALL)
    assert np.array_equal(first.order, second.order)
    assert trained.dev is not None
    assert trained.dev.errors == 0
    first.save(tmp_path / "model.safetensors")
    again = AbnormalSentences.load(tmp_path / "model.safetensors")
    assert np.array_equal(again.probability(ABNORMAL + NORMAL), first.probability(ABNORMAL + NORMAL))
    assert again.threshold == first.threshold


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "not a labelled report"),
        ('{"id": "a", "sents": ["x"]}', "not a labelled report"),
        ('{"id": "a", "sents": ["x"], "labels": [true, false]}', "1 sentences with 2 labels"),
        ('{"id": "a", "sents": ["x"], "labels": [1]}', "true or false"),
        ('{"id": "a", "sents": ["x"], "labels": [true]}', "both abnormal and normal"),
    ],
)
def test_bad_reports_are_named(tmp_path: Path, line: str, said: str) -> None:
    (tmp_path / "bad.jsonl").write_text(line)
    with pytest.raises(BadInput, match=said):
        read_reports(tmp_path / "bad.jsonl")


def test_files_that_are_no_classifier(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        AbnormalSentences.load(tmp_path / "none.safetensors")
    (tmp_path / "text.safetensors").write_text("hello")
    with pytest.raises(BadInput, match="cannot be read"):
        AbnormalSentences.load(tmp_path / "text.safetensors")
    save_file({"order": np.zeros(3, np.float16)}, tmp_path / "other.safetensors")
    with pytest.raises(BadInput, match="holds no classifier"):
        AbnormalSentences.load(tmp_path / "other.safetensors")


def test_lines_keep_their_numbers_and_a_bad_byte_names_its_line(tmp_path: Path) -> None:
    file = tmp_path / "sentences.txt"
    file.write_bytes("\ufeffa\r\n\nb é\n".encode())
    assert read_lines(file) == ["a", "", "b é"]
    file.write_bytes(b"fine\nbad \xff byte\n")
    with pytest.raises(BadInput, match=r"sentences\.txt:2: byte 5 is not UTF-8"):
        read_lines(file)


def test_command_answers_every_line(tmp_path: Path) -> None:
    file, out = tmp_path / "sentences.txt", tmp_path / "verdicts.jsonl"
    file.write_text(f"{ABNORMAL[0]}\n\n{NORMAL[0]}\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["findings", "classify", str(file), "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["abnormal"] == 1
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row["abnormal"] for row in rows] == [True, False, False]
    assert [row["sentence"] for row in rows] == [ABNORMAL[0], "", NORMAL[0]]
    assert rows[1]["probability"] == 0
    printed = CliRunner().invoke(app, ["findings", "classify", str(file)])
    assert [json.loads(line) for line in printed.stdout.splitlines()] == rows


def test_command_says_one_line_of_a_bad_file(tmp_path: Path) -> None:
    file = tmp_path / "latin.txt"
    file.write_bytes(b"caf\xe9\n")
    done = CliRunner().invoke(app, ["findings", "classify", str(file)])
    assert done.exit_code == 1
    assert "latin.txt:1" in done.stderr
    assert done.stdout == ""


def test_train_command_writes_a_file_that_classify_takes(tmp_path: Path) -> None:
    reports = _reports(tmp_path / "train.jsonl")
    out = tmp_path / "mine.safetensors"
    asked = ["findings", "train", "--train", str(reports), "--dev", str(reports), "--out", str(out), "--json"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["dev"]["f1"][0] == 1.0
    (tmp_path / "s.txt").write_text(ABNORMAL[0])
    said = CliRunner().invoke(app, ["findings", "classify", str(tmp_path / "s.txt"), "--model", str(out)])
    assert json.loads(said.stdout)["abnormal"] is True


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random BERT of two thin layers that knows the words of this file."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("encoder")
    known = sorted({word for sentence in ABNORMAL + NORMAL for word in words(sentence)})
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", ",", *known]))
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    shape = transformers.BertConfig(
        vocab_size=len(known) + 7, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
    )
    transformers.BertModel(shape).save_pretrained(folder)
    return folder


def test_an_encoder_is_fine_tuned_saved_and_used(tmp_path: Path, tiny_encoder: Path) -> None:
    from negatoscope.text.abnormal_encoder import EncoderRecipe, EncoderSentences, fine_tune

    reports = _reports(tmp_path / "train.jsonl", 60)
    recipe = EncoderRecipe(epochs=60, batch=8, lr=3e-3)
    classifier, trained = fine_tune(tiny_encoder, reports, reports, recipe)
    assert trained.dev is not None
    assert trained.dev.f1.value > 0.95
    classifier.save(tmp_path / "mine")
    again = EncoderSentences.load(tmp_path / "mine")
    np.testing.assert_allclose(again.probability(ABNORMAL), classifier.probability(ABNORMAL), rtol=1e-5)
    assert again.probability(["", "..."]).tolist() == [0, 0]
    (tmp_path / "s.txt").write_text(ABNORMAL[0])
    said = CliRunner().invoke(app, ["findings", "classify", str(tmp_path / "s.txt"), "--model", str(tmp_path / "mine")])
    assert json.loads(said.stdout)["abnormal"] is True


def test_a_folder_that_is_no_encoder(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    from negatoscope.text.abnormal_encoder import EncoderSentences, fine_tune

    with pytest.raises(BadInput, match="holds no abnormal-sentences"):
        EncoderSentences.load(tmp_path)
    with pytest.raises(BadInput, match="no encoder"):
        fine_tune(tmp_path, _reports(tmp_path / "train.jsonl"), None)
