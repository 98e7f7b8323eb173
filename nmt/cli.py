"""The command line: the only file that knows Typer. What each command does, its own file in commands/ says."""

import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import TyperException

import nmt
from nmt.commands import COMMANDS
from nmt.compose import Command, command_groups, command_options, compose, compose_tree, to_yaml
from nmt.errors import NMTError, SameForAll, enough_memory_or
from nmt.training.processes import is_first_process

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
# `--help` of a command is made from the YAML groups, and a mistyped option gets the same one line as a mistyped key.
SETTINGS = {"help_option_names": [], "ignore_unknown_options": True}
LONGEST_MESSAGE = 2000
"""Characters."""
OPTIONS = {
    "--cfg": "Print the composed configuration and exit.",
    "--config-dir": "FOLDER: look for groups there too.",
    "--help": "Print this and exit.",
}


def call(command: Command) -> Callable[..., None]:
    """What Typer calls for a command."""

    def run(
        overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...")] = None,
        cfg: Annotated[bool, typer.Option("--cfg")] = False,
        config_dir: Annotated[Path | None, typer.Option("--config-dir")] = None,
        help: Annotated[bool, typer.Option("--help", "-h")] = False,
    ) -> None:
        words, given = split_options(command, overrides or [])
        if help:
            print_help(command, config_dir)
            return
        own = [command.options[option].run for option in given if command.options[option].run]
        if cfg and own:
            raise NMTError(f"--cfg prints one configuration; leave {', '.join(given)} out")
        words += [command.options[option].override for option in given if command.options[option].override]
        if cfg:
            sys.stdout.write(to_yaml(compose_tree(command, words, config_dir)))
        elif own and own[0]:
            raise typer.Exit(own[0](words, config_dir, set(given)) or 0)
        else:
            try:
                config = compose(command, words, config_dir)
            except NMTError as error:
                raise SameForAll(str(error)) from error
            raise typer.Exit(command.run(config) or 0)

    return run


for each in COMMANDS.values():
    app.command(each.name, help=each.summary, context_settings=SETTINGS)(call(each))


def split_options(command: Command, words: list[str]) -> tuple[list[str], list[str]]:
    """Overrides, and the command's own options among the words; NMTError for another option."""
    known = [*OPTIONS, *command.options]
    for word in words:
        if word.startswith("-") and word not in known:
            raise NMTError(f"unknown option {word}; there are {', '.join(known)}, and KEY=VALUE without dashes")
    return [word for word in words if word not in known], [word for word in words if word in command.options]


def print_help(command: Command, config_dir: Path | None) -> None:
    """Usage, options, groups and keys with their defaults."""
    from rich.console import Console
    from rich.table import Table

    def grid(title: str, rows: Sequence[tuple[str, ...]]) -> None:
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for row in rows:
            table.add_row("", *row)
        console.print(f"\n{title}", style="bold")
        console.print(table)

    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 160)
    console.print(f"Usage: nmt {command.name} [KEY=VALUE]... [OPTIONS]\n\n{command.summary}", soft_wrap=True)
    own = {name: option.help for name, option in command.options.items()}
    word = {command.word.upper(): f"Short for {command.word}={command.word.upper()}."} if command.word else {}
    grid("Options", list({**OPTIONS, **own, **word}.items()))
    groups = command_groups(command, config_dir)
    if groups:
        rows = [
            (f"{name}={default or 'none'}", ", ".join(choice for choice in choices if choice != default))
            for name, (default, choices) in groups.items()
        ]
        grid("Groups, their defaults, and what else there is", rows)
    keys = [(f"{o.key}={o.default}", o.help) for o in command_options(command)]
    grid("Keys, their defaults, and what they mean", keys)


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
    """Run the command line; errors that users can mend are one line on standard error, and exit code 2.

    Typer answers Ctrl-C with exit code 130, and a reader of our output that has gone with 1.
    """
    command = next((COMMANDS[word] for word in sys.argv[1:] if word in COMMANDS), None)
    try:
        with enough_memory_or(command.memory if command else Command.memory):
            code = app(standalone_mode=False)
    except (NMTError, TyperException) as error:
        complain(error.format_message() if isinstance(error, TyperException) else str(error), error)
        code = 2
    except OSError as error:
        complain(str(error), error)
        code = 2
    sys.exit(code)


def complain(message: str, error: Exception) -> None:
    """One line on standard error, whatever names and values are in it.

    What all processes that train together meet alike, the first one tells for all.
    """
    message = " ".join(message.splitlines())
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[: LONGEST_MESSAGE - 200]} ... {message[-200:]}"
    if is_first_process():
        print(f"nmt: {message}", file=sys.stderr)
    elif not isinstance(error, SameForAll | TyperException):
        print(f"nmt: a process on {socket.gethostname()}: {message}", file=sys.stderr)
