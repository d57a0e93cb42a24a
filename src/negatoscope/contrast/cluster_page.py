"""A page to judge clusters of reports by: sizes, silhouette, the words that mark each, its most typical reports."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path

from negatoscope.contrast.clusters import Clusters
from negatoscope.contrast.neighbours import Corpus
from negatoscope.pages import text, write_page

_WORD = re.compile(r"[^\W\d_]{3,}")
_SAY_NOTHING = frozenset(
    ("and", "are", "for", "from", "has", "have", "its", "that", "the", "there", "these", "this", "was", "were", "which",
     "with", "xxxx")
)  # fmt: skip
"""Words that mark a cluster's grammar, not what it says; XXXX stands where names were taken out."""
_STYLE = """
a { color: var(--blue); }
.bar { display: inline-block; height: .7rem; background: var(--blue); border-radius: .15rem; vertical-align: middle; }
.card h2 { margin: 0 0 .3rem; } .card ol { margin: .6rem 0 0; padding-left: 1.4rem; } .card li { margin: 0 0 .45rem; }
.mark { display: inline-block; border: 1px solid var(--line); border-radius: .3rem; padding: 0 .4rem; margin: 0 .3rem
        .3rem 0; font-size: .88rem; }
"""


def marking_words(made: Clusters, corpus: Corpus, most: int = 10) -> list[list[str]]:
    """Of each cluster the words that its reports have more often than the corpus, by G, the likelihood ratio."""
    said = [set(_WORD.findall(report.lower())) - _SAY_NOTHING for report in corpus.texts]
    everywhere = Counter(word for words in said for word in words)
    total = len(said)
    found = []
    for cluster, size in enumerate(made.sizes):
        here = Counter(word for words, number in zip(said, made.number) if number == cluster for word in words)
        weight = {
            word: count * math.log(count * total / (size * everywhere[word]))
            for word, count in here.items()
            if count * total > size * everywhere[word]
        }
        found.append(sorted(weight, key=lambda word: (-weight[word], word))[:most])
    return found


def write_cluster_page(made: Clusters, corpus: Corpus, path: Path | str) -> Path:
    about, sizes = made.about, made.sizes
    largest, studies = max(sizes), sum(sizes)
    rows = "".join(
        f"<tr><td class=figure><a href='#c{number}'>{number}</a></td><td class=figure>{size:,}</td>"
        f"<td class=figure>{size / studies:.1%}</td>"
        f"<td><span class=bar style='width:calc(min(300px, 35vw) * {size / largest:.3f})'></span></td></tr>"
        for number, size in enumerate(sizes)
    )
    head = (
        f"<p class=soft>K-Means, K = {len(sizes)}, seed {about['seed']}, over {studies:,} training reports as "
        f"{text(about['embedder'])} sees them. Silhouette {made.silhouette:.3f}: near 1, clusters lie apart; near 0, "
        "their borders are arbitrary.</p>"
        "<div class=wide><table><tr><th class=figure>cluster</th><th class=figure>reports</th>"
        f"<th class=figure>share</th><th></th></tr>{rows}</table></div>"
    )
    cards = "".join(
        f"<div class=card id=c{number}><h2>Cluster {number} <span class=soft>{sizes[number]:,} reports</span></h2>"
        f"<div>{''.join(f'<span class=mark>{text(word)}</span>' for word in words)}</div>"
        f"<ol>{''.join(f'<li>{text(corpus.texts[place])}</li>' for place in typical)}</ol></div>"
        for number, (words, typical) in enumerate(zip(marking_words(made, corpus), made.typical, strict=True))
    )
    told = "<p class=soft>Words that mark a cluster, then its most typical reports, nearest the centre first.</p>"
    return write_page(path, "Clusters of reports", head + "<h2>What each says</h2>" + told + cards, style=_STYLE)
