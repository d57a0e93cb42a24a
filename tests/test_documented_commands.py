"""Each command that README, docs, recipes and help texts show is one that the command line takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from negatoscope.cli import app

ROOT = Path(__file__).resolve().parents[1]
SHOWN = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "src" / "negatoscope" / "recipes").rglob("*.yaml")),
    *sorted((ROOT / "src" / "negatoscope" / "cli").glob("*.py")),
]
COMMAND = get_command(app)


def commands_in(text: str) -> Iterator[str]:
    """Whole lines, and what stands between backticks (which may go on in the next line) with an option or a pattern."""
    text = re.sub(r"\\\n\s*", " ", text)
    for line in text.splitlines():
        line = line.strip()
        if re.match(r"(# )?(First: )?negatoscope [a-z]", line):
            yield re.sub(r"^(# )?(First: )?", "", line)
    for found in re.findall(r"`(negatoscope [a-z][^`]*)`", text):
        command = re.sub(r"\s*\n#?\s*", " ", found)
        if " --" in command and "..." not in command and "--help" not in command:
            yield command


def words_of(command: str) -> list[str]:
    """Without a comment behind it, or a remark: `..., FOLDER with ...`."""
    words = shlex.split(command.replace("[", "'[").replace("]", "]'") if "'" not in command else command, comments=True)
    ended = next((number for number, word in enumerate(words) if word.endswith((",", ";"))), len(words) - 1)
    return [word.rstrip(",;") for word in words[1 : ended + 1]]


def complaint_about(command: str) -> str | None:
    """What the command line says of it before it does anything; none where it would start."""
    words, names = words_of(command), []
    place: Any = COMMAND
    while hasattr(place, "commands"):
        if not words or words[0] not in place.commands:
            return f"no verb {' '.join([*names, *words[:1]])!r}"
        names.append(words.pop(0))
        place = place.commands[names[-1]]
    try:
        place.make_context(" ".join(names), words)
    except Exception as error:  # Typer's own kind of Click, in some versions under a private name
        if not hasattr(error, "format_message"):
            raise
        return error.format_message()  # pyright: ignore[reportAttributeAccessIssue]
    return None


@pytest.mark.parametrize(
    "path", [path for path in SHOWN if any(commands_in(path.read_text(encoding="utf-8")))], ids=lambda path: path.name
)
def test_each_shown_command_is_understood(path: Path) -> None:
    for command in commands_in(path.read_text(encoding="utf-8")):
        assert complaint_about(command) is None, command


def test_a_wrong_command_would_be_noticed() -> None:
    assert complaint_about("negatoscope train r2gen.iu-xray --run runs/r2gen") is None
    assert "--out" in (complaint_about("negatoscope train r2gen.iu-xray --out runs/r2gen") or "")
    assert "Missing" in (complaint_about("negatoscope generate runs/first") or "")
    assert "no verb 'data improt'" in (complaint_about("negatoscope data improt coco FOLDER") or "")
