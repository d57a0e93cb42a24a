"""The command `negatoscope`: one file a verb, no logic of its own.

A verb's file has either a Typer called `app` (a group: `negatoscope data import`) or a function called as the verb.
It parses, calls one documented Python function, prints. Errors are turned into one line and an exit code here and
nowhere else: 0 done, 1 failed, 2 wrong use.
"""

from __future__ import annotations

import errno
import logging
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from negatoscope import __version__
from negatoscope.errors import Trouble

# A new verb is one file and one line.
VERBS = (
    "report",
    "drafter",
    "data",
    "features",
    "models",
    "import-checkpoint",
    "train",
    "generate",
    "explain",
    "evaluate",
    "compare",
    "reproduce",
    "phantom-bench",
    "label",
    "findings",
    "clusters",
    "neighbours",
    "retrieve",
    "demo",
)

EXIT_CODES = "Exit codes: 0 done, 1 failed, 2 wrong use. A failure is one line: what, where, and what to do."


class _Verbs(TyperGroup):
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Trouble as trouble:
            _say(str(trouble))
            raise typer.Exit(trouble.exit_code) from trouble
        except KeyboardInterrupt as interrupt:
            _say("interrupted; what was finished is kept, the same command goes on from there")
            raise typer.Exit(1) from interrupt
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                _say(f"{error.filename or 'writing'}: the disk is full; free some space and run the same command again")
            elif isinstance(
                error, FileNotFoundError | FileExistsError | PermissionError | NotADirectoryError | IsADirectoryError
            ):
                _say(f"{error.filename}: {(error.strerror or 'cannot be read').lower()}")
            else:
                raise
            raise typer.Exit(1) from error


def _say(line: str) -> None:
    print(f"negatoscope: {line}", file=sys.stderr)


app = typer.Typer(
    cls=_Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Automatic chest X-ray reporting by contrast. Every verb explains itself: `negatoscope train --help`.",
    epilog=EXIT_CODES,
)


@app.callback(invoke_without_command=True)
def _root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and leave.")] = False,
) -> None:
    logging.getLogger("lightning_fabric.utilities.rank_zero").setLevel(
        logging.WARNING
    )  # it tells of each precision it sets up
    if version:
        print(__version__)
        raise typer.Exit


for _verb in VERBS:
    _name = _verb.replace("-", "_")
    if find_spec(f"negatoscope.cli.{_name}") is None:
        continue
    _module = import_module(f"negatoscope.cli.{_name}")
    if hasattr(_module, "app"):
        for _below in _module.app.registered_commands:
            _below.epilog = EXIT_CODES
        app.add_typer(_module.app, name=_verb)
    else:
        app.command(_verb, epilog=EXIT_CODES)(getattr(_module, _name))


def main() -> None:
    app()
