"""`nmt synthesise`: pairs of lines for training, of which a model writes one side."""

import shlex
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.commands.console import talker, tell_latest
from nmt.commands.translate import LESS_MEMORY
from nmt.commands.words import input_and_run
from nmt.config import Command, as_list
from nmt.plugins.synthesize.config import SynthesiseConfig

if TYPE_CHECKING:
    from nmt.plugins.synthesize.pairs import Summary


def next_commands(config: SynthesiseConfig, summary: "Summary") -> list[str]:
    """The commands that train on the pairs; back-translations together with the text of the teacher's training."""
    from nmt.config import groups, set_text
    from nmt.files import tokenizer_settings, within
    from nmt.translation import find_models

    teacher = find_models(config.run)[1][0]
    trained = within(teacher.training, "config")
    of_files = within(trained, "data", "kind") == "files" and not within(trained, "data", "sources")
    original = as_list(within(trained, "data", "train")) if of_files else ["corpus/train"]
    prepared = Path(str(within(trained, "prepared")))
    held_out = [
        (f"data.{split}", f"{prepared}/{split}")
        for split in ("valid", "test")
        if all((prepared / f"{split}.{side}").is_file() for side in (summary.source, summary.target))
    ]
    own = {"name": "synthetic", "train": f"{config.output}/train", **({"tag": config.tag} if config.tag else {})}
    name = Path(config.output).name
    words = ["data=files", f"data.name={name}", f"data.source={summary.source}", f"data.target={summary.target}"]
    words += [set_text(*each) for each in held_out]
    if config.kind == "distillation":
        words += [set_text("data.train", f"{config.output}/train"), set_text("init", config.run[0])]
    else:
        words.append(
            f"data.sources=[{mapping({'train': original[0] if len(original) == 1 else original})},{mapping(own)}]"
        )
        words += [f"tokenizer.{key}={value}" for key, value in tokenizer_settings(teacher).items() if trained]
    preset = "student" if config.kind == "distillation" else within(teacher.model, "name")
    model = f" model={preset}" if preset in groups()["model"] else ""
    return [shlex.join(["nmt", "preprocess", *words]), f"nmt train {shlex.quote(f'data/{name}')}{model}"]


def mapping(entry: Mapping[str, str | list[str]]) -> str:
    """A mapping in Hydra's grammar."""
    from nmt.config import set_text

    return "{" + ",".join(set_text(key, value).replace("=", ":", 1) for key, value in entry.items()) + "}"


def report(config: SynthesiseConfig, summary: "Summary") -> Iterator[str]:
    """What to print at the end."""
    reasons = {
        "empty": "empty",
        "flagged": f"flagged ({', '.join(f'{flag} {count:,}' for flag, count in summary.flags.items())})",
        "unlikely": f"least likely by {'reverse' if config.reverse else 'the teacher'}",
    }
    dropped = [f"{count:,} {reasons[reason]}" for reason, count in summary.dropped.items() if count]
    yield f"{summary.kept:,} of {summary.lines:,} pairs kept" + (f" (dropped: {', '.join(dropped)})" if dropped else "")
    yield f"{config.output}/train.{summary.source} and train.{summary.target}"
    yield from ("next:", *next_commands(config, summary))


def run(config: SynthesiseConfig) -> None:
    """Translate the lines, and write the pairs that are good enough."""
    from nmt.plugins.synthesize.synthesis import synthesise

    tell_latest(config.run)
    for line in report(config, synthesise(config, talker())):
        print(line)


COMMAND = Command(
    "synthesise",
    SynthesiseConfig,
    run,
    partial(input_and_run, "synthesise", forms="`nmt synthesise FILE RUN output=FOLDER`"),
    usage="FILE [RUN]... output=FOLDER",
    example="mono.de runs/de-en output=synthetic/bt tag=BT",
    keys=(
        "run=runs/mine input=mono.de output=synthetic/bt kind=distillation tag=BT drop=0.1 reverse=runs/other "
        "flagged=keep reference=train.de decode.do_sample=true decode=greedy devices=4 threads=2"
    ),
    hides="text format input_format ray.lines",
    texts=("target", "source_prefix", "target_prefix", "tag"),
    memory=LESS_MEMORY,
    groups={"decode": "paper"},
)
