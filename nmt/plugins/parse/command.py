"""`nmt parse`: parse sentences into constituency trees (section 6.3)."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from nmt.commands.translate import LESS_MEMORY, input_and_run
from nmt.config import Command, JobConfig, TranslatorOptions, inline, require, undecided


@dataclass
class ParseConfig(JobConfig):
    """Options of `nmt parse`."""

    translator: TranslatorOptions = inline(TranslatorOptions(split="never"), "run", "compute", "decode")
    input: str = undecided("-")
    """File of sentences, tokenized as in the Penn Treebank, with spaces between tokens; -: standard input."""
    output: str = undecided("-")
    """Output file with one tree per line, created once it is complete; -: standard output."""


def run(config: ParseConfig) -> None:
    from nmt.files import find_model_directory, is_parser, read_description
    from nmt.plugins.parse.treebank import choose_tree, model_sentence
    from nmt.translation import open_job, open_translator, warn

    for name in config.translator.run:
        about = read_description(find_model_directory(name))
        problem = f"run={name}: translates from {about.source} to {about.target}"
        require(is_parser(about), f"{problem}; use `nmt translate`, or name a model trained with data=treebank")
    with ExitStack() as stack:
        translator = open_translator(config, stack)
        job = open_job(replace(config, translator=translator.options), "parse", stack)
        counts = job.output.notes.counts
        for number, line, translations in job.run(
            lambda lines: translator.stream(map(model_sentence, lines), config.buffer)
        ):
            tree, repairs = choose_tree(translations, line)
            job.output.write(tree.bracketed() + "\n", number)
            counts["repaired"] += repairs > 0
    if repaired := counts["repaired"]:
        warn(f"repaired {repaired:,} of {job.output.notes.lines:,} trees that had missing or extra brackets or words")


COMMAND = Command(
    *("parse", ParseConfig, run, partial(input_and_run, "parse")),
    usage="[FILE or 'A SENTENCE'] [RUN]...",
    examples=("'The law will never be perfect .' runs/parser", "runs/parser < sentences > trees"),
    memory=LESS_MEMORY,
    groups={"decode": "parse"},
)
