"""`nmt demo`: train, score and try a real translator, from nothing, with one command."""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import BinaryIO

from nmt.commands import talker
from nmt.config import LANGUAGE, Command, number, require
from nmt.files import cannot_write, duration
from nmt.text import language_name

SOURCE = "en"
TARGET = "de"
USER_ERROR = 2
"""The exit code of nmt for a mistake that the user can correct."""
# uvx installs packages temporarily, in ~/.cache/uv/archive-v0/HASH/lib/...
UV_CACHE = "archive-v"
"""The beginning of the name of a folder in uv's cache."""


@dataclass
class DemoConfig:
    """Options of `nmt demo`."""

    source: str = SOURCE
    """Source language; the corpus has about 60 languages."""
    target: str = TARGET
    """Target language."""
    max_steps: int | None = number(None, 2, 10**9)
    """Number of updates to train, such as 600 for a first impression; null: as in
    experiment=quickstart."""

    def __post_init__(self) -> None:
        for key in ("source", "target"):
            language = getattr(self, key)
            problem = f"{key}={language!r:.80}: must be a language code, such as fr"
            require(LANGUAGE.fullmatch(language) is not None, problem)
        require(self.source != self.target, f"target={self.target}: must differ from source")


@dataclass(frozen=True)
class Step:
    """A command of the demo."""

    words: list[str]
    output: Path | None = None
    """Where its standard output goes; None: to that of the demo."""

    def __str__(self) -> str:
        line = shlex.join(["nmt", *self.words])
        if self.output:
            line += f" > {shlex.quote(str(self.output))}"
        return line


def name_of_run(config: DemoConfig) -> str:
    """A name for each direction and length, because a run cannot change them when it resumes."""
    parts = ["quickstart"]
    if (config.source, config.target) != (SOURCE, TARGET):
        parts += [config.source, config.target]
    if config.max_steps:
        parts.append(f"{config.max_steps}-updates")
    return "-".join(parts)


def steps(config: DemoConfig) -> list[Step]:
    """The commands, which a user can also type: prepare, train, translate and score."""
    run = Path("runs", name_of_run(config))
    preparation = ["experiment=quickstart"]
    training = ["experiment=quickstart"]
    if (config.source, config.target) != (SOURCE, TARGET):
        languages = [f"data.source={config.source}", f"data.target={config.target}"]
        preparation += languages
        training += languages
    if run.name != "quickstart":
        training.append(f"name={run.name}")
    if config.max_steps:
        # The warm-up must end before the training does.
        warmup = max(1, config.max_steps // 12)
        training += [f"trainer.max_steps={config.max_steps}", f"optim.warmup={warmup}"]
    corpus = Path(f"data/quickstart_{config.source}_{config.target}")
    source = str(corpus / f"test.{config.source}")
    reference = str(corpus / f"test.{config.target}")
    translations = run / f"test.{config.target}"
    return [
        Step(["preprocess", *preparation]),
        Step(["train", *training]),
        # Without protection of numbers and names, as the paper's systems are scored.
        Step(["translate", source, str(run), "protect=none"], translations),
        Step(["score", str(translations), reference, f"source={source}", "examples=10"]),
    ]


def run(config: DemoConfig) -> int:
    console = talker()
    start = time.monotonic()
    commands = steps(config)
    direction = f"from {language_name(config.source)} to {language_name(config.target)}"
    expected = "" if config.max_steps else ", which takes about 7 minutes on 2 cores"
    console.print(
        f"nmt: training a translator of user interface texts {direction}{expected}; "
        f"corpus and model are written to data/ and runs/ in {Path.cwd()}"
    )
    for number_of_step, step in enumerate(commands, 1):
        console.print(f"\n[{number_of_step} of {len(commands)}] {step}", style="bold")
        code = run_step(step)
        if code == USER_ERROR:
            console.print("nmt: the message is about the command above, which you can also type")
        elif code:
            console.print("nmt: the demo stopped; repeat the command to resume")
        if code:
            return code
    translator = f"runs/{name_of_run(config)}"
    took = duration(time.monotonic() - start)
    program = name_of_program()
    console.print(f"\nDone in {took}. What to try next:")
    console.print(f"  {program} serve {translator} --open   translate in your browser")
    if config.source == SOURCE:
        console.print(f"  {program} translate 'Turn off the light.' {translator}")
    console.print(f"  {program} preprocess --help   your own corpus: two text files")
    return 0


def run_step(step: Step) -> int:
    """Run a command in a separate process, as a shell does; return its exit code."""
    # -P: a file nmt.py or a folder nmt in the working directory is not this program.
    command = [sys.executable, "-P", "-m", "nmt", *step.words]
    with opened(step.output) as output, subprocess.Popen(command, stdout=output) as process:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            # The terminal has interrupted the command too, which now saves what it has.
            process.wait()
            raise
    # As shells do for a command that a signal ended.
    return code if code >= 0 else 128 - code


@contextmanager
def opened(path: Path | None) -> Iterator[BinaryIO | None]:
    """A file for a command's output; None if there is no path."""
    if path is None:
        yield None
        return
    try:
        file = path.open("wb")
    except OSError as error:
        raise cannot_write(path, error) from error
    with file:
        yield file


def name_of_program() -> str:
    """How the user starts nmt: `nmt`, `uvx nmt-toolkit`, `.venv/bin/nmt` or `python -m nmt`."""
    started = Path(sys.argv[0])
    if started.name == "__main__.py":
        return "python -m nmt"
    if any(part.startswith(UV_CACHE) for part in Path(sys.prefix).parts):
        # Without this option, uvx would download the build with CUDA, too.
        is_cpu_build = version("torch").endswith("+cpu")
        option = "--torch-backend cpu " if is_cpu_build else ""
        return f"uvx {option}{started.name}"
    on_path = shutil.which(started.name)
    if on_path and os.path.realpath(on_path) == os.path.realpath(started):
        return started.name
    return str(started)


COMMAND = Command(
    name="demo",
    config=DemoConfig,
    run=run,
    examples=("", "target=fr"),
)
