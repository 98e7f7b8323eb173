"""`nmt score`: score translations with metrics."""

import json
import re
import sys
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from nmt.commands import addresses_among, paths_and_texts
from nmt.config import (
    BLEU_TOKENIZERS,
    Command,
    MetricOptions,
    NMTError,
    choice,
    inline,
    metric_names,
    number,
    plugin_options,
)

if TYPE_CHECKING:
    from nmt.evaluation import Score

FORMS = (
    "`nmt score HYPOTHESIS REFERENCE` or, with a model, "
    "`nmt score RUN source=FILE hypothesis=FILE` or `nmt score RUN PAIRS output=FILE`"
)
SCORED_LINE = re.compile(r"\d+\t-?\d+(\.\d+)?(e-?\d+)?\t")
"""The beginning of a row of `nmt translate format=tsv`: number and score."""


@dataclass
class ScoreConfig:
    """Options of `nmt score`.

    A plugin's options have two methods: `takes_over(config)` returns True if the plugin has done
    the command's work, and `findings(config, language, hypotheses, references, sources)` returns
    named lists of rows to print.
    """

    hypothesis: str = "-"
    """File of translations; -: standard input."""
    reference: str | None = None
    """File of reference translations."""
    source: str | None = None
    """File of source lines, printed with the examples; some metrics need them."""
    metrics: list[str] = choice(["bleu", "chrf", "ter"], names_of=metric_names)
    """bleu, chrf, chrf++, ter (sacreBLEU), or a metric that a plugin adds; `nmt plugins` lists
    them."""
    metric_options: MetricOptions = inline(MetricOptions())
    language: str | None = None
    """Target language, which selects the BLEU tokenizer; null: the suffix of the reference or
    hypothesis file."""
    lowercase: bool = False
    """Ignore case in every metric."""
    tokenize: str | None = choice(None, *BLEU_TOKENIZERS)
    """BLEU tokenizer, as for `sacrebleu --tokenize`; null: the recommended one for the target
    language."""
    examples: int = number(0, 0, 1_000_000)
    """Number of examples (source, reference and translation) to print, spread evenly over the
    file."""
    format: str = choice("text", "text", "json", "tsv", "jsonl")
    """text or json; with `run`: text, tsv (line number, log probability, perplexity, tokens) or
    jsonl."""
    plugins: dict[str, Any] = plugin_options("score")

    def __post_init__(self) -> None:
        # Examples are for reading; json and the like hold scores.
        if self.examples and self.format != "text":
            raise NMTError(f"examples={self.examples}: requires format=text")


@dataclass(frozen=True)
class Texts:
    """The files of a command line, as lines."""

    hypotheses: list[str]
    references: list[str]
    sources: list[str]


@dataclass
class Suspicions:
    """What suggests that hypotheses are not plain translations."""

    lines: int = 0
    rows: int = 0
    """Lines that look like rows of `nmt translate format=tsv`."""
    marked: int = 0
    """Lines with the mark of improbable translations."""
    empty: int = 0
    """Blank lines where `expected` is not blank."""

    def add(self, hypothesis: str, expected: str) -> None:
        """Count a line; `expected` is its reference or its source."""
        from nmt.translation import MARK

        self.lines += 1
        self.rows += bool(SCORED_LINE.match(hypothesis))
        self.marked += hypothesis.startswith(MARK)
        self.empty += bool(expected.strip() and not hypothesis.strip())

    def report(self) -> None:
        """Print a notice for each suspicion."""
        from nmt.translation import MARK, warn

        if self.lines and self.rows == self.lines:
            warn(
                "notice: the hypotheses are rows of `nmt translate format=tsv`, which are scored "
                "with their numbers; pass the translations alone, such as `cut -f3 FILE`"
            )
        if self.marked:
            begin = (
                "1 hypothesis begins" if self.marked == 1 else f"{self.marked:,} hypotheses begin"
            )
            warn(
                f"notice: {begin} with the mark `{MARK.strip()}` of minimum=, which is scored, "
                "too; translate without minimum"
            )
        if self.empty:
            are = "is" if self.empty == 1 else "are"
            warn(f"notice: {self.empty:,} of {self.lines:,} hypotheses {are} empty")


def example_text(texts: Texts, count: int) -> str:
    """Pairs of references and translations, with their sources if there are any."""
    pairs = len(texts.references)
    count = min(count, pairs)
    sides = {
        "source": texts.sources,
        "reference": texts.references,
        "translation": texts.hypotheses,
    }
    lines = []
    for example in range(count):
        index = example * pairs // count
        for side, of_side in sides.items():
            if of_side:
                lines.append(f"{side:>11}  {of_side[index]}\n")
        lines.append("\n")
    return "".join(lines)


def read_files(config: ScoreConfig) -> Texts:
    """Read the files; NMTError unless all have the same number of lines."""
    from nmt.text import not_parallel, read_texts

    names = (config.hypothesis, config.reference, config.source)
    # Whole files, because every metric needs all lines before it can print a number.
    hypotheses, references, sources = (list(read_texts(name)) if name else [] for name in names)
    # Without a reference, a plugin may still judge the hypotheses; their number then counts.
    if config.reference is None:
        whole = config.hypothesis
        count = len(hypotheses)
    else:
        whole = config.reference
        count = len(references)
    for name, lines in zip(names, (hypotheses, references, sources), strict=True):
        if name and len(lines) != count:
            raise not_parallel((name, whole), (len(lines), count))
    return Texts(hypotheses, references, sources)


def target_language(config: ScoreConfig) -> str:
    """The language of the options, or of the names of the files; empty if unknown."""
    from nmt.text import language_of_file

    # The reference first: its name is the user's own, while an output may be called anything.
    return (
        config.language
        or language_of_file(config.reference or "")
        or language_of_file(config.hypothesis)
        or ""
    )


def output_of(config: ScoreConfig) -> str:
    """What the command prints: scores, if there is a reference, and what plugins found."""
    # The other formats are of the plugin that scores with a model, which `run` selects.
    if config.format not in ("text", "json"):
        raise NMTError(f"format={config.format}: must be text or json without run")
    if config.reference is not None:
        check_metrics(config)
    language = target_language(config)
    texts = read_files(config)
    suspicions = Suspicions()
    for hypothesis, reference in zip_longest(texts.hypotheses, texts.references, fillvalue=""):
        suspicions.add(hypothesis, expected=reference)
    suspicions.report()
    findings = findings_of_plugins(config, language, texts)
    scores: list[Score] = []
    if config.reference is not None:
        scores = scores_of(config, language, texts)
    elif not findings:
        raise NMTError(f"reference: a value is needed; {FORMS}")
    elif config.examples:
        raise NMTError(f"examples={config.examples}: needs reference=FILE")
    if config.format == "json":
        return as_json(scores, findings)
    rows: list[Any] = list(scores)
    for part in findings.values():
        rows += part
    # A row without text belongs only to json.
    written = "".join(f"{row}\n" for row in rows if str(row))
    return example_text(texts, config.examples) + written


def findings_of_plugins(config: ScoreConfig, language: str, texts: Texts) -> dict[str, list[Any]]:
    """What plugins find in the translations, such as counts of flags, by its name in JSON."""
    findings: dict[str, list[Any]] = {}
    for options in config.plugins.values():
        findings |= options.findings(
            config, language, texts.hypotheses, texts.references, texts.sources
        )
    return findings


def check_metrics(config: ScoreConfig) -> None:
    """Raise NMTError if a metric cannot be computed.

    Before the files are read: standard input may come from a translation that takes hours.
    """
    from nmt import evaluation

    has_sources = config.source is not None
    evaluation.check_metrics(config.metrics, config.metric_options.plugins, has_sources)


def scores_of(config: ScoreConfig, language: str, texts: Texts) -> "list[Score]":
    from nmt.evaluation import score

    return score(
        texts.hypotheses,
        texts.references,
        config.metrics,
        language,
        config.lowercase,
        config.tokenize,
        sources=texts.sources if config.source is not None else None,
        options=config.metric_options.plugins,
    )


def as_json(scores: "list[Score]", findings: dict[str, list[Any]]) -> str:
    """A list of the scores or, with findings of plugins, a mapping of all lists."""
    lists = {"scores": list(map(asdict, scores))}
    for name, part in findings.items():
        lists[name] = list(map(asdict, part))
    content = lists if findings else lists["scores"]
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def run(config: ScoreConfig) -> None:
    # A later plugin may build on an earlier one, and comes before it.
    for options in reversed(config.plugins.values()):
        if options.takes_over(config):
            return
    sys.stdout.write(output_of(config))


def files_or_run(words: list[str]) -> dict[str, Any]:
    """Return the hypothesis and the reference, or the runs."""
    addresses, words = addresses_among(words)
    files, folders, texts = paths_and_texts(words, FORMS)
    files = [*addresses, *files]
    if texts or len(files) > 2 or (folders and len(files) > 1):
        raise NMTError(f"{' '.join(words)}: give one or two files, or runs; {FORMS}")
    # Only models score what is not on this machine.
    if addresses and not folders:
        return {"input": addresses[0]}
    if folders:
        # `run` and `input` are keys of the plugin that scores with models.
        if files:
            return {"run": folders, "input": files[0]}
        return {"run": folders}
    # One file is the hypothesis alone.
    return dict(zip(("hypothesis", "reference"), files, strict=False))


COMMAND = Command(
    name="score",
    config=ScoreConfig,
    run=run,
    words=files_or_run,
    usage="[HYPOTHESIS REFERENCE or RUN...]",
    examples=(
        "output.de corpus/test.de",
        "run=runs/mine input=pairs.tsv output=likely.tsv minimum=-4.4",
    ),
    options={"--json": "format=json"},
    memory="pass a lower batch_tokens",
)
