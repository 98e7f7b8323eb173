"""The command line: the only file that imports Typer. The file of each command in commands/ or plugins/ defines it."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from nmt.commands import COMMANDS
from nmt.errors import NMTError, SameForAll, enough_memory_or
from nmt.registry import entries_of
from nmt.version import __version__

if TYPE_CHECKING:
    from typer import Typer

MESSAGE_CHARACTERS = 2000
"""A longer message is cut in the middle."""


def run(name: str, words: list[str], cfg: bool = False, config_dir: Path | None = None, help: bool = False) -> int:
    """Run a command, and return its exit code."""
    from nmt.config import compose, compose_tree, explain_option, help_text, to_yaml

    command = COMMANDS[name]
    options = command.all_options
    given = [word for word in words if word in ("-h", *options)]
    overrides = [word for word in words if word not in given]
    for word, following in zip(overrides, [*overrides, ""][1:], strict=True):
        # A text to translate may begin with a dash, and a dash alone is standard input.
        if word.startswith("-") and word != "-" and not re.search(r"\s", word):
            raise NMTError(explain_option(command, word, following))
    if help or "-h" in given:
        sys.stdout.write(help_text(command, overrides, config_dir))
        return 0
    overrides += [options[option].override for option in given if options[option].override]
    run_instead = [options[option].run for option in given if options[option].run]
    if cfg:
        if run_instead:
            raise NMTError(f"--cfg prints one configuration; leave {', '.join(given)} out")
        sys.stdout.write(to_yaml(compose_tree(command, overrides, config_dir)))
        return 0
    if run_instead and run_instead[0]:
        return run_instead[0](overrides, config_dir, set(given)) or 0
    try:
        config = compose(command, overrides, config_dir)
    except NMTError as error:
        raise SameForAll(str(error)) from error
    return command.run(config) or 0


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

    def print_version(is_given: bool) -> None:
        if is_given:
            print(f"nmt {__version__}")
            raise typer.Exit

    @app.callback(help='Neural machine translation with the Transformer of "Attention Is All You Need".')
    def root(
        version: Annotated[
            bool, typer.Option("--version", callback=print_version, is_eager=True, help="Print the version.")
        ] = False,
    ) -> None:
        pass

    def runner(name: str) -> Callable[..., None]:
        def run_command(
            overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...")] = None,
            cfg: Annotated[bool, typer.Option("--cfg")] = False,
            config_dir: Annotated[Path | None, typer.Option("--config-dir")] = None,
            help: Annotated[bool, typer.Option("--help")] = False,
        ) -> None:
            raise typer.Exit(run(name, overrides or [], cfg, config_dir, help))

        return run_command

    # nmt prints the help of a command itself, and explains a mistyped option as it explains a mistyped key.
    settings = {"help_option_names": [], "ignore_unknown_options": True}
    for name, entry in entries_of("command").items():
        summary = entry.facts["summary"]
        app.command(name, help=summary, short_help=summary, context_settings=settings)(runner(name))
    return app


def run_by_typer() -> int:
    """Run the command line with its options; returns the exit code."""
    from typer.exceptions import TyperException

    try:
        return int(typer_app()(standalone_mode=False) or 0)
    except TyperException as error:
        raise SameForAll(error.format_message()) from error


def main() -> None:
    """Run the command line; an error that a user can fix is one line on standard error, with exit code 2.

    Ctrl-C is exit code 130, and a closed output pipe 1.
    """
    # --help takes a group behind a blank, or behind =; nmt alone is nmt --help.
    sys.argv[1:] = [part for word in sys.argv[1:] for part in re.split("(?<=^--help)=", word)] or ["--help"]
    name = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    try:
        if name and name not in COMMANDS:
            from nmt.config import nearest, our_words

            raise NMTError(our_words("nmt", name) or f"unknown command {name}; {nearest(name, list(COMMANDS))}")
        with enough_memory_or(COMMANDS[name].memory if name else "end other programs"):
            has_options = any(word.startswith("-") for word in sys.argv[1:])
            code = run_by_typer() if has_options else run(name, sys.argv[2:])
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
    from nmt.training import is_first_process

    if is_first_process():
        print(f"nmt: {message}", file=sys.stderr)
    elif not isinstance(error, SameForAll):
        import socket

        print(f"nmt: a process on {socket.gethostname()}: {message}", file=sys.stderr)
