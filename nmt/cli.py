"""The command line. Only this file imports Typer; each command is defined in its file in commands/ or plugins/."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

from nmt import __version__, hardware
from nmt.commands import COMMANDS
from nmt.errors import NMTError, SameForAll, enough_memory_or
from nmt.registry import entries_of

LONGEST = 1000  # maximum length of a message in characters; messages may quote untrusted files


def run(
    name: str,
    words: list[str],
    cfg: bool = False,
    config_dir: Path | None = None,
    help: bool = False,
) -> int:
    """Run a command and return its exit code."""
    from nmt.config import compose, help_text, to_yaml

    command = COMMANDS[name]
    overrides = [command.options.get(word, word) for word in words]
    if help or "-h" in words:
        sys.stdout.write(
            help_text(command, [word for word in overrides if word != "-h"], config_dir)
        )
        return 0
    if cfg:
        sys.stdout.write(to_yaml(command, overrides, config_dir))
        return 0
    try:
        config = compose(command, overrides, config_dir)
    except NMTError as error:
        raise SameForAll(str(error)) from error
    name_latest(config)
    return command.run(config) or 0


def name_latest(config: Any) -> None:
    """Print which run a link such as runs/latest, the default, leads to, because training moves it."""
    from nmt.config import as_list, exists

    translator = getattr(config, "translator", None)
    systems = [word.rpartition("=")[2] for word in as_list(getattr(config, "systems", None))]
    # `compare` translates with each of its systems instead of a run.
    runs = systems or getattr(config, "run", None) or getattr(translator, "run", None)
    for run in as_list(runs):
        link = Path(run)
        if exists(run) and link.is_symlink():
            print(f"nmt: {run} is {link.parent / link.readlink()}", file=sys.stderr)


def run_with_options(name: str) -> int:
    """Run a command line that contains options and return its exit code."""
    import typer
    from typer.exceptions import TyperException

    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

    # nmt prints the help of commands itself and explains mistyped options as it does mistyped keys.
    @app.command(context_settings={"help_option_names": [], "ignore_unknown_options": True})
    def nmt(
        words: Annotated[list[str], typer.Argument()],
        cfg: Annotated[bool, typer.Option("--cfg")] = False,
        config_dir: Annotated[Path | None, typer.Option("--config-dir")] = None,
        help: Annotated[bool, typer.Option("--help")] = False,
    ) -> int:
        words.remove(name)
        return run(name, words, cfg, config_dir, help)

    try:
        return int(app(standalone_mode=False))
    except TyperException as error:
        raise SameForAll(error.format_message()) from error


def print_commands(words: list[str]) -> None:
    """Print the list of commands or the version."""
    if words == ["--version"]:
        print(f"nmt {__version__}")
        return
    commands, options = (
        entries_of("command"),
        {"--version": "Print the version.", "--help": "Print this page."},
    )
    print("Usage: nmt COMMAND [KEY=VALUE]... [OPTIONS]\n")
    print('Neural machine translation with the Transformer of "Attention Is All You Need".\n')
    print("Commands (for details, run nmt COMMAND --help)")
    for name, entry in commands.items():
        print(f"  {name:12}{entry.facts['summary']}")
    options |= {
        name: text
        for name, entry in entries_of("option").items()
        if (text := entry.facts.get("summary"))
    }
    print("\nOptions", *(f"  {name:22}{text}" for name, text in options.items()), sep="\n")


def main() -> None:
    """Run the command line. Exit codes: 2 for an error that a user can fix, 130 for Ctrl-C, 1 for a closed pipe."""
    hardware.set_gpu_defaults()
    words, code = sys.argv[1:], 0
    name = next((word for word in words if not word.startswith("-")), "")
    try:
        if option := entries_of("option").get("".join(words[:1])):
            code = option.load()(words[1:])
        elif words in ([], ["--help"], ["-h"], ["--version"]):
            print_commands(words)
        elif name in COMMANDS:
            with enough_memory_or(COMMANDS[name].memory):
                has_options = any(word.startswith("-") for word in words)
                code = run_with_options(name) if has_options else run(name, words[1:])
        else:
            from nmt.config import answer, nearest

            words = words[words.index(name) :] if name else words
            raise NMTError(
                answer("nmt", words) or f"unknown command {words[0]}; {nearest(words[0], COMMANDS)}"
            )
    except KeyboardInterrupt:
        code = 130
    except BrokenPipeError:
        # Discard buffered output; otherwise, Python would report the closed pipe as an error on exit.
        for stream in filter(None, (sys.stdout, sys.stderr)):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        code = 1
    except (NMTError, OSError) as error:
        complain(error)
        code = 2
    sys.exit(code)


def complain(error: Exception) -> None:
    """Print an error as one line on standard error; if all processes raise it, only the first prints it."""
    from nmt.training import is_first_process

    message = " ".join(str(error).splitlines())
    message = message if len(message) <= LONGEST else f"{message[:LONGEST]}..."
    if is_first_process():
        print(f"nmt: {message}", file=sys.stderr)
    elif not isinstance(error, SameForAll):
        import socket

        print(f"nmt: a process on {socket.gethostname()}: {message}", file=sys.stderr)
