"""`negatoscope findings`: abnormal sentences told from normal ones, kept alone, and grouped by what they say."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from negatoscope.cli.options import Json, print_json

if TYPE_CHECKING:
    from negatoscope.text.abnormal import SentenceClassifier
    from negatoscope.text.abnormal_training import Figures, Trained
    from negatoscope.text.group import Groups, Labeller

app = typer.Typer(no_args_is_help=True, help="Abnormal sentences: classify, train, extract, group.")


@app.command()
def classify(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="One sentence a line, UTF-8.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="JSONL; without it, standard output.")] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="Your own: a .safetensors file or an encoder's folder. Without it, the one that ships."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Tell abnormal sentences from normal ones: `sentence`, `abnormal`, `probability`, a JSON line for each line.

    Nothing is downloaded. An empty line is not abnormal, with probability 0.

    Example:

        negatoscope findings classify sentences.txt --out verdicts.jsonl
    """
    from dataclasses import asdict

    from negatoscope.cli.progress import watch_on
    from negatoscope.text.sentence_files import classify_file, read_lines, verdicts

    classifier = _classifier(model)
    watch = watch_on(silent=as_json or out is None)
    if out is None:
        told = verdicts(classifier, read_lines(file), watch)
        if as_json:
            print_json({"threshold": classifier.threshold, "sentences": list(told)})
        else:
            sys.stdout.writelines(json.dumps(verdict, ensure_ascii=False) + "\n" for verdict in told)
        return
    done = classify_file(file, out, classifier, watch)
    if as_json:
        print_json(asdict(done))
    else:
        print(
            f"{done.abnormal:,} of {done.sentences:,} sentences abnormal ({done.empty:,} empty lines); {out}",
            file=sys.stderr,
        )


@app.command()
def train(
    train: Annotated[Path, typer.Option(help='Labelled reports, JSONL: {"id", "sents", "labels"}.')],
    out: Annotated[Path, typer.Option("--out", "-o", help="A .safetensors file; with --encoder, a folder.")],
    dev: Annotated[Path | None, typer.Option(help="Reports that only figures are printed of.")] = None,
    encoder: Annotated[
        str | None, typer.Option(help="Fine-tune this encoder (folder or hub id; needs the extra hub) instead.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of folds and order.")] = 1,
    as_json: Json = False,
) -> None:
    """Train the classifier of abnormal sentences. Calibration and threshold come from training reports alone.

    Example:

        negatoscope findings train --train train.jsonl --dev dev.jsonl --out abnormal.safetensors
    """
    from negatoscope.cli.progress import watch_on

    watch = watch_on(silent=as_json)
    if encoder is None:
        from negatoscope.text.abnormal_training import Recipe
        from negatoscope.text.abnormal_training import train as train_default

        model, trained = train_default(train, dev, Recipe(seed=seed), watch=watch)
    else:
        from negatoscope.text.abnormal_encoder import EncoderRecipe, fine_tune

        model, trained = fine_tune(encoder, train, dev, EncoderRecipe(seed=seed), watch=watch)
    model.save(out)
    if as_json:
        print_json({**trained.as_json(), "out": str(out)})
    else:
        _show(trained, out)


@app.command()
def extract(
    store: Annotated[Path, typer.Argument(help="A folder that `negatoscope data import` made.")],
    into: Annotated[Path, typer.Option(help="The sibling's folder.")],
    model: Annotated[
        Path | None, typer.Option(help="Your own classifier: a .safetensors file or an encoder's folder.")
    ] = None,
    views: Annotated[
        str, typer.Option(help="both: studies with a frontal and a lateral view, as in the paper. any: with any.")
    ] = "both",
    images: Annotated[
        str, typer.Option(help="reference: pictures stay where they lie. copy: the sibling has its own.")
    ] = "reference",
    as_json: Json = False,
) -> None:
    """Make a store's abnormal-only sibling: MIMIC-ABN from MIMIC-CXR, IU-ABN from IU X-Ray.

    Studies with both views and at least one abnormal sentence; of their reports the abnormal sentences alone. The rule,
    the classifier and what was left out stand in the sibling's `store.json`.

    Example:

        negatoscope findings extract iu --into iu-abnormal
    """
    from dataclasses import asdict

    from negatoscope.cli.progress import watch_on
    from negatoscope.errors import WrongUse, nearest_names
    from negatoscope.retrieval.abnormal_store import AbnormalRule, extract_abnormal
    from negatoscope.settings import read_settings
    from negatoscope.studies.store import Store

    if images not in ("reference", "copy"):
        raise WrongUse(f"no way {images!r} to keep pictures", remedy=nearest_names(images, ("reference", "copy")))
    done = extract_abnormal(
        Store.open(store),
        into,
        _classifier(model),
        read_settings(AbnormalRule, {"views": views}, where="--views"),
        named="default" if model is None else str(model),
        images=images,  # pyright: ignore[reportArgumentType]
        watch=watch_on(silent=as_json),
    )
    if as_json:
        print_json(asdict(done))
        return
    splits = ", ".join(f"{count:,} {split}" for split, count in done.splits.items() if count)
    print(f"{done.studies:,} of {done.of_studies:,} studies ({splits}): {done.store}")
    print(f"{done.abnormal:,} of their {done.sentences:,} sentences are abnormal, and kept")
    for why, count in done.left_out.items():
        print(f"left out: {count:,} {why}")


@app.command()
def group(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Sentences: one a line, or the JSONL of `findings classify`.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="A folder: groups.jsonl, about.json, groups.html.")],
    groups: Annotated[
        int | None,
        typer.Option(min=1, help="K of K-Means; without it 500, or a tenth of the different sentences if fewer."),
    ] = None,
    embedder: Annotated[
        str, typer.Option(help="tfidf, or a sentence encoder's folder or hub id (extra hub).")
    ] = "tfidf",
    exclusive: Annotated[
        bool, typer.Option(help="Part what excludes one another: left and right, small and large ...")
    ] = True,
    seed: Annotated[int, typer.Option(help="Of K-Means.")] = 0,
    as_json: Json = False,
) -> None:
    """Group abnormal sentences by what they say, each group told by its most central sentence; a page to browse them.

    Lines of JSONL that are marked as normal are left out.

    Example:

        negatoscope findings group verdicts.jsonl --out groups
    """
    from negatoscope.cli.progress import watch_on
    from negatoscope.text.embed import embedder_named
    from negatoscope.text.group import GroupSettings, group_sentences
    from negatoscope.text.group_page import write_page
    from negatoscope.text.sentence_files import read_abnormal, save_groups

    watch = watch_on(silent=as_json)
    settings = GroupSettings(groups=groups, exclusive=exclusive, seed=seed)
    made = group_sentences(
        read_abnormal(file),
        embedder_named(embedder, seed=seed, watch=watch),
        settings,
        labeller=labeller(),
        watch=watch,
    )
    save_groups(made, out)
    write_page(made, out / "groups.html")
    if as_json:
        print_json({"groups": len(made.groups), **_sizes(made), "embedder": made.embedder, "out": str(out)})
    else:
        sizes = _sizes(made)
        count = f"{len(made.groups):,} groups of {sizes['sentences']:,} sentences ({sizes['of_one']:,} of one)"
        print(f"{count}; {out}/groups.html", file=sys.stderr)


def _classifier(path: Path | None) -> SentenceClassifier:
    from negatoscope.text.abnormal import AbnormalSentences

    if path is None:
        return AbnormalSentences.default()
    if path.is_dir():
        from negatoscope.text.abnormal_encoder import EncoderSentences

        return EncoderSentences.load(path)
    return AbnormalSentences.load(path)


def labeller() -> Labeller:
    from negatoscope.metrics.chexpert.labeler import Labeler

    labeler = Labeler()
    return lambda sentences: [
        [name for name, mark in labels.items() if mark == 1 and name != "No Finding"]
        for labels in labeler.label_many(sentences)
    ]


def _sizes(made: Groups) -> dict[str, int]:
    return {
        "sentences": sum(group.size for group in made.groups),
        "of_one": sum(group.size == 1 for group in made.groups),
    }


def _show(trained: Trained, out: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("scored on", "sentences", "F1", "precision", "recall", "errors")
    rows: list[tuple[str, Figures | None]] = [
        ("train, held-out reports", trained.held_out),
        ("  of these, sentences never seen", trained.held_out_unseen),
        ("dev", trained.dev),
    ]
    for name, figures in rows:
        if figures is not None:
            three = (figures.f1, figures.precision, figures.recall)
            cells = (f"{figure.value:.3f} ({figure.low:.3f} to {figure.high:.3f})" for figure in three)
            table.add_row(name, f"{figures.sentences:,}", *cells, f"{figures.errors:,}")
    Console().print(table)
    noise = trained.noise
    print(
        f"{noise['conflicting']:,} of {noise['repeated']:,} repeated sentences carry both labels: "
        f"{noise['minority_share']:.1%} of their rows cannot be told. Threshold {trained.threshold:.3f}; {out}",
        file=sys.stderr,
    )
