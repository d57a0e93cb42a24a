"""METEOR's search for the best alignment: through the reference with a beam of 40, for many pairs at once.

A path has used some words of the prediction. At each place of the reference it goes on with every match that starts
there and whose words are free, and with leaving the place out. Better is: more weighted matches, then fewer chunks
(runs of matches that are neighbours in both texts), then a smaller distance; of equals, the one found first. To give
the program's alignments its ways are kept:

- weights are cut to whole numbers match by match: of a stem's, a synonym's or a paraphrase's n words count n // 2;
- a match that shares no word with any other is taken beforehand;
- a path's distance grows with each match tried from it, so that the second match tried already carries the first
  one's distance.

Places where nothing can change on any path are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from negatoscope.metrics.meteor.candidates import Candidates
from negatoscope.metrics.meteor.ranges import firsts, ranges
from negatoscope.metrics.meteor.relations import EXACT

BEAM = 40
_PAIRS_AT_ONCE = 256
_STAY = -1
_NOWHERE = -1
_LEFT_OUT = -2  # the start of "leaving out", which continues no chunk


@dataclass(frozen=True)
class Alignments:
    match: np.ndarray
    """Numbers of the chosen candidates."""
    chunks: np.ndarray
    """(pairs,)"""


@dataclass(frozen=True)
class _Options:
    """What a path may do at each event (a place of a reference): take a match that starts there or leave it out.

    The last row stands for a path that stays as it is, in the midst of a match of several words.
    """

    first: np.ndarray
    """(events + 1,) where each event's options begin."""
    match: np.ndarray
    """Candidate, or -1 for leaving out."""
    gain: np.ndarray
    distance: np.ndarray
    own_distance: np.ndarray
    """The part of the distance that its own path carries: only matches taken beforehand."""
    hyp_start: np.ndarray
    hyp_end: np.ndarray
    ref_end: np.ndarray
    block: np.ndarray
    """The contested words it uses are bits `low` of this block of 64, and bits `high` of the next."""
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class _Events:
    first: np.ndarray
    """(pairs + 1,) each pair's events; the last one is the reference's end."""
    place: np.ndarray
    contested: np.ndarray
    """(pairs,) words of the prediction that matches of the search compete for."""
    options: _Options


def align(candidates: Candidates, hyp_length: np.ndarray, ref_length: np.ndarray) -> Alignments:
    """The best alignment of each pair."""
    events = _events(candidates, hyp_length, ref_length)
    chosen, chunks = [], np.zeros(len(hyp_length), np.int64)
    for pairs, blocks in _alike(events):
        matches, chunks[pairs] = _search(events, pairs, blocks)
        chosen.append(matches)
    return Alignments(np.concatenate(chosen) if chosen else np.zeros(0, np.int64), chunks)


def _alike(events: _Events) -> Iterator[tuple[np.ndarray, int]]:
    """Groups of pairs with about equally many steps, and the blocks they need; pairs without a match are left out."""
    steps = np.diff(events.first)
    blocks = np.maximum(events.contested - 1, 0) // 64 + 1
    order = np.lexsort((steps, blocks))
    order = order[steps[order] > 1]
    start = 0
    while start < len(order):
        needed = int(blocks[order[start]])
        group = order[start : start + max(1, _PAIRS_AT_ONCE // needed)]
        group = group[blocks[group] == needed]
        yield group, needed
        start += len(group)


def _events(found: Candidates, hyp_length: np.ndarray, ref_length: np.ndarray) -> _Events:
    hyp_base = np.concatenate([[0], np.cumsum(hyp_length)])
    base = np.concatenate([[0], np.cumsum(ref_length + 1)])  # one place more: the end
    slots = int(base[-1])
    slot, hyp_slot = base[found.pair] + found.ref_start, hyp_base[found.pair] + found.hyp_start
    starting = np.bincount(slot, minlength=slots)
    settled = starting[slot] == 1
    settled &= _alone(slot, found.ref_length, slots) & _alone(hyp_slot, found.hyp_length, int(hyp_base[-1]))

    quiet = starting == 0
    inside = np.zeros(slots, bool)
    inside[ranges(slot[settled] + 1, (slot + found.ref_length)[settled])[1]] = True
    ends = np.zeros(slots, bool)
    ends[slot + found.ref_length] = True
    # Nothing changes where no match starts or has just ended, and none started at the place before.
    after_quiet = np.concatenate([[True], quiet[:-1]])
    after_quiet[base[:-1]] = True
    is_event = ~(inside | (quiet & after_quiet & ~ends))
    is_event[base[1:] - 1] = True

    event_of = np.cumsum(is_event) - 1
    event_slot = np.flatnonzero(is_event)
    pair = np.searchsorted(base, event_slot, "right") - 1
    place = event_slot - base[pair]
    contested = np.zeros(hyp_base[-1], bool)
    contested[ranges(hyp_slot[~settled], (hyp_slot + found.hyp_length)[~settled])[1]] = True
    contested_before = np.concatenate([[0], np.cumsum(contested)])
    bit = contested_before[hyp_slot] - contested_before[hyp_base[found.pair]]
    options = _options(found, event_of[slot], settled, bit, place)
    return _Events(firsts(pair, len(ref_length)), place, np.diff(contested_before[hyp_base]), options)


def _alone(start: np.ndarray, length: np.ndarray, slots: int) -> np.ndarray:
    """Whether each run of words is touched by no other run."""
    word = ranges(start, start + length)[1]
    shared_before = np.concatenate([[0], np.cumsum(np.bincount(word, minlength=slots) > 1)])
    return shared_before[start + length] == shared_before[start]


def _options(
    found: Candidates, event: np.ndarray, settled: np.ndarray, first_bit: np.ndarray, place: np.ndarray
) -> _Options:
    events = len(place)
    matches = np.bincount(event, minlength=events)
    taken = np.zeros(events, bool)
    taken[event[settled]] = True
    first = np.concatenate([[0], np.cumsum(matches + ~taken)])
    at = first[event] + np.arange(len(event)) - (np.cumsum(matches) - matches)[event]

    def column(of_matches: np.ndarray, of_leaving_out: int | np.ndarray = 0) -> np.ndarray:
        values = np.zeros(first[-1] + 1, of_matches.dtype)
        values[first[1:][~taken] - 1] = of_leaving_out
        values[at] = of_matches
        return values

    exact = found.module == EXACT
    distance = np.abs(found.ref_start - found.hyp_start)
    run = (np.uint64(1) << np.where(settled, 0, found.hyp_length).astype(np.uint64)) - np.uint64(1)
    bit = (first_bit % 64).astype(np.uint64)
    return _Options(
        first=first,
        match=column(np.arange(len(found)), -1),
        gain=column(np.where(exact, 2, found.hyp_length // 2 + found.ref_length // 2)),
        distance=column(distance),
        own_distance=column(np.where(settled, distance, 0)),
        hyp_start=column(found.hyp_start, _LEFT_OUT),
        hyp_end=column(found.hyp_start + found.hyp_length, _NOWHERE),
        ref_end=column(found.ref_start + found.ref_length, place[~taken] + 1),
        block=column(np.where(settled, 0, first_bit // 64)),
        low=column(run << bit),
        # Two shifts: a shift by 64 is not defined.
        high=column((run >> np.uint64(1)) >> (np.uint64(63) - bit)),
    )


@dataclass(frozen=True)
class _Paths:
    """Sorted by pair, each pair's best first."""

    pair: np.ndarray
    total: np.ndarray
    """Weighted matches."""
    chunks: np.ndarray
    distance: np.ndarray
    last_end: np.ndarray
    """Where in the prediction the last match ended, if the place before this one belongs to it."""
    covered: np.ndarray
    """The first place of the reference not yet decided upon."""
    used: np.ndarray
    """(paths, blocks) contested words of the prediction, as bits."""

    @classmethod
    def at_start(cls, pairs: int, blocks: int) -> _Paths:
        zero = np.zeros(pairs, np.int64)
        used = np.zeros((pairs, blocks), np.uint64)
        return cls(np.arange(pairs), zero, zero, zero, np.full(pairs, _NOWHERE), zero, used)

    def are_free_for(self, path: np.ndarray, option: np.ndarray, options: _Options) -> np.ndarray:
        if self.used.shape[1] == 1:
            return (self.used[:, 0].take(path) & options.low.take(option)) == 0
        block = options.block[option]
        taken = self.used[path, block] & options.low[option]
        taken |= self.used[path, np.minimum(block + 1, self.used.shape[1] - 1)] & options.high[option]
        return taken == 0

    def used_with(self, path: np.ndarray, option: np.ndarray, options: _Options) -> np.ndarray:
        used = self.used.take(path, axis=0)
        if used.shape[1] == 1:
            return used | options.low.take(option)[:, None]
        row, block = np.arange(len(path)), options.block[option]
        used[row, block] |= options.low[option]
        used[row, np.minimum(block + 1, used.shape[1] - 1)] |= options.high[option]
        return used

    def distances(self, path: np.ndarray, option: np.ndarray, free: np.ndarray, options: _Options) -> np.ndarray:
        """A way's distance is its path's and that of the possible ways tried before it."""
        tried = options.distance.take(option) * free
        before = np.cumsum(tried) - tried
        before -= before[np.searchsorted(path, np.arange(len(self.pair)))].take(path)
        return self.distance.take(path) + before + options.own_distance.take(option)


def _search(events: _Events, pairs: np.ndarray, blocks: int) -> tuple[np.ndarray, np.ndarray]:
    """(chosen candidates of all pairs, (pairs,) chunks)"""
    start, end = events.first[pairs], events.first[pairs + 1] - 1
    paths = _Paths.at_start(len(pairs), blocks)
    history: list[tuple[np.ndarray, np.ndarray]] = []
    for step in range(int((end - start).max()) + 1):
        event = np.minimum(start + step, end)[paths.pair]
        paths, path, option = _step(paths, event, events)
        history.append((path, option))
    best = np.searchsorted(paths.pair, np.arange(len(pairs)))
    return _matches_on(history, best, events.options), paths.chunks[best]


def _step(paths: _Paths, event: np.ndarray, events: _Events) -> tuple[_Paths, np.ndarray, np.ndarray]:
    """The best paths one event further, and by which option each came from which path."""
    options = events.options
    path, option = _ways_on(options, event, paths.covered > events.place[event])
    free = paths.are_free_for(path, option, options)
    far = paths.distances(path, option, free, options)[free]

    path, option = path[free], option[free]
    moves = option != _STAY
    last_end = paths.last_end.take(path)
    breaks = moves & (last_end != _NOWHERE) & (last_end != options.hyp_start.take(option))
    chunks = paths.chunks.take(path) + breaks
    total = paths.total.take(path) + options.gain.take(option)

    kept = _best(paths.pair.take(path), total, chunks, far)
    path, option, moves = path[kept], option[kept], moves[kept]
    further = _Paths(
        pair=paths.pair[path],
        total=total[kept],
        chunks=chunks[kept],
        distance=far[kept],
        last_end=np.where(moves, options.hyp_end[option], last_end[kept]),
        covered=np.where(moves, options.ref_end[option], paths.covered[path]),
        used=paths.used_with(path, option, options),
    )
    return further, path, option


def _ways_on(options: _Options, event: np.ndarray, within_match: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(path, option) for all that each path may do; a path in the midst of a match of several words stays as it is."""
    start = options.first[event]
    stop = np.where(within_match, start + 1, options.first[event + 1])
    path, option = ranges(start, stop)
    option[within_match[path]] = _STAY
    return path, option


def _best(pair: np.ndarray, total: np.ndarray, chunks: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """The numbers of the best 40 paths of each pair, best first; of equals, the earlier."""
    worse = total.max() - total
    spans = [int(part.max()) + 1 for part in (pair, worse, chunks, distance)]
    if np.prod(spans, dtype=float) < 2.0**62:
        key = ((pair * spans[1] + worse) * spans[2] + chunks) * spans[3] + distance
        order = np.argsort(key, kind="stable")
    else:
        order = np.lexsort((distance, chunks, worse, pair))
    first = np.searchsorted(pair, np.arange(spans[0]))  # pairs stay where they are: `pair` comes sorted
    return order[np.arange(len(pair)) - first[pair] < BEAM]


def _matches_on(history: list[tuple[np.ndarray, np.ndarray]], path: np.ndarray, options: _Options) -> np.ndarray:
    """The matches along the way to the given paths, found backwards."""
    matches = []
    for parent, option in reversed(history):
        done = option[path]
        matches.append(options.match[done[done != _STAY]])
        path = parent[path]
    found = np.concatenate(matches)
    return found[found >= 0]
