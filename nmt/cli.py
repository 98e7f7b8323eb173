"""The command line: the only file that knows Typer.

Commands import what they need when they run, so that `nmt --help` answers at once.
"""

import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

import nmt
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
COMMAND = {"help_option_names": [], "ignore_unknown_options": True}
LONGEST = 2000
"""Letters of a message at most."""
Overrides = Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...")]
Cfg = Annotated[bool, typer.Option("--cfg")]
ConfigDir = Annotated[Path | None, typer.Option("--config-dir")]
Help = Annotated[bool, typer.Option("--help", "-h")]
OPTIONS = {
    "--cfg": "Print the composed configuration and exit.",
    "--config-dir": "FOLDER: look for groups there too.",
    "--help": "Print this and exit.",
}
OWN_OPTIONS = {
    "translate": {"--ray": "Short for ray.enabled=true."},
    "score": {"--json": "Short for format=json.", "--model": "RUN: short for model=RUN; twice for an ensemble."},
    "report": {"FOLDER": "Short for run=FOLDER."},
    "export": {"FOLDER": "Short for checkpoint=FOLDER."},
    "attention": {"SENTENCE": "Short for sentence=SENTENCE; quote it."},
    "reproduce": {"TABLE": "Short for table=TABLE.", "--dry-run": "Print the command of each stage, and start none."},
    "train": {
        "--sweep": "Train with each of several values, KEY=A,B or KEY=range(1,4), one after another.",
        "--dry-run": "With --sweep: print the command of each training, and start none.",
    },
}

SEARCH = "pass a lower decode.batch_tokens, decode.beam_size or buffer, or fewer devices"
MEMORY = {
    "preprocess": "pass fewer workers",
    "train": "other programs may have taken it since training began; the same command goes on from the last checkpoint",
    "translate": SEARCH,
    "parse": SEARCH,
    "score": "pass a lower batch_tokens or buffer",
    "average": "it takes some 20 bytes for each of the model's parameters, however many checkpoints there are",
}
"""What to do where memory runs out, which is one line whatever a command was about."""


def configure(command: str, summary: str, overrides: list[str] | None, options: tuple[bool, Path | None, bool]) -> Any:
    """The command's configuration; where its help or tree was asked for, print that and exit."""
    from nmt.compose import compose, compose_tree, to_yaml

    cfg, config_dir, help_wanted = options
    known = known_options(command, overrides)
    if help_wanted:
        print_help(command, summary, known, config_dir)
        raise typer.Exit
    if not cfg:
        try:
            return compose(command, overrides or [], config_dir)
        except NMTError as error:
            raise SameForAll(str(error)) from error
    tree = compose_tree(command, overrides or [], config_dir)
    sys.stdout.write(to_yaml(tree))
    raise typer.Exit


def known_options(command: str, overrides: list[str] | None) -> dict[str, str]:
    """The options of a command and what they do; NMTError where another one was given."""
    known = {**OPTIONS, **OWN_OPTIONS.get(command, {})}
    for word in overrides or []:
        if word.startswith("-"):
            raise NMTError(f"unknown option {word}; there are {', '.join(known)}, and KEY=VALUE without dashes")
    return known


def print_help(command: str, summary: str, options: dict[str, str], config_dir: Path | None) -> None:
    """Usage, options, groups and keys with their defaults."""
    from rich.console import Console
    from rich.table import Table

    from nmt.compose import command_groups, command_options

    def grid(title: str, rows: Sequence[tuple[str, ...]]) -> None:
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for row in rows:
            table.add_row("", *row)
        console.print(f"\n{title}", style="bold")
        console.print(table)

    console = Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else 160)
    console.print(f"Usage: nmt {command} [KEY=VALUE]... [OPTIONS]\n\n{summary}", soft_wrap=True)
    grid("Options", list(options.items()))
    groups = command_groups(command, config_dir)
    if groups:
        rows = [
            (f"{name}={default or 'none'}", ", ".join(choice for choice in choices if choice != default))
            for name, (default, choices) in groups.items()
        ]
        grid("Groups, their defaults, and what else there is", rows)
    keys = [(f"{o.key}={o.default}", o.help) for o in command_options(command)]
    grid("Keys, their defaults, and what they mean", keys)


def talker() -> Any:
    """The console on standard error, which leaves lines whole; of several processes only the first one talks."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True, quiet=not is_first_process())


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


@app.command(context_settings=COMMAND)
def preprocess(overrides: Overrides = None, cfg: Cfg = False, config_dir: ConfigDir = None, help: Help = False) -> None:
    """Prepare a parallel corpus for training."""
    config = configure("preprocess", str(preprocess.__doc__), overrides, (cfg, config_dir, help))
    from nmt.text.filters import large_losses
    from nmt.text.preprocess import preprocess as prepare

    console = talker()
    with console.status("preparing") as status:
        manifest, done = prepare(config, lambda words: status.update(words))
    if not done:
        console.print(f"{config.prepared} is already prepared with this configuration: nothing to do")
        return
    for split, counts in manifest.counts.items():
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in counts["dropped"].items())
        console.print(
            f"{split}: {counts['kept']:,} of {counts['read']:,} pairs kept"
            + (f" (dropped: {dropped})" if dropped else "")
        )
        if found := counts.get("in_train"):
            console.print(f"notice: {found:,} pairs of {split} are in train too: a score on them says little")
    for line in large_losses(manifest.counts["train"]):
        console.print(f"notice: {line}")
    if manifest.vocabulary_size < config.tokenizer.vocabulary_size:
        console.print(
            f"notice: the corpus fills only {manifest.vocabulary_size:,} of "
            f"tokenizer.vocabulary_size={config.tokenizer.vocabulary_size:,} entries; the vocabulary is that small"
        )
    console.print(f"prepared corpus: {config.prepared}")


@app.command(context_settings=COMMAND)
def train(
    overrides: Overrides = None,
    cfg: Cfg = False,
    config_dir: ConfigDir = None,
    help: Help = False,
    sweep: Annotated[bool, typer.Option("--sweep")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
) -> None:
    """Train a model, or go on where it stopped."""
    if dry_run and not sweep and not help:
        raise NMTError("--dry-run prints the commands of a --sweep; --cfg prints the configuration of one training")
    if sweep and cfg and not help:
        raise NMTError("--cfg prints one configuration; --sweep --dry-run prints commands that take --cfg")
    if sweep and not help:
        raise typer.Exit(train_sweep(overrides or [], config_dir, dry_run))
    config = configure("train", str(train.__doc__), overrides, (cfg, config_dir, help))
    from nmt.text.manifest import read_manifest

    console = talker()
    read_manifest(Path(config.prepared))  # before the seconds that Lightning takes to load
    with console.status("loading"):
        from nmt.training.train import train as fit

    number = fit(config, console)
    if number is not None:
        console.print(f"stopped and saved in {config.run}; the same command goes on from there")
        raise typer.Exit(128 + number)


def train_sweep(overrides: list[str], config_dir: Path | None, dry_run: bool) -> int:
    """`nmt train --sweep`; gives the exit code."""
    known_options("train", overrides)
    console = talker()
    with console.status("composing"):
        from nmt.sweep import command_lines, plan, train_points

        points = plan(overrides, config_dir)
    if not dry_run:
        return train_points(points, console)
    sys.stdout.write(command_lines(points))
    return 0


@app.command(context_settings=COMMAND)
def translate(
    overrides: Overrides = None,
    cfg: Cfg = False,
    config_dir: ConfigDir = None,
    help: Help = False,
    ray: Annotated[bool, typer.Option("--ray")] = False,
) -> None:
    """Translate raw text, line by line."""
    extra = ["ray.enabled=true"] if ray else []
    config = configure("translate", str(translate.__doc__), [*(overrides or []), *extra], (cfg, config_dir, help))
    if config.ray.enabled:
        from nmt.decoding.on_ray import translate_corpus

        translate_corpus(config, talker())
    else:
        from nmt.decoding.translate import translate as run

        run(config)


@app.command(context_settings=COMMAND)
def parse(overrides: Overrides = None, cfg: Cfg = False, config_dir: ConfigDir = None, help: Help = False) -> None:
    """Draw the tree of each sentence, in brackets, by a model that was trained on a treebank."""
    config = configure("parse", str(parse.__doc__), overrides, (cfg, config_dir, help))
    from nmt.decoding.parse import parse as run

    run(config)


@app.command(context_settings=COMMAND)
def score(
    overrides: Overrides = None,
    cfg: Cfg = False,
    config_dir: ConfigDir = None,
    help: Help = False,
    json: Annotated[bool, typer.Option("--json")] = False,
    model: Annotated[list[str] | None, typer.Option("--model")] = None,
) -> None:
    """Score translations, with signatures; or by a model, as to filter a corpus."""
    from nmt.compose import set_texts

    extra = ["format=json"] if json else []
    extra += [set_texts("model", model)] if model else []
    config = configure("score", str(score.__doc__), [*(overrides or []), *extra], (cfg, config_dir, help))
    if config.model:
        from nmt.evaluation.likelihood import score_pairs

        score_pairs(config)
        return
    from nmt.evaluation.report import report

    sys.stdout.write(report(config))


@app.command(context_settings=COMMAND)
def average(overrides: Overrides = None, cfg: Cfg = False, config_dir: ConfigDir = None, help: Help = False) -> None:
    """Average checkpoints into a model."""
    config = configure("average", str(average.__doc__), overrides, (cfg, config_dir, help))
    from nmt.training.averaging import average as run

    output, paths = run(config)
    print(f"{output} is the average of {', '.join(path.name for path in paths)}")


@app.command(context_settings=COMMAND)
def export(overrides: Overrides = None, cfg: Cfg = False, config_dir: ConfigDir = None, help: Help = False) -> None:
    """Write a model for another program, and compare their translations."""
    config = configure("export", str(export.__doc__), overrides, (cfg, config_dir, help))
    from nmt.export.export import export as run

    with talker().status("loading") as status:
        for line in run(config, lambda words: status.update(words)):
            print(line)


@app.command(context_settings=COMMAND)
def report(overrides: Overrides = None, cfg: Cfg = False, config_dir: ConfigDir = None, help: Help = False) -> None:
    """Write a page about a training run: curves, translations, corpus, configuration."""
    config = configure("report", str(report.__doc__), overrides, (cfg, config_dir, help))
    from dataclasses import asdict

    from nmt.compose import compose
    from nmt.report.run import find_run

    console = talker()
    find_run(config.run)  # before the seconds that Lightning takes to load
    with console.status("loading"):
        from nmt.report.report import report as write

    print(write(config, asdict(compose("train", [])), console))


@app.command(context_settings=COMMAND)
def attention(overrides: Overrides = None, cfg: Cfg = False, config_dir: ConfigDir = None, help: Help = False) -> None:
    """Draw what each head of a model looks at, in a sentence and its translation."""
    config = configure("attention", str(attention.__doc__), overrides, (cfg, config_dir, help))
    from nmt.report.attention import attention as draw

    print(draw(config))


@app.command(context_settings=COMMAND)
def reproduce(
    overrides: Overrides = None,
    cfg: Cfg = False,
    config_dir: ConfigDir = None,
    help: Help = False,
    dry_run: Annotated[bool, typer.Option("--dry-run")] = False,
) -> None:
    """Measure the paper's tables, and show them beside the paper's numbers."""
    config = configure("reproduce", str(reproduce.__doc__), overrides, (cfg, config_dir, help))
    console = talker()
    with console.status("loading"):
        from nmt.reproduce.reproduce import command_lines, plan
        from nmt.reproduce.reproduce import reproduce as run
        from nmt.reproduce.scales import SCALES

    scale = SCALES[config.scale]
    if dry_run:
        sys.stdout.write(command_lines(plan(config, scale)))
        return
    raise typer.Exit(run(config, scale, console))


def main() -> None:
    """Run the command line; errors that users can mend are one line on standard error, and exit code 2.

    Typer answers Ctrl-C with exit code 130, and a reader of our output that has gone with 1.
    """
    command = next((word for word in sys.argv[1:] if word in MEMORY), "")
    try:
        with enough_memory_or(MEMORY.get(command, "end other programs, or take a machine that has more")):
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
    message = message if len(message) <= LONGEST else f"{message[: LONGEST - 200]} ... {message[-200:]}"
    if is_first_process():
        print(f"nmt: {message}", file=sys.stderr)
    elif not isinstance(error, SameForAll | TyperException):
        print(f"nmt: a process on {socket.gethostname()}: {message}", file=sys.stderr)
