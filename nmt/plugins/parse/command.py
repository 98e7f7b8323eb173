"""`nmt parse`: parse sentences into constituency trees (section 6.3)."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from nmt import files, translation
from nmt.commands.translate import LESS_MEMORY, input_and_run
from nmt.config import Command, JobConfig, NMTError, TranslatorOptions, inline, setting


@dataclass
class ParseConfig(JobConfig):
    """Options of `nmt parse`."""

    translator: TranslatorOptions = inline(
        # A line is a sentence: splitting it would make two trees.
        TranslatorOptions(split="never"),
        "run",
        "compute",
        "decode",
    )
    input: str = setting("-", affects_output=False)
    """File of sentences, tokenized as in the Penn Treebank, with spaces between tokens; -: standard
    input."""
    output: str = setting("-", affects_output=False)
    """Output file with one tree per line, created once it is complete; -: standard output."""


def run(config: ParseConfig) -> None:
    with translation.naming_part(config.part):
        run_job(config)


def run_job(config: ParseConfig) -> None:
    """See `run`."""
    # Imported here, so that help and completion do not load these modules.
    from nmt.plugins.parse.linear import choose_tree
    from nmt.plugins.parse.trees import model_sentence

    for name in config.translator.run:
        check_parser(name)
    with ExitStack() as stack:
        translator = translation.open_translator(config, stack)
        job_config = replace(config, translator=translator.options)
        job = translation.open_job(job_config, "parse", stack)
        counts = job.output.notes.counts

        def stream(lines: Iterable[str]) -> Iterator[list[translation.Translation]]:
            # The job keeps the line as it was typed, whose words the tree gets.
            return translator.stream(map(model_sentence, lines), config.buffer)

        for number, line, translations in job.run(stream):
            tree, repairs = choose_tree(translations, line)
            job.write(tree.bracketed() + "\n", number)
            counts["repaired"] += 1 if repairs else 0
    repaired = counts["repaired"]
    if repaired:
        trees = f"{repaired:,} of {job.output.notes.lines:,} trees"
        translation.warn(f"repaired {trees} that had missing or extra brackets or words")


def check_parser(name: str) -> None:
    """Raise NMTError if a run was not trained on a treebank."""
    description = files.read_description(files.find_model_directory(name))
    if not files.is_parser(description):
        languages = files.direction_in_words(description)
        advice = "use `nmt translate`, or name a model trained with data=treebank"
        raise NMTError(f"run={name}: translates {languages}; {advice}")


def command_words(words: list[str]) -> dict[str, Any]:
    """The configuration for the words of `nmt parse [FILE or 'A SENTENCE'] [RUN]...`."""
    return input_and_run("parse", words)


COMMAND = Command(
    "parse",
    ParseConfig,
    run,
    command_words,
    usage="[FILE or 'A SENTENCE'] [RUN]...",
    examples=("'The law will never be perfect .' runs/parser", "runs/parser < sentences > trees"),
    memory=LESS_MEMORY,
    # Section 6.3: beam 21, alpha 0.3, and up to 300 tokens more than the sentence has.
    groups={"decode": "parse"},
)
