"""The command line. Each command is defined in its file in commands/ or plugins/.

Only this file imports Typer, and only if there are options.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

from nmt import __version__, hardware
from nmt.commands import COMMANDS
from nmt.errors import NMTError, SameForAll, enough_memory_or
from nmt.extensions import CommandEntry
from nmt.registry import entries_of

LONGEST_MESSAGE = 1000
"""In characters. Messages may quote untrusted files, which must not fill the terminal."""
GLOBAL_OPTIONS = {
    "--version": "Print the version.",
    "--help": "Print this page.",
    "--install-completion": "Complete commands, keys and values with Tab in bash, zsh or fish.",
}
# Exit codes.
CLOSED_PIPE = 1
"""As any program in Python exits then."""
USER_ERROR = 2
INTERRUPTED = 130
"""After Ctrl-C, shells expect 128 plus the number of SIGINT."""


def run(
    name: str,
    words: list[str],
    cfg: bool = False,
    config_dir: Path | None = None,
    help: bool = False,
) -> int:
    """Run a command and return its exit code."""
    # Imported here: completion and the list of commands need neither Hydra nor OmegaConf.
    from nmt.config import compose, help_text, to_yaml

    command = COMMANDS[name]
    overrides = [command.options.get(word, word) for word in words]
    if help or "-h" in words:
        topics = [word for word in overrides if word != "-h"]
        sys.stdout.write(help_text(command, topics, config_dir))
        return 0
    if cfg:
        sys.stdout.write(to_yaml(command, overrides, config_dir))
        return 0
    try:
        config = compose(command, overrides, config_dir)
    # Each process of a training composes the same configuration and meets the same mistake.
    except NMTError as error:
        raise SameForAll(str(error)) from error
    name_latest(config)
    return command.run(config) or 0


def name_latest(config: Any) -> None:
    """Print the run that a link such as runs/latest, the default, points to.

    The user may not know, because training moves the link.
    """
    from nmt.config import as_list, exists

    # Commands name their runs in several ways; those without a run have none of these keys.
    runs = getattr(config, "run", None)
    if not runs and hasattr(config, "translator"):
        runs = getattr(config.translator, "run", None)
    # `compare` translates with each of its systems instead of a run.
    systems = as_list(getattr(config, "systems", None))
    if systems:
        runs = [system.rpartition("=")[2] for system in systems]
    for run in as_list(runs):
        link = Path(run)
        if exists(run) and link.is_symlink():
            print(f"nmt: {run} is {link.parent / link.readlink()}", file=sys.stderr)


def run_with_options(name: str) -> int:
    """Run a command whose command line contains options, and return its exit code.

    Typer reads the command line from sys.argv. It passes text to translate that begins with a dash
    on as a word.
    """
    import typer
    from typer.exceptions import TyperException

    # Typer's completion, markup and tracebacks are off: nmt does these itself, without importing
    # rich.
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

    # nmt prints the help of commands itself and explains mistyped options as it does mistyped keys.
    @app.command(context_settings={"help_option_names": [], "ignore_unknown_options": True})
    def nmt(
        words: Annotated[list[str], typer.Argument()],
        cfg: Annotated[bool, typer.Option("--cfg")] = False,
        config_dir: Annotated[Path | None, typer.Option("--config-dir")] = None,
        help: Annotated[bool, typer.Option("--help")] = False,
    ) -> int:
        # Options may precede the command, as in `nmt --cfg train`, so its name may be anywhere.
        words.remove(name)
        return run(name, words, cfg, config_dir, help)

    try:
        # In standalone mode, Typer would print errors in its own form and end the process.
        return int(app(standalone_mode=False))
    except TyperException as error:
        raise SameForAll(error.format_message()) from error


def print_commands(words: list[str]) -> None:
    """Print the list of commands or the version."""
    if words == ["--version"]:
        print(f"nmt {__version__}")
        return
    commands = entries_of(CommandEntry)  # first, because a plugin may be broken
    print("Usage: nmt COMMAND [KEY=VALUE]... [OPTIONS]\n")
    print('Neural machine translation with the Transformer of "Attention Is All You Need".\n')
    print("Commands (for details, run nmt COMMAND --help)")
    # From the registry, without importing the commands.
    for name, entry in commands.items():
        print(f"  {name:12}{entry.summary}")
    print("\nOptions")
    for name, summary in GLOBAL_OPTIONS.items():
        print(f"  {name:22}{summary}")


def main() -> None:
    """Run the command line and exit."""
    # Before anything imports torch, which reads these variables once.
    hardware.set_gpu_defaults()
    try:
        code = dispatch(sys.argv[1:])
    except KeyboardInterrupt:
        code = INTERRUPTED
    # For example `nmt translate ... | head`, which is not a mistake. BrokenPipeError is an OSError,
    # so it comes first.
    except BrokenPipeError:
        discard_output()
        code = CLOSED_PIPE
    except (NMTError, OSError) as error:
        complain(error)
        code = USER_ERROR
    sys.exit(code)


def dispatch(words: list[str]) -> int:
    """Run a command, or an option that needs no command, and return the exit code.

    `words` are the arguments of the program, such as [train, corpus, minutes=30]. Options may
    precede the command, as in [--cfg, train].
    """
    if sys.platform == "win32":
        # Locks, signals and memory limits use interfaces that only POSIX systems have.
        raise NMTError("nmt needs Linux or macOS; on Windows, run it in WSL")
    if words in ([], ["--help"], ["-h"], ["--version"]):
        print_commands(words)
        return 0
    if words[0] in ("--complete", "--install-completion"):
        complete(*words)
        return 0
    name = command_among(words)
    has_options = any(word.startswith("-") for word in words)
    with enough_memory_or(COMMANDS[name].memory):
        if has_options:
            return run_with_options(name)
        # Without options, the name is the first word, and Typer need not be imported.
        return run(name, words[1:])


def complete(option: str, *words: str) -> None:
    """Complete a command line for a shell, or install completion."""
    from nmt.commands.overview import completion

    if option == "--complete":
        completion.complete([*words])
    else:
        completion.install([*words])


def command_among(words: list[str]) -> str:
    """The name of the command: the first word that is no option. NMTError if it is no command."""
    names = [word for word in words if not word.startswith("-")]
    if not names:
        refuse(words)
    name = names[0]
    if name not in COMMANDS:
        # Without the options before it, which do not explain what the user meant.
        refuse(words[words.index(name) :])
    return name


def refuse(words: list[str]) -> NoReturn:
    """Raise NMTError for words that do not begin with a command."""
    from nmt.config import answer, nearest

    # An option is no mistyped command, even though --cfg resembles config.
    name = "" if words[0].startswith("-") else words[0]
    unknown = f"unknown command {words[0]}; {nearest(name, COMMANDS)}"
    raise NMTError(answer("nmt", words) or unknown)


def discard_output() -> None:
    """Discard buffered output, so that Python does not report the closed pipe again on exit."""
    for stream in (sys.stdout, sys.stderr):
        if stream:
            # Python flushes the streams once more on exit, which would fail in the same way. The
            # documentation of the module `signal` recommends this.
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def complain(error: Exception) -> None:
    """Print an error as one line on standard error.

    If all processes raise it, only the first one prints it.
    """
    from nmt.training import is_first_process

    # One line, even if it quotes another library's error, which may have several lines.
    message = " ".join(str(error).splitlines())
    if len(message) > LONGEST_MESSAGE:
        message = f"{message[:LONGEST_MESSAGE]}..."
    if is_first_process():
        print(f"nmt: {message}", file=sys.stderr)
    # Only this process has the error, so it also says where it runs.
    elif not isinstance(error, SameForAll):
        import socket

        print(f"nmt: a process on {socket.gethostname()}: {message}", file=sys.stderr)
