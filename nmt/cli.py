"""The command line: the only file that imports Typer. Each command is defined by its own file in commands/."""

import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import TyperException

import nmt
from nmt.commands import COMMANDS
from nmt.compose import Command, compose, compose_tree, to_yaml
from nmt.compose.explanations import explain_option, nearest
from nmt.compose.foreign_words import our_words
from nmt.compose.help import help_text
from nmt.errors import NMTError, SameForAll, enough_memory_or
from nmt.training.processes import is_first_process

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
# The help of a command is made from the YAML groups, and a mistyped option is answered like a mistyped key.
SETTINGS = {"help_option_names": [], "ignore_unknown_options": True}
MESSAGE_CHARACTERS = 2000
"""A longer message is cut in the middle."""


def call(command: Command) -> Callable[..., None]:
    """The function that Typer calls for a command."""

    def run(
        overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...")] = None,
        cfg: Annotated[bool, typer.Option("--cfg")] = False,
        config_dir: Annotated[Path | None, typer.Option("--config-dir")] = None,
        help: Annotated[bool, typer.Option("--help")] = False,
    ) -> None:
        words, given = split_options(command, overrides or [])
        if help or "-h" in given:
            sys.stdout.write(help_text(command, words, config_dir))
            return
        options = [command.options[option] for option in given]
        instead = [option.run for option in options if option.run]
        if cfg and instead:
            raise NMTError(f"--cfg prints one configuration; leave {', '.join(given)} out")
        words += [option.override for option in options if option.override]
        if cfg:
            sys.stdout.write(to_yaml(compose_tree(command, words, config_dir)))
        elif instead:
            raise typer.Exit(instead[0](words, config_dir, set(given)) or 0)
        else:
            try:
                config = compose(command, words, config_dir)
            except NMTError as error:
                raise SameForAll(str(error)) from error
            raise typer.Exit(command.run(config) or 0)

    return run


for each in COMMANDS.values():
    app.command(each.name, help=each.summary, short_help=each.summary, context_settings=SETTINGS)(call(each))


def split_options(command: Command, words: list[str]) -> tuple[list[str], list[str]]:
    """Separate the overrides from the command's own options; NMTError for any other option."""
    own = ("-h", *command.options)
    for word, following in zip(words, [*words, ""][1:], strict=True):
        # A text to translate may begin with a dash, and a dash alone is standard input.
        if word.startswith("-") and word not in ("-", *own) and not re.search(r"\s", word):
            raise NMTError(explain_option(command, word, following))
    return [word for word in words if word not in own], [word for word in words if word in own]


def version(wanted: bool) -> None:
    if wanted:
        print(f"nmt {nmt.__version__}")
        raise typer.Exit


@app.callback(help='Neural machine translation with the Transformer of "Attention Is All You Need".')
def root(
    show: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; an error that a user can mend is one line on standard error, with exit code 2.

    Typer turns Ctrl-C into exit code 130, and a closed output pipe into 1.
    """
    # --help takes a group behind a blank, or behind =; nmt alone is nmt --help.
    sys.argv[1:] = [part for word in sys.argv[1:] for part in re.split("(?<=^--help)=", word)] or ["--help"]
    name = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    try:
        if name and name not in COMMANDS:
            raise NMTError(our_words("nmt", name) or f"unknown command {name}; {nearest(name, list(COMMANDS))}")
        with enough_memory_or(COMMANDS[name].memory if name else Command.memory):
            code = app(standalone_mode=False)
    except (NMTError, TyperException, OSError) as error:
        complain(error)
        code = 2
    sys.exit(code)


def complain(error: Exception) -> None:
    """Print an error as one line on standard error, whatever names and values are in it.

    An error that all processes of a training share is printed by the first one only.
    """
    message = " ".join((error.format_message() if isinstance(error, TyperException) else str(error)).splitlines())
    if len(message) > MESSAGE_CHARACTERS:
        message = f"{message[: MESSAGE_CHARACTERS - 200]} ... {message[-200:]}"
    if is_first_process():
        print(f"nmt: {message}", file=sys.stderr)
    elif not isinstance(error, SameForAll | TyperException):
        print(f"nmt: a process on {socket.gethostname()}: {message}", file=sys.stderr)
