"""METEOR's counts and its score.

With content words weighing delta and function words 1 - delta, and module m's matches weighing w_m:

    P = matched / length of the prediction        R = matched / length of the reference       (all weighted)
    F = P R / (alpha P + (1 - alpha) R)
    penalty = gamma (chunks / matched words)^beta
    METEOR = F (1 - penalty)

The total over studies is the same formula of the summed counts.
"""

from __future__ import annotations

import numpy as np

from negatoscope.metrics.meteor.align import align
from negatoscope.metrics.meteor.candidates import Matcher
from negatoscope.metrics.meteor.corpus import Corpus

ALPHA, BETA, GAMMA, DELTA = 0.85, 0.2, 0.6, 0.75
MODULE_WEIGHTS = np.array([1.0, 0.6, 0.8, 0.6])  # exact, stem, synonym, paraphrase

# A row: words of prediction and reference, function words of both; then for each module matched content words of
# both, matched function words of both; then chunks.
COLUMNS = 4 + 4 * len(MODULE_WEIGHTS) + 1


def count(matcher: Matcher, hyp: np.ndarray, ref: np.ndarray) -> np.ndarray:
    """(pairs, 21) of texts by their numbers in the corpus.

    A prediction matched whole and in one piece counts no chunk: it is not punished for one and adds none to a total.
    """
    corpus, pairs = matcher.corpus, len(hyp)
    found = matcher.candidates(hyp, ref)
    aligned = align(found, corpus.length[hyp], corpus.length[ref])
    chosen = aligned.match
    pair, module = found.pair[chosen], found.module[chosen]
    hyp_words = found.hyp_length[chosen]
    ref_words = found.ref_length[chosen]
    hyp_function = _function_words(corpus, hyp[pair], found.hyp_start[chosen], hyp_words)
    ref_function = _function_words(corpus, ref[pair], found.ref_start[chosen], ref_words)
    matched = np.zeros((pairs, len(MODULE_WEIGHTS), 4))
    columns = np.column_stack([hyp_words - hyp_function, ref_words - ref_function, hyp_function, ref_function])
    np.add.at(matched, (pair, module), columns)

    lengths = np.column_stack([corpus.length[hyp], corpus.length[ref]])
    nowhere = np.zeros(pairs, np.int64)
    function_words = np.column_stack(
        [_function_words(corpus, text, nowhere, length) for text, length in zip((hyp, ref), lengths.T)]
    )
    whole = (matched.reshape(pairs, -1, 2).sum(axis=1) == lengths).all(axis=1) & (aligned.chunks == 1)
    chunks = np.where(whole, 0, aligned.chunks)
    return np.column_stack([lengths, function_words, matched.reshape(pairs, -1), chunks]).astype(float)


def meteor(totals: np.ndarray) -> np.ndarray:
    """(...) scores of counts (..., 21). Nothing matched scores 0."""
    words, function_words = totals[..., 0:2], totals[..., 2:4]
    matched = totals[..., 4:-1].reshape(*totals.shape[:-1], len(MODULE_WEIGHTS), 4)
    content, function = matched[..., 0:2], matched[..., 2:4]  # (..., module, side)
    length = DELTA * (words - function_words) + (1 - DELTA) * function_words
    weighted = ((DELTA * content + (1 - DELTA) * function) * MODULE_WEIGHTS[:, None]).sum(axis=-2)
    matched_words = matched.sum(axis=(-1, -2)) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = np.moveaxis(weighted / length, -1, 0)
        f_mean = 1 / ((1 - ALPHA) / precision + ALPHA / recall)
        penalty = GAMMA * (totals[..., -1] / matched_words) ** BETA
        return np.maximum(np.nan_to_num(f_mean * (1 - penalty), nan=0.0), 0.0)


def _function_words(corpus: Corpus, text: np.ndarray, start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """How many of `length` words from `start` on are function words."""
    word = corpus.first[text] + start
    return corpus.function_words_before[word + length] - corpus.function_words_before[word]
