"""Complete reports, their abnormal sentences, and another order."""

from __future__ import annotations

import numpy as np

from negatoscope.studies.study import Study
from negatoscope.text.report_forms import ReportForm, SentenceLabels
from negatoscope.text.words import Vocabulary

REPORT = "The lungs are clear. There is a large right pleural effusion. No pneumothorax. The heart is mildly enlarged"


def test_a_complete_report_is_left_as_it_is() -> None:
    form = ReportForm()
    assert not form.changes
    assert form.kept(REPORT) == form.told(REPORT, "s", 3, 1) == REPORT


def test_abnormal_sentences_alone() -> None:
    form = ReportForm(keep="abnormal")
    assert form.changes
    assert form.kept(REPORT) == "There is a large right pleural effusion. The heart is mildly enlarged"
    assert form.kept("The lungs are clear. The heart is normal in size.") == ""


def test_the_order_is_anew_at_each_epoch_and_the_same_when_asked_again() -> None:
    form = ReportForm(order="shuffled")
    orders = [form.told(REPORT, "s", epoch, 1) for epoch in range(8)]
    assert len(set(orders)) > 3
    assert orders == [form.told(REPORT, "s", epoch, 1) for epoch in range(8)]
    assert orders[0] != form.told(REPORT, "other", 0, 1) or orders[1] != form.told(REPORT, "other", 1, 1)
    parts = {tuple(sorted(part.strip() for part in order.split(".") if part.strip())) for order in orders}
    assert len(parts) == 1, "the same sentences, each ended"
    assert form.kept(REPORT) == REPORT, "what is validated keeps its order"


def test_abnormal_and_shuffled() -> None:
    told = {ReportForm(keep="abnormal", order="shuffled").told(REPORT, "s", epoch, 1) for epoch in range(12)}
    assert told == {
        "There is a large right pleural effusion. The heart is mildly enlarged.",
        "The heart is mildly enlarged. There is a large right pleural effusion.",
    }


def test_labels_follow_the_words_sentence_by_sentence() -> None:
    vocabulary = Vocabulary.build([REPORT], cutoff=1, max_words=20)
    found = np.array(SentenceLabels(vocabulary)(Study("s", report=REPORT))["abnormal"])
    assert found.shape == (20,)
    assert found[:4].tolist() == [0.0, 1.0, 0.0, 1.0]
    assert np.isnan(found[4:]).all()
    stops = np.array(SentenceLabels(vocabulary)(Study("s", report="Clear . . Effusion."))["abnormal"])
    assert np.isnan(stops[1]), "nothing stands between two full stops"
