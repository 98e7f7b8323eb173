"""`nmt score` without references: by a model (`run=`), or by likely failures (`flags=true`)."""

import json
import math
import sys
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from nmt.commands.score import ScoreConfig
from nmt.config import (
    ClusterOptions,
    Compute,
    DecodeConfig,
    NMTError,
    SettingError,
    TranslatorOptions,
    build,
    choice,
    in_words,
    inline,
    number,
    setting,
    to_tree,
    with_defaults,
)
from nmt.flags import count_flags
from nmt.text import parallel, read_texts, scripts_of_language

BUFFER = 2000
"""Number of pairs held in memory, to be sorted by length and scored in batches."""
COLUMNS = [1, 2]
"""The default columns of source and target."""


def perplexity(log_probability: float, tokens: int) -> float:
    """The perplexity of a translation; `tokens` includes the end symbol."""
    largest = 700.0  # math.exp raises OverflowError above 709
    return math.exp(min(-log_probability / tokens, largest))


def formatted(
    number: int,
    log_probability: float,
    details: dict[str, list[Any]],
    format: str,
) -> str:
    """The row of output for a pair, whose number counts from 1.

    `details` has lists about the tokens of the translation, which only JSON contains. `format` is
    text, tsv or json.
    """
    length = len(details["token_log_probabilities"])
    per_token = perplexity(log_probability, length)
    if format == "text":
        return f"{log_probability:10.4f}  perplexity {per_token:.4f}  {length} tokens"
    if format == "tsv":
        return f"{number}\t{log_probability:.4f}\t{per_token:.4f}\t{length}"
    record = {
        "line": number,
        "log_probability": log_probability,
        "perplexity": per_token,
        "length": length,
        **details,
    }
    return json.dumps(record, ensure_ascii=False)


@dataclass
class Totals:
    """The totals of the scored pairs."""

    pairs: int = 0
    tokens: int = 0
    log_probability: float = 0.0

    def add(self, log_probability: float, tokens: int) -> None:
        self.pairs += 1
        self.tokens += tokens
        self.log_probability += log_probability

    def __str__(self) -> str:
        # Of all tokens, not the mean of the pairs' perplexities, so that long pairs count as such.
        average = perplexity(self.log_probability, max(self.tokens, 1))
        figures = f"log probability {self.log_probability:.4f}, perplexity {average:.4f}"
        return f"pairs: {self.pairs:,}, tokens: {self.tokens:,}, {figures}"


@dataclass
class JudgeConfig:
    """Options for scoring without references."""

    flags: bool = False
    """Count likely failures, such as repetitions and lost numbers."""
    run: list[str] = choice([])
    """Run or list of runs: print the log P of each hypothesis given its source, for example to
    filter a corpus."""
    input: str | None = None
    """run: file with both sides of each pair, instead of source and hypothesis; .tsv, .jsonl or,
    on a cluster, .parquet."""
    output: str | None = None
    """run: file for the pairs with their log P per token; after a crash, the same command resumes;
    -: standard output; null: only print the scores of source and hypothesis."""
    minimum: float | None = number(
        None,
        -10_000,
        0,
        advice="it filters pairs by log P per token, so omit it unless you pass output=FILE",
    )
    """output: lowest log P per token, such as -4.4, of pairs to keep as they are; null: keep all
    pairs, each with its log P per token as another column or field."""
    columns: list[int] = setting(COLUMNS)
    """input: columns of source and target in .tsv files; the first one is 1."""
    fields: list[str] = setting([])
    """input: their fields in .jsonl, or columns in .parquet files; if empty, the languages of the
    model, such as en and de."""
    score_name: str = "log_probability_per_token"
    """output: name of the field or column that pairs get without minimum."""
    overwrite: bool = False
    """output: replace the file if it exists; start again instead of resuming."""
    part: str | None = None
    """output: score only part I of N of the input file, as in 3/16; `nmt gather` joins the
    parts."""
    cluster_options: ClusterOptions = inline(ClusterOptions())
    target: str | None = None
    """run: target language of a multilingual model or, for a model such as NLLB, both languages, as
    in en2de; a source line may begin with its own tag."""
    device: str = "auto"
    """run: auto, cpu, cuda, cuda:1, mps."""
    threads: int | None = number(None, 1, 4096)
    """run: number of CPU cores to use; null: all."""
    batch_tokens: int | None = number(None, 1, 10**9)
    """run: tokens per batch, counted on the longer side, including padding; null: 2,000 on a CPU,
    16,000 on a GPU."""

    def takes_over(self, config: ScoreConfig) -> bool:
        """Write the scores by the models in `run` and return True; without `run`, return False."""
        if not self.run:
            self.refuse_without_run()
            return False
        name = f"run={','.join(self.run)}"
        if self.flags:
            raise NMTError(f"{name}: omit it with flags=true, which needs no model")
        if config.reference is not None or config.examples != 0:
            raise NMTError(f"{name}: omit reference and examples")
        if self.output is not None:
            self.write_output(config, self.output)
            return True
        if any(value is not None for value in self.needs_output().values()):
            raise NMTError(
                f"{name}: input, minimum, part, columns, fields and cluster need a file for the "
                "pairs; pass output=FILE"
            )
        if not config.source:
            raise NMTError("source: required with run; pass source=FILE")
        self.write_scores((config.source, config.hypothesis), config.format)
        return True

    def refuse_without_run(self) -> None:
        """Raise NMTError if an option needs a model."""
        options = {"output": self.output, **self.needs_output()}
        for key, value in options.items():
            if value is not None:
                raise NMTError(f"{key}={value}: needs a model that scores the pairs; pass run=RUN")

    def needs_output(self) -> dict[str, Any]:
        """The options that a file of pairs needs; None for those that have not been given."""
        return {
            "input": self.input,
            "minimum": self.minimum,
            "part": self.part,
            "cluster": self.cluster_options.cluster,
            "columns": None if self.columns == COLUMNS else in_words(self.columns),
            "fields": in_words(self.fields) if self.fields else None,
        }

    def write_output(self, config: ScoreConfig, output: str) -> None:
        """Write the pairs with their scores, or those that pass the filter."""
        from nmt.plugins.judge.filtering import BLOCK, ScoreJob, write_scored

        if config.format != "text":
            problem = f"format={config.format}: omit it, because output has the format of the input"
            raise NMTError(problem)
        if len(self.columns) != 2 or min(self.columns) < 1:
            raise NMTError(f"columns={self.columns}: must be two numbers, such as [1,2]")
        if len(self.fields) not in (0, 2):
            raise NMTError(f"fields={self.fields}: must be two names, such as [en,de]")
        if not self.score_name:
            raise NMTError("score_name: must be the name of a new field")
        source, second = self.files(config)
        for sides in (self.columns, self.fields, (source, second)):
            if len(set(sides)) < len(sides):
                raise NMTError(f"both sides of the pairs are {sides[0]}; name two")
        self.check_places(source, second)
        values = {
            **to_tree(self.options),
            "buffer": BLOCK,
            "input": source,
            "output": output,
            "overwrite": self.overwrite,
            "part": self.part,
            "second": second,
            "fields": self.fields,
            "columns": self.columns,
            "minimum": self.minimum,
            "score_name": self.score_name,
        }
        # With the options that plugins add to translators, which belong to a job's identity.
        write_scored(build(ScoreJob, with_defaults(ScoreJob, values)), self.cluster_options)

    def check_places(self, source: str, second: str | None) -> None:
        """Raise SettingError if the format of the input has no use for columns or fields."""
        from nmt.plugins.judge.rows import TSV, format_of

        is_table = second is None and format_of(source) == TSV
        if self.columns != COLUMNS and not is_table:
            problem = "needs a .tsv file as input"
            raise SettingError(problem, key="columns", value=in_words(self.columns))
        if self.fields and (second is not None or is_table):
            problem = "needs a .jsonl or .parquet file as input"
            raise SettingError(problem, key="fields", value=in_words(self.fields))

    def files(self, config: ScoreConfig) -> tuple[str, str | None]:
        """The input and, if it has only the sources, the file with the translations."""
        if self.input is not None:
            if config.source is not None or config.hypothesis != "-":
                problem = f"input={self.input}: has both sides; omit source and hypothesis"
                raise NMTError(problem)
            return self.input, None
        if config.source is None or config.hypothesis == "-":
            raise NMTError(
                "output: needs the pairs to score; pass input=FILE, or source=FILE hypothesis=FILE"
            )
        return config.source, config.hypothesis

    @property
    def options(self) -> TranslatorOptions:
        """The options of the translator that scores."""
        # nmt computes the probability of a given translation only with this engine.
        compute = Compute("torch", threads=self.threads, device=self.device)
        decode = DecodeConfig(batch_tokens=self.batch_tokens)
        return TranslatorOptions(self.run, compute, target=self.target, decode=decode)

    def write_scores(self, names: tuple[str, str], format: str) -> None:
        """Write a row for each pair of lines in two files to standard output, in this format."""
        from rich.console import Console
        from rich.status import Status

        from nmt.translation import RefusedLine, load_translator, score_pairs, warn

        translator = load_translator(self.options, warn)
        lines = parallel(names, [read_texts(name, warn) for name in names])
        # Reads the first pair before the status line appears, to report a missing file.
        pairs = chain(list(islice(lines, 1)), lines)
        totals = Totals()
        # In a terminal, the rows themselves show the progress, and a status line would mix with
        # them.
        console = Console(stderr=True, quiet=sys.stdout.isatty())
        with Status("scoring", console=console) as status:
            while block := list(islice(pairs, BUFFER)):
                try:
                    scores = score_pairs(translator, block)
                except RefusedLine as error:
                    raise RefusedLine(totals.pairs + error.index, error.problem) from error
                for score in scores:
                    totals.add(score.log_probability, len(score.token_log_probabilities))
                    row = formatted(totals.pairs, score.log_probability, vars(score), format)
                    # Bytes, so that output is UTF-8 in any locale, with the same line ends on any
                    # system.
                    sys.stdout.buffer.write(f"{row}\n".encode())
                # After each block, so that the next program in a pipe can begin.
                sys.stdout.buffer.flush()
                status.update(f"scored {totals.pairs:,} pairs")
        warn(str(totals))

    def findings(
        self,
        config: ScoreConfig,
        language: str,
        hypotheses: list[str],
        references: list[str],
        sources: list[str],
    ) -> dict[str, list[Any]]:
        """The counts of flags, if they are asked for, by the name under which JSON has them."""
        if not self.flags:
            return {}
        if config.source is None:
            raise NMTError("source: required with flags=true; pass source=FILE")
        scripts = scripts_of_language(language)
        if scripts is None:
            problem = f"language={language or 'null'}: unknown script"
            print(f"nmt: {problem}; wrong_script is not checked", file=sys.stderr)
        counts = count_flags(sources, hypotheses, references, scripts, language or "")
        return {"flags": counts}
