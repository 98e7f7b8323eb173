"""`nmt synthesise`: pairs of lines for training, of which a model writes one side."""

import shlex
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.commands.console import talker, tell_latest
from nmt.commands.translate import LESS_MEMORY, input_and_run
from nmt.config import (
    MISSING,
    TAG,
    Command,
    TranslateConfig,
    as_list,
    choice,
    groups,
    inline,
    number,
    require,
    set_text,
)
from nmt.errors import NMTError

if TYPE_CHECKING:
    from nmt.plugins.synthesize.synthesis import Summary

OFFERED = (
    "run engine precision threads devices device buffer decode target source_prefix target_prefix glossary terms "
    "split protect ray"
)
"""Keys of `nmt translate` that decide translations."""


@dataclass
class SynthesiseConfig:
    """The tree of `nmt synthesise`."""

    translation: TranslateConfig = inline(TranslateConfig(format="tsv"), *OFFERED.split())
    input: str = MISSING
    """File of lines, plain or compressed, a folder of such files, or a pattern of their names in quotes."""
    output: str = MISSING
    """Folder for the pairs and what they are made from; after a kill the same command goes on."""
    kind: str = choice("back_translation", "back_translation", "distillation")
    """back_translation (a translation is the source of its line, by a model of the other direction, Sennrich 2016) or
    distillation (it is the target, for a student to learn from, Kim and Rush 2016)."""
    tag: str | None = None
    """A symbol before each back-translation when it is prepared, BT for <BT> (Caswell 2019), in the printed command."""
    reference: str | None = None
    """File of references, a line for each of input: of decode.n_best translations, the one most like it is taken."""
    metric: str = choice("chrf", "chrf", "bleu")
    """How like a reference is: chrf or bleu, of the sentence."""
    drop: float = number(0.0, 0.0, 0.99)
    """Share of pairs to leave out, those with the lowest log P per token."""
    reverse: str | None = None
    """A run of the other direction: log P is then that of the line, given its translation."""
    flagged: str = choice("drop", "drop", "keep")
    """Pairs with flags of likely failures, as those of `nmt score flags=true`: drop or keep."""
    lines: int = number(2000, 1, 10**9)
    """Lines of each part, which is the most that a worker loses when a run is killed."""

    def __post_init__(self) -> None:
        if self.tag is not None:
            self.tag = f"<{self.tag.strip('<>')}>"
            require(bool(TAG.fullmatch(self.tag)), f"tag={self.tag!r:.60}: a word such as BT, please")
        require(self.kind == "back_translation" or self.tag is None, "tag: of back-translations; leave it out")
        n_best = self.translation.translator.decode.n_best
        require(
            (n_best > 1) == (self.reference is not None),
            f"reference={self.reference} with decode.n_best={n_best}: the best of several needs both, reference=FILE "
            "and decode.n_best=8 decode.beam_size=8, or so",
        )


def next_commands(config: SynthesiseConfig, summary: "Summary") -> list[str]:
    """The commands that train on the pairs; back-translations together with the text of the teacher's training."""
    from nmt.data import corpus_of
    from nmt.files import tokenizer_settings, within
    from nmt.translation import find_models

    [folder, *_], [teacher, *_], _ = find_models(config.translation.translator.run)
    trained, name, train = within(teacher.training, "config"), Path(config.output).name, f"{config.output}/train"
    words = ["data=files", f"data.name={name}", f"data.source={summary.source}", f"data.target={summary.target}"]
    with suppress(NMTError):
        corpus = corpus_of(folder, teacher.training)
        held_out = [split for split in ("valid", "test") if corpus.manifest.counts.get(split, {}).get("kept")]
        words += [set_text(f"data.{split}", str(corpus.folder / split)) for split in held_out]
    if config.kind == "distillation":
        words += [set_text("data.train", train), set_text("init", config.translation.translator.run[0])]
    else:
        of_files = within(trained, "data", "kind") == "files" and not within(trained, "data", "sources")
        original = as_list(within(trained, "data", "train")) if of_files else ["corpus/train"]
        synthetic = {"name": "synthetic", "train": train, **({"tag": config.tag} if config.tag else {})}
        sources: list[dict[str, Any]] = [{"train": original[0] if len(original) == 1 else original}, synthetic]
        words.append(f"data.sources=[{','.join(map(mapping, sources))}]")
        words += [f"tokenizer.{key}={value}" for key, value in tokenizer_settings(teacher).items() if trained]
    preset = "student" if config.kind == "distillation" else within(teacher.model, "name")
    model = f" model={preset}" if preset in groups()["model"] else ""
    return [shlex.join(["nmt", "preprocess", *words]), f"nmt train {shlex.quote(f'data/{name}')}{model}"]


def mapping(entry: dict[str, Any]) -> str:
    """A mapping in Hydra's grammar."""
    return "{" + ",".join(set_text(key, value).replace("=", ":", 1) for key, value in entry.items()) + "}"


def run(config: SynthesiseConfig) -> None:
    """Translate the lines, and write the pairs that are good enough."""
    from nmt.plugins.synthesize.synthesis import synthesise

    tell_latest(config.translation.translator.run)
    summary = synthesise(config, talker())
    reasons = {
        "empty": "empty",
        "flagged": f"flagged ({', '.join(f'{flag} {count:,}' for flag, count in summary.flags.items())})",
        "unlikely": f"least likely by {'reverse' if config.reverse else 'the teacher'}",
    }
    dropped = ", ".join(f"{count:,} {reasons[reason]}" for reason, count in summary.dropped.items() if count)
    print(f"{summary.kept:,} of {summary.lines:,} pairs kept" + (f" (dropped: {dropped})" if dropped else ""))
    print(f"{config.output}/train.{summary.source} and train.{summary.target}")
    print("next:", *next_commands(config, summary), sep="\n")


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
    hides="ray.lines",
    memory=LESS_MEMORY,
    groups={"decode": "paper"},
)
