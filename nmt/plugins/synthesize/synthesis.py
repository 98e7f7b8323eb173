"""Translate the lines of a file once, then choose the pairs to train on."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import nmt.translation as steps
from nmt import commands
from nmt.config import ClusterOptions, JobConfig, NMTError, parts_folder
from nmt.files import cannot_write, only_process, remove_leftovers, sha256
from nmt.plugins.synthesize.command import SynthesisConfig
from nmt.plugins.synthesize.folder import TRANSLATIONS, check_ours, claim, start_again
from nmt.plugins.synthesize.selection import choose_and_write
from nmt.text import TARGET, parallel, read_lines, with_code

NAME = "synthesize"
"""The command in the identity of translations."""


def synthesize(config: SynthesisConfig) -> None:
    """Pair the lines of a file with their translations and write the chosen pairs.

    Complete translations are reused: changing a key that only affects the choice of pairs
    translates nothing again.
    """
    folder = Path(config.output)
    # A part is one of many jobs, and the job that joins the parts reads all lines.
    if config.reference is not None and config.job.part is None:
        check_parallel(config.input, config.reference)
    # Before the engine, because `engine=auto` depends on what the models need.
    models = steps.find_models(config.job.translator.run)
    job = replace(
        config.job,
        translator=steps.with_engine(config.job.translator, steps.warn, models),
        input=config.input,
        output=str(folder / TRANSLATIONS),
        overwrite=config.overwrite,
    )
    description = models.descriptions[0]
    # The pairs are in files with these names, so all lines have the same languages.
    direction = steps.require_languages(job.translator, models)
    sides = (direction.source or description.source, direction.target or description.target)
    if sides[0] == sides[1]:
        raise NMTError(f"both sides are {with_code(sides[0])}; name two, such as {steps.EXAMPLE}")
    if config.cluster_options.cluster is not None:
        steps.check_for_cluster(job, config.cluster_options)
    # Before the lock, which would create the folder or add a file to somebody else's.
    check_ours(folder)
    if job.part is not None:
        # Without the lock, because other processes write other parts.
        make_folder(folder)
        write_translations(job, models)
        return
    of_translations = steps.what_affects_output(job)
    # By content: the same lines may come from another path.
    identity = {"input": sha256(Path(config.input).resolve()), **of_translations}
    with only_process(folder, "output"):
        # Under the lock: no other process uses these files now.
        remove_leftovers(folder)
        if config.overwrite:
            start_again(folder, identity, sides)
        else:
            claim(folder, identity, steps.options_before(job))
        # The job gives the file this name only when it is complete.
        if not Path(job.output).exists():
            complete_translations(job, models, config.cluster_options, of_translations)
        with commands.talker().status("choosing pairs"):
            choose_and_write(config, models, sides)


def complete_translations(
    job: JobConfig,
    models: steps.Models,
    cluster: ClusterOptions,
    identity: dict[str, Any],
) -> None:
    """Write the file of translations: join its parts, or translate here or on a cluster."""
    if parts_folder(job.output).is_dir():
        gather_translations(job, identity)
    elif cluster.cluster is not None:
        steps.summarize(steps.run_on_cluster(SynthesisWork(job, cluster)))
    else:
        write_translations(job, models)


def check_parallel(*names: str) -> None:
    """Raise NMTError if two files have different numbers of lines, before translating for hours."""
    pairs = parallel(names, [read_lines(name) for name in names])
    deque(pairs, maxlen=0)  # reads all pairs and keeps none


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error


def gather_translations(config: JobConfig, identity: dict[str, Any]) -> None:
    """Join the translations of all parts; NMTError if this command would translate differently."""
    identity = {"command": NAME, **identity}
    for item in steps.computed_parts(config.output):
        steps.check_identity(item, identity, "than this command", steps.options_before(config))
    steps.gather(config.output, config.overwrite, config.input)


def write_translations(config: JobConfig, models: steps.Models) -> None:
    """Translate to a JSON Lines file; a later call continues an unfinished file."""
    work = SynthesisWork(config, ClusterOptions())
    work.use(models)
    with ExitStack() as stack:
        translator = steps.open_translator(config, stack)
        settled = replace(config, translator=translator.options)
        job = steps.open_job(settled, NAME, stack, block=config.buffer)
        counts = job.output.notes.counts
        # Blocks that have been read, but not written yet. A thread may append while this one pops.
        pending = deque[tuple[int, list[str]]]()

        def remembered() -> Iterator[list[str]]:
            for first, lines in job.blocks(config.buffer):
                pending.append((first, lines))
                yield lines

        for outcomes in translator.outcomes(remembered()):
            first, lines = pending.popleft()
            rows = range(first, first + len(lines))
            block = work.finish(translator.stages, lines, rows, outcomes)
            steps.report_block(block, rows, counts)
            job.write("".join(f"{record}\n" for record in block.results), rows[-1])
    steps.summarize(counts)


class SynthesisWork(steps.Work):
    """The work of `nmt synthesize`: lines of text become JSON records with all translations."""

    command = NAME
    done = "translated"
    are_lines = True
    models: steps.Models
    flags_of: Callable[[str, steps.Translation], list[str]]

    def load(self, notice: Callable[[str], None]) -> None:
        super().load(notice)
        assert self.translator
        assert self.translator.models
        self.use(self.translator.models)

    def use(self, models: steps.Models) -> None:
        """Prepare for the translations of these models."""
        self.models = models
        self.flags_of = steps.flagger(models, models.direction(self.config.translator))

    def compute(self, texts: list[str], rows: Sequence[int]) -> steps.FinishedBlock:
        assert self.translator
        outcomes = steps.outcomes_of(self.translator, texts, self.config.buffer)
        return self.finish(self.translator.stages, texts, rows, outcomes)

    def finish(
        self,
        stages: Sequence[steps.Stage],
        lines: Sequence[str],
        rows: Sequence[int],
        outcomes: Iterable[steps.Outcome],
    ) -> steps.FinishedBlock:
        """The records of lines with these numbers, given what the search has found."""
        translations, block = steps.translations_of(stages, lines, outcomes)
        # Without translations if a line was refused.
        for number, line, candidates in zip(rows, lines, translations, strict=False):
            # All translations are stored, so that another choice needs no new search.
            record = {
                "line": number,
                "source": line,
                "translations": self.records(line, candidates),
            }
            block.results.append(json.dumps(record, ensure_ascii=False))
        return block

    def records(self, line: str, translations: Sequence[steps.Translation]) -> list[dict[str, Any]]:
        """The records of a line's translations."""
        tokenizer = self.models.tokenizer
        texts = [tokenizer.clean(translation.text, TARGET) for translation in translations]
        records = list[dict[str, Any]]()
        for translation, ids in zip(translations, tokenizer.encode(texts, TARGET), strict=True):
            length = len(ids) + 1  # with the end symbol
            records.append(
                {
                    "text": translation.text,
                    "log_probability_per_token": translation.log_probability / length,
                    "flags": self.flags_of(line, translation),
                }
            )
        return records
