"""Files of sentences: one a line, or JSONL with a field `sentence`; their verdicts; and groups, written and read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from negatoscope.errors import BadInput
from negatoscope.text.abnormal import SentenceClassifier
from negatoscope.text.group import Group, Groups, GroupSettings
from negatoscope.watch import Watch, quiet
from negatoscope.whole_files import whole_file, write_json, write_text

GROUPS, ABOUT = "groups.jsonl", "about.json"


@dataclass(frozen=True)
class Verdicts:
    """What `classify_file` did."""

    sentences: int
    empty: int
    abnormal: int
    threshold: float
    out: str | None


def read_lines(path: Path | str) -> list[str]:
    """The lines of a UTF-8 file without their ends; raises BadInput naming the line that is not UTF-8."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError as error:
        raise BadInput("no such file", where=path) from error
    except IsADirectoryError as error:
        raise BadInput("is a folder", where=path, remedy="name a file with one sentence a line") from error
    lines = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        try:
            lines.append(line.removesuffix(b"\r").decode("utf-8"))
        except UnicodeDecodeError as error:
            raise BadInput(
                f"byte {error.start + 1} is not UTF-8",
                where=f"{path}:{number}",
                remedy="convert it: iconv -f latin1 -t utf-8",
            ) from error
    if lines[-1] == "":
        lines.pop()
    return lines


def verdicts(classifier: SentenceClassifier, sentences: list[str], watch: Watch = quiet) -> Iterator[dict[str, Any]]:
    """`sentence`, `abnormal`, `probability`, one for every line that came in, empty ones too: line n answers line n."""
    starts = range(0, len(sentences), 8192)
    for at in watch(starts, "classifying", len(starts)):
        part = sentences[at : at + 8192]
        for sentence, probability in zip(part, classifier.probability(part).tolist(), strict=True):
            yield {
                "sentence": sentence,
                "abnormal": probability >= classifier.threshold,
                "probability": round(probability, 5),
            }


def classify_file(path: Path | str, out: Path | str, classifier: SentenceClassifier, watch: Watch = quiet) -> Verdicts:
    """Writes one JSON line a sentence. Empty lines stay, as not abnormal with probability 0."""
    sentences = read_lines(path)
    abnormal = 0
    with whole_file(out) as part, part.open("w", encoding="utf-8") as file:
        for verdict in verdicts(classifier, sentences, watch):
            abnormal += verdict["abnormal"]
            file.write(json.dumps(verdict, ensure_ascii=False) + "\n")
    empty = sum(not sentence.strip() for sentence in sentences)
    return Verdicts(len(sentences), empty, abnormal, classifier.threshold, str(out))


def read_abnormal(path: Path | str) -> list[str]:
    """The sentences of a text file, or of a JSONL file those (`sentence`) not marked as normal (`abnormal`: false)."""
    lines = read_lines(path)
    first = next((line for line in lines if line.strip()), "")
    if not first.lstrip().startswith("{"):
        return [line for line in lines if line.strip()]
    sentences = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            said, counts = row["sentence"], row.get("abnormal", True)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput("no JSON object with a field 'sentence'", where=f"{path}:{number}") from error
        if not isinstance(said, str) or not isinstance(counts, bool):
            raise BadInput("'sentence' must be text and 'abnormal' true or false", where=f"{path}:{number}")
        if counts and said.strip():
            sentences.append(said)
    return sentences


def save_groups(groups: Groups, folder: Path | str) -> None:
    """`groups.jsonl`, one group a line, and `about.json`, what made them."""
    folder = Path(folder)
    rows = ({**asdict(group), "side": group.side, "severity": group.severity} for group in groups.groups)
    write_text(folder / GROUPS, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    about = {
        "embedder": groups.embedder,
        "fingerprint": groups.fingerprint,
        "settings": groups.settings.model_dump(mode="json"),
        "groups": len(groups.groups),
        "sentences": sum(group.size for group in groups.groups),
    }
    write_json(folder / ABOUT, about)


def load_groups(folder: Path | str) -> Groups:
    """What `save_groups` wrote. Raises BadInput naming the line that is damaged."""
    folder = Path(folder)
    try:
        about = json.loads("\n".join(read_lines(folder / ABOUT)))
        settings = GroupSettings.model_validate(about["settings"])
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"damaged ({error})", where=folder / ABOUT) from error
    groups = []
    for number, line in enumerate(read_lines(folder / GROUPS), start=1):
        try:
            row = json.loads(line)
            del row["side"], row["severity"]
            row["members"] = tuple((said, times) for said, times in row["members"])
            row["poles"] = {name: tuple(poles) for name, poles in row["poles"].items()}
            row["labels"] = tuple(row["labels"])
            groups.append(Group(**row))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BadInput(f"not a group ({error})", where=f"{folder / GROUPS}:{number}") from error
    return Groups(tuple(groups), about["embedder"], about["fingerprint"], settings)
