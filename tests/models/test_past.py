"""The words so far in slots: whatever is reordered, left out or moved, each row holds its own line and no other."""

from __future__ import annotations

from dataclasses import replace

import torch

from negatoscope.models.base import choose_rows
from negatoscope.models.past import FEWEST_SLOTS, Past, PastState

STUDIES, D = 3, 4


def state_of(studies: int = STUDIES) -> PastState:
    keys = torch.zeros(studies, 2, 5, D // 2)
    past = (Past.empty(keys), Past.empty(keys))
    return PastState(torch.zeros(studies, 0, dtype=torch.bool), 0, past, ((keys, keys),) * 2, torch.zeros(studies, 1))


def say(state: PastState, words: torch.Tensor) -> PastState:
    """Each row writes a number: as its key, and negative as its value, 100 more in the second layer."""
    state = state.one_more()
    said = words.float().view(len(state.mask), -1, 1).expand(-1, -1, D)
    past = tuple(one.and_then(said + 100_000 * n, -said - 100_000 * n) for n, one in enumerate(state.past))
    return replace(state, position=state.position + 1, past=past)


def lines_of(state: PastState, layer: int) -> list[list[float]]:
    keys, values = state.past[layer].held
    k = len(state.lines) // len(state.mask)
    assert torch.equal(keys, -values)
    return [keys[row // k, line, 0].tolist() for row, line in enumerate(state.lines)]


def test_each_row_holds_its_own_line() -> None:
    """Against lists of words that follow their beams, through a search that drops beams and, later, studies."""
    draw = torch.Generator().manual_seed(0)
    beams, studies, state, number = 4, STUDIES, state_of(), 0
    plain: list[list[float]] = [[] for _ in range(STUDIES)]
    seen = []
    for t in range(60):
        words = torch.arange(number, number + len(plain))
        number += len(plain)
        state = say(state, words)
        plain = [[*line, float(word)] for line, word in zip(plain, words.tolist())]
        for layer in range(2):
            assert lines_of(state, layer) == [[word + 100_000 * layer for word in line] for line in plain], t
        seen.append(state.lines.shape[1])
        now = len(plain) // studies
        # Few parents have many children, as in a search.
        parents = (torch.randint(0, now, (studies, beams), generator=draw) // 2).clamp_min(0)
        keep = torch.arange(studies) if t != 40 else torch.tensor([2, 0])
        rows = (torch.arange(studies).unsqueeze(1) * now + parents)[keep].flatten()
        state = choose_rows(state, rows, keep if t == 40 else None)
        plain, studies = [plain[row] for row in rows.tolist()], len(keep)
    assert max(seen) > FEWEST_SLOTS
    assert max(seen) < 60 * beams * 0.6, "slots that no line holds were kept"


def test_two_states_of_one_room_do_not_write_over_each_other() -> None:
    before = say(state_of(1), torch.tensor([1]))
    one, other = say(before, torch.tensor([2])), say(before, torch.tensor([3]))
    again = say(one, torch.tensor([4]))
    assert lines_of(one, 0) == [[1, 2]]
    assert lines_of(other, 0) == [[1, 3]]
    assert lines_of(again, 1) == [[100_001, 100_002, 100_004]]


def test_gradients_pass_through() -> None:
    state, leaves = state_of(1), []
    for _ in range(3):
        leaves.append(torch.ones(1, 1, D, requires_grad=True))
        state = state.one_more()
        state = replace(state, past=tuple(one.and_then(leaves[-1], leaves[-1]) for one in state.past))
    only = state.past[0].only(torch.tensor([[0, 2]]))
    only.keys.sum().backward()
    assert [leaf.grad is not None and leaf.grad.sum().item() for leaf in leaves] == [D, 0, D]
