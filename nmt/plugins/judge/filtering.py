"""Score the pairs of a corpus with a model, and keep all of them or only the likely ones.

log P per token is computed in blocks of BLOCK pairs, counted from the beginning of the input, so
that a job, its parts and a cluster compute the same digits.
"""

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from nmt.config import (
    PATTERN,
    ClusterOptions,
    JobConfig,
    NMTError,
    TranslatorOptions,
    check_is_local,
    inline,
    number,
    parts_folder,
    setting,
)
from nmt.plugins.judge.rows import PARQUET, TSV, JsonRows, ParallelLines, Rows, TableRows, format_of
from nmt.text import Pair, not_parallel, open_bytes, parallel, raw_lines
from nmt.translation import (
    KEPT,
    PAIRS,
    FinishedBlock,
    Job,
    RefusedLine,
    RowWork,
    bin_of,
    check_for_cluster,
    check_not_input,
    check_part,
    count_lines,
    find_models,
    naming_part,
    notes_in,
    open_job,
    open_output,
    options_before,
    progress_of,
    report_block,
    report_scores,
    run_on_cluster,
    score_short_pairs,
    summarize,
    undecoded,
    warn,
    what_affects_output,
)

NAME = "score"
BLOCK = 2000
"""The number of pairs that are scored together."""
DIGITS = 6
"""Decimals of log P per token. Other batches change about the seventh digit."""
MOST_CHARACTERS = 5000
"""Longer sides are not scored: a corpus from the web may have a book in one line."""
TOO_LONG = f"too long to score (over {MOST_CHARACTERS:,} characters, or the model's positions)"

EMPTY_SIDE = "not scored, because a side is empty"


SCORING = (
    "run",
    "compute",
    "source",
    "target",
    "source_prefix",
    "target_prefix",
    "split",
    "decode",
    "protection",
)
"""The options of translators; `minimum` is a key of scoring itself."""


@dataclass
class ScoreJob(JobConfig):
    """A job that scores the pairs of a corpus."""

    translator: TranslatorOptions = inline(TranslatorOptions(), *SCORING)
    # Unlike for translations, other blocks have other scores, in the last digits.
    buffer: int = number(BLOCK, 1, 10**9)
    """Number of pairs that are scored together."""
    second: str | None = setting(None, affects_output=False)
    """File that is parallel to the input; null: each line of the input has both sides."""
    fields: list[str] = setting([])
    """Fields of JSONL, or columns of Parquet."""
    columns: list[int] = setting([1, 2])
    """Columns of TSV."""
    minimum: float | None = None
    """The lowest log P per token to keep."""
    score_name: str = "log_probability_per_token"
    """Field for log P per token."""

    def check_paths(self) -> None:
        """Nothing: on a cluster, they may be folders, patterns and addresses; see `write_rows`."""


class ScoreWork(RowWork):
    """The work of `nmt score` with an output."""

    command = NAME
    done = "scored"
    config: ScoreJob

    def __init__(self, config: ScoreJob, cluster: ClusterOptions) -> None:
        super().__init__(config, cluster)
        self.fields = tuple(config.fields)
        self.second = config.second
        self.adds = config.score_name if config.minimum is None else ""
        self.rows = rows_of(config, self.adds)

    def read_row(self, row: Any) -> Pair:
        return self.rows.read(row)

    def write_row(self, row: Any, result: float) -> bytes:
        value = None if math.isnan(result) else result
        if self.adds:
            return self.rows.write_with(row, self.adds, value)
        return self.rows.write(row, value)

    def compute(self, texts: list[Pair], rows: Sequence[int]) -> FinishedBlock:
        block = FinishedBlock()
        kept = 0
        for start in range(0, len(texts), self.config.buffer):
            part = texts[start : start + self.config.buffer]
            try:
                values = self.values(part)
            except RefusedLine as error:
                return FinishedBlock(refused=(start + error.index, error.problem))
            for pair, value in zip(part, values, strict=True):
                result = self.result(value)
                block.results.append(result)
                kept += result is not None
                if math.isnan(value):
                    name = EMPTY_SIDE if is_half_empty(pair) else TOO_LONG
                    block.notes.setdefault(name, (len(block.results) - 1, ""))
                else:
                    name = bin_of(value)
                block.counts[name] = block.counts.get(name, 0) + 1
        block.counts |= {PAIRS: len(texts), KEPT: kept}
        return block

    def values(self, pairs: list[Pair]) -> list[float]:
        """log P per token of each pair; NaN for pairs that are too long, or have an empty side."""
        assert self.translator
        short = []
        for index, pair in enumerate(pairs):
            # An empty line is likely to have an empty translation, which says nothing.
            if max(map(len, pair)) <= MOST_CHARACTERS and not is_half_empty(pair):
                short.append(index)
        try:
            scores = score_short_pairs(self.translator, [pairs[index] for index in short])
        except RefusedLine as error:
            raise RefusedLine(short[error.index], error.problem) from error
        values = [math.nan] * len(pairs)
        for index, score in zip(short, scores, strict=True):
            if score is None:
                continue
            value = score.log_probability / len(score.token_log_probabilities)
            if not math.isfinite(value):
                raise RefusedLine(index, "no log probability: the model has non-finite weights")
            # Adding 0.0 turns -0.0 into 0.0.
            values[index] = round(value, DIGITS) + 0.0
        return values

    def result(self, value: float) -> float | None:
        """The value of a pair that is kept; None if it is left out."""
        minimum = self.config.minimum
        # False for NaN, so that pairs without a score are left out.
        return value if minimum is None or value >= minimum else None


def is_half_empty(pair: Pair) -> bool:
    return not all(side.strip() for side in pair)


def rows_of(config: ScoreJob, adds: str) -> Rows:
    """How the rows of a job's input are read and written."""
    if config.second is not None:
        return ParallelLines()
    if format_of(config.input) == TSV:
        return TableRows(config.columns)
    return JsonRows(config.fields, adds)


def write_scored(config: ScoreJob, cluster: ClusterOptions) -> None:
    """Write the pairs of a corpus with their scores, or those that pass a filter."""
    with naming_part(config.part):
        write_rows(config, cluster)


def write_rows(config: ScoreJob, cluster: ClusterOptions) -> None:
    """See `write_scored`."""
    if cluster.cluster is None:
        check_is_local(config.input)
        JobConfig.check_paths(config)
    check_formats(config, cluster.cluster is not None)
    names_fields = config.second is None and format_of(config.input) != TSV
    if names_fields and not config.fields:
        config = replace(config, fields=default_fields(config.translator))
    work = ScoreWork(config, cluster)
    if cluster.cluster is not None:
        check_for_cluster(config, cluster)
        counts = run_on_cluster(work)
    else:
        counts = score_here(work)
    summarize(notes_in(counts))
    report_scores(counts, config.minimum, place_of(config))


def place_of(config: ScoreJob) -> str:
    """Where the output of a job is, in words."""
    if config.output == "-":
        return "standard output"
    part = config.part_of_input
    return config.output if part is None else str(part.output_in(parts_folder(config.output)))


def check_formats(config: ScoreJob, on_cluster: bool) -> None:
    """Raise NMTError for files that this job cannot read or write."""
    if config.second is not None:
        if config.output != "-" and format_of(config.output) != TSV:
            raise NMTError(
                f"output={config.output}: must end in .tsv (or .tsv.gz and the like), because two "
                "files become the columns of a table"
            )
        if config.part is not None:
            raise NMTError(
                f"part={config.part}: needs one file with both sides, because parts are cut by "
                "bytes; join them with paste SOURCE TARGET > FILE.tsv, and pass input=FILE.tsv"
            )
        return
    format = format_of(config.input)
    if not format:
        raise NMTError(
            f"input={config.input}: must be a .tsv, .jsonl or, with cluster=ray, .parquet file; "
            "for two files, pass source=FILE hypothesis=FILE instead of input"
        )
    if format == PARQUET and not on_cluster:
        raise NMTError(f"input={config.input}: pass cluster=ray, which reads Parquet")
    is_pattern = on_cluster and bool(PATTERN.intersection(config.input))
    if config.output != "-" and not is_pattern and format_of(config.output) != format:
        raise NMTError(
            f"output={config.output}: must have a suffix of the input's format, {format}"
        )


def score_here(work: ScoreWork) -> dict[str, int]:
    """Score the pairs in this process, unless an earlier command has scored them."""
    config = work.config
    check_inputs(config)
    work.load(warn)
    with ExitStack() as stack:
        if config.second is None:
            job = open_job(config, NAME, stack, undecoded, config.buffer)
        else:
            job = open_parallel(config, config.second, stack)
        counts = job.output.notes.counts
        for first, rows in job.blocks(config.buffer):
            texts = []
            for number, row in enumerate(rows, first):
                try:
                    texts.append(work.read_row(row))
                except NMTError as error:
                    raise error.within(f"{config.input}, line {number}") from error
            numbers = range(first, first + len(rows))
            block = work.compute(texts, numbers)
            report_block(block, numbers, counts, f"{config.input}, ")
            lines = []
            for row, result in zip(rows, block.results, strict=True):
                if result is not None:
                    lines.append(work.write_row(row, result))
            job.write(b"".join(lines), numbers[-1])
    return counts


def check_inputs(config: ScoreJob) -> None:
    """Raise NMTError before the model is loaded if an input is missing or cannot be cut."""
    for name in (config.input, config.second):
        if name is not None and name != "-":
            open_bytes(name).close()
    check_part(config)


def open_parallel(config: ScoreJob, second: str, stack: ExitStack) -> Job:
    """Open two parallel files, and an output for their pairs."""
    names = (config.input, second)
    digests = []
    counts = []
    for name in names:
        lines, digest = count_lines(name)
        counts.append(lines)
        digests.append(digest)
    if counts[0] != counts[1]:
        raise not_parallel(names, counts)
    identity = {"command": NAME, "input": digests, **what_affects_output(config)}
    opening = open_output(config.output, identity, config.overwrite, options_before(config))
    output = stack.enter_context(opening)
    sides = []
    for name in names:
        if config.output != "-":
            check_not_input(Path(config.output), name)
        source = stack.enter_context(open_bytes(name))
        sides.append(raw_lines(source, name))
    pairs = parallel(names, sides)
    done = output.notes.lines
    for _ in islice(pairs, done):
        pass
    if done:
        warn(f"resuming after {done:,} of {counts[0]:,} lines")
    show = progress_of(config, NAME, done, counts[0], stack)
    return Job(pairs, output, show)


def default_fields(options: TranslatorOptions) -> list[str]:
    """The languages of a model, by which records name both sides."""
    models = find_models(options.run)
    direction = models.direction(options)
    description = models.descriptions[0]
    source = direction.source or description.source
    target = direction.target or description.target
    if not source or not target:
        raise NMTError("fields: the model does not name its languages; pass fields=[SOURCE,TARGET]")
    return [source, target]
