"""The command line: the only file that imports Typer. Each command is defined by its own file in commands/.

Typer and Hydra are imported where words need them: both together take half a second.
"""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import nmt
from nmt.commands import COMMANDS
from nmt.compose import Command, compose
from nmt.errors import NMTError, SameForAll, enough_memory_or
from nmt.training import is_first_process

if TYPE_CHECKING:
    from typer import Typer

MESSAGE_CHARACTERS = 2000
"""A longer message is cut in the middle."""


def run(
    command: Command, overrides: list[str], cfg: bool = False, config_dir: Path | None = None, help: bool = False
) -> int:
    """Run a command, and return its exit code."""
    words, given = split_options(command, overrides)
    if help or "-h" in given:
        from nmt.compose import help_text

        sys.stdout.write(help_text(command, words, config_dir))
        return 0
    options = [command.options[option] for option in given]
    instead = [option.run for option in options if option.run]
    if cfg and instead:
        raise NMTError(f"--cfg prints one configuration; leave {', '.join(given)} out")
    words += [option.override for option in options if option.override]
    if cfg:
        from nmt.compose import compose_tree, to_yaml

        sys.stdout.write(to_yaml(compose_tree(command, words, config_dir)))
        return 0
    if instead:
        return instead[0](words, config_dir, set(given)) or 0
    try:
        config = compose(command, words, config_dir)
    except NMTError as error:
        raise SameForAll(str(error)) from error
    return command.run(config) or 0


def split_options(command: Command, words: list[str]) -> tuple[list[str], list[str]]:
    """Separate the overrides from the command's own options; NMTError for any other option."""
    own = ("-h", *command.options)
    for word, following in zip(words, [*words, ""][1:], strict=True):
        # A text to translate may begin with a dash, and a dash alone is standard input.
        if word.startswith("-") and word not in ("-", *own) and not re.search(r"\s", word):
            from nmt.compose import explain_option

            raise NMTError(explain_option(command, word, following))
    return [word for word in words if word not in own], [word for word in words if word in own]


def typer_app() -> "Typer":
    """The command line with all of its options."""
    import typer

    app = typer.Typer(
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )

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

    def call(command: Command) -> Callable[..., None]:
        """The function that Typer calls for a command."""

        def with_options(
            overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...")] = None,
            cfg: Annotated[bool, typer.Option("--cfg")] = False,
            config_dir: Annotated[Path | None, typer.Option("--config-dir")] = None,
            help: Annotated[bool, typer.Option("--help")] = False,
        ) -> None:
            raise typer.Exit(run(command, overrides or [], cfg, config_dir, help))

        return with_options

    # The help of a command is made from the YAML groups, and a mistyped option is answered like a mistyped key.
    settings = {"help_option_names": [], "ignore_unknown_options": True}
    for each in COMMANDS.values():
        app.command(each.name, help=each.summary, short_help=each.summary, context_settings=settings)(call(each))
    return app


def run_by_typer() -> int:
    """Run the command line with its options; returns the exit code."""
    from typer.exceptions import TyperException

    try:
        return int(typer_app()(standalone_mode=False) or 0)
    except TyperException as error:
        raise SameForAll(error.format_message()) from error


def main() -> None:
    """Run the command line; an error that a user can mend is one line on standard error, with exit code 2.

    Ctrl-C is exit code 130, and a closed output pipe 1.
    """
    # --help takes a group behind a blank, or behind =; nmt alone is nmt --help.
    sys.argv[1:] = [part for word in sys.argv[1:] for part in re.split("(?<=^--help)=", word)] or ["--help"]
    name = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    try:
        if name and name not in COMMANDS:
            from nmt.compose import nearest, our_words

            raise NMTError(our_words("nmt", name) or f"unknown command {name}; {nearest(name, list(COMMANDS))}")
        with enough_memory_or(COMMANDS[name].memory if name else Command.memory):
            options = [word for word in sys.argv[1:] if word.startswith("-")]
            code = run_by_typer() if options else run(COMMANDS[name], sys.argv[2:])
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        # What is still buffered goes nowhere, or Python would report that when it ends.
        for stream in filter(None, (sys.stdout, sys.stderr)):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        code = 1
    except (NMTError, OSError) as error:
        complain(error)
        code = 2
    sys.exit(code)


def complain(error: Exception) -> None:
    """Print an error as one line on standard error, whatever names and values are in it.

    An error that all processes of a training share is printed by the first one only.
    """
    message = " ".join(str(error).splitlines())
    if len(message) > MESSAGE_CHARACTERS:
        message = f"{message[: MESSAGE_CHARACTERS - 200]} ... {message[-200:]}"
    if is_first_process():
        print(f"nmt: {message}", file=sys.stderr)
    elif not isinstance(error, SameForAll):
        import socket

        print(f"nmt: a process on {socket.gethostname()}: {message}", file=sys.stderr)
