"""`nmt parse`: parse sentences into constituency trees (section 6.3)."""

from contextlib import ExitStack
from dataclasses import dataclass, replace

from nmt import files, translation
from nmt.commands.translate import LESS_MEMORY, input_and_run
from nmt.config import Command, JobConfig, TranslatorOptions, inline, require, setting


@dataclass
class ParseConfig(JobConfig):
    """Options of `nmt parse`."""

    translator: TranslatorOptions = inline(
        TranslatorOptions(split="never"), "run", "compute", "decode"
    )
    input: str = setting("-", affects_output=False)
    """File of sentences, tokenized as in the Penn Treebank, with spaces between tokens; -: standard input."""
    output: str = setting("-", affects_output=False)
    """Output file with one tree per line, created once it is complete; -: standard output."""


def run(config: ParseConfig) -> None:
    from nmt.plugins.parse.trees import choose_tree, model_sentence

    for name in config.translator.run:
        about = files.read_description(files.find_model_directory(name))
        problem = f"run={name}: translates from {about.source} to {about.target}"
        require(
            files.is_parser(about),
            f"{problem}; use `nmt translate`, or name a model trained with data=treebank",
        )
    with ExitStack() as stack:
        translator = translation.open_translator(config, stack)
        job = translation.open_job(replace(config, translator=translator.options), "parse", stack)
        counts = job.output.notes.counts
        for number, line, translations in job.run(
            lambda lines: translator.stream(map(model_sentence, lines), config.buffer)
        ):
            tree, repairs = choose_tree(translations, line)
            job.output.write(tree.bracketed() + "\n", number)
            counts["repaired"] += repairs > 0
    if repaired := counts["repaired"]:
        trees = f"{repaired:,} of {job.output.notes.lines:,} trees"
        translation.warn(f"repaired {trees} that had missing or extra brackets or words")


COMMAND = Command(
    *("parse", ParseConfig, run, lambda words: input_and_run("parse", words)),
    usage="[FILE or 'A SENTENCE'] [RUN]...",
    examples=("'The law will never be perfect .' runs/parser", "runs/parser < sentences > trees"),
    memory=LESS_MEMORY,
    groups={"decode": "parse"},
)
