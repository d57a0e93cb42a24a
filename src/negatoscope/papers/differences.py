"""What keeps our rows apart from the paper's, said under every table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from negatoscope.papers.paper import Paper, Table
from negatoscope.papers.rows import Conditions, RowRun

_ABNORMAL = " (of these, those with both views and an abnormal sentence)"


def footnotes(
    paper: Paper,
    table: Table,
    plans: Mapping[str, Sequence[RowRun]],
    conditions: Conditions,
    left_out: Mapping[str, str],
) -> list[str]:
    """One line each: encoder, resolution, words and decoding, budget, split, data."""
    grounds, theirs = conditions.grounds, paper.setting
    key, studies = grounds.about["features"], grounds.about["studies"]
    weights = str(key["weights"])[:8]
    lines = [
        _both(
            "encoder",
            theirs.get("encoder"),
            f"{key['backbone']} (weights {weights}), frozen, its features cached in {key['precision']}, for every row "
            "alike",
        ),
        _both("resolution", theirs.get("resolution"), str(key["image_size"])),
        _both(
            "words and decoding",
            ", ".join(said for part in ("words", "decoding") if (said := theirs.get(part))),
            _decoding(plans),
        ),
        _both(
            "split",
            theirs.get("split"),
            f"{studies['train']:,} training studies{_ABNORMAL if table.reports == 'abnormal' else ''}, the validation "
            f"split to score{_chosen(plans)}",
        ),
    ]
    if table.reports == "abnormal":
        lines.append(
            "reports: the abnormal sentences of studies with both views, found by the classifier that ships: "
            f"{'IU-ABN in place of MIMIC-ABN' if grounds.data == 'iu-xray' else 'phantoms in place of MIMIC-ABN'}"
        )
    budget = _budget(plans)
    if budget:
        lines.append(budget)
    if conditions.tier == "quick":
        lines.append("tier quick: models a fifth as wide, a few epochs at one rate; for trying, not for comparing")
    if conditions.changes:
        lines.append("changed: " + ", ".join(f"{name}={value}" for name, value in conditions.changes.items()))
    elsewhere = sorted({on for row in table.rows for on in row.published} - {grounds.data})
    if any(row.published for row in table.rows) and not any(grounds.data in row.published for row in table.rows):
        lines.append(f"theirs are of {', '.join(elsewhere)}: not to be compared with ours, only their order")
    lines += [f"left out: {name} ({why})" for name, why in left_out.items()]
    return lines


def _both(what: str, theirs: str | None, ours: str) -> str:
    """A table of our own has nobody to differ from."""
    return f"{what}: theirs {theirs}; ours {ours}" if theirs else f"{what}: {ours}"


def _chosen(plans: Mapping[str, Sequence[RowRun]]) -> str:
    """On which studies epochs were chosen: CVSE may have put some of its training studies aside."""
    firsts = [run for runs in plans.values() for run in runs[:1]]
    aside = [run for run in firsts if run.kind == "cvse" and run.recipe["train"]["select"] == "held-out"]
    said = ", on which each run's best epoch was chosen as well" if len(aside) < len(firsts) or not firsts else ""
    return said + ("; CVSE's epochs were chosen on training studies that it did not learn from" if aside else "")


def _decoding(plans: Mapping[str, Sequence[RowRun]]) -> str:
    said = set()
    for runs in plans.values():
        for run in runs[:1]:
            if run.kind == "reporter":
                words = run.recipe["data"]["vocabulary"]
                said.add(f"words seen {words['cutoff']} times, beam {run.recipe['decode']['beam']}")
            else:
                said.add(f"top {run.recipe['top']} groups")
    return " or ".join(sorted(said)) or "none"


def _budget(plans: Mapping[str, Sequence[RowRun]]) -> str:
    changed = sorted(
        {
            (run.own_epochs, int(run.recipe["train"]["epochs"]))
            for runs in plans.values()
            for run in runs
            if run.own_epochs and run.own_epochs != int(run.recipe["train"]["epochs"])
        }
    )
    said = ", ".join(f"{ours} epochs where the recipe has {own}" for own, ours in changed)
    return f"budget: {said}" if said else ""
