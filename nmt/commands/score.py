"""`nmt score`: score translations with metrics."""

import json
import sys
from dataclasses import asdict, dataclass
from typing import Any

from nmt.commands import paths_and_texts
from nmt.config import (
    BLEU_TOKENIZERS,
    Command,
    choice,
    metric_names,
    number,
    plugin_options,
    require,
)

FORMS = (
    "`nmt score HYPOTHESIS REFERENCE` or, with a model, `nmt score RUN source=FILE hypothesis=FILE`"
)


@dataclass
class ScoreConfig:
    """Options of `nmt score`.

    A plugin's options have two methods: `takes_over(config)` returns True if the plugin has done the command's
    work, and `findings(config, language, hypotheses, references, sources)` returns named lists of rows to print.
    """

    hypothesis: str = "-"
    """File of translations; -: standard input."""
    reference: str | None = None
    """File of reference translations."""
    source: str | None = None
    """File of source lines, printed with the examples."""
    metrics: list[str] = choice(["bleu", "chrf", "ter"], names_of=metric_names)
    """bleu, chrf, chrf++, ter (sacreBLEU), or a metric that a plugin adds; `nmt plugins` lists them."""
    language: str | None = None
    """Target language, which selects the BLEU tokenizer; null: the suffix of the reference or hypothesis file."""
    lowercase: bool = False
    """Ignore case in every metric."""
    tokenize: str | None = choice(None, *BLEU_TOKENIZERS)
    """BLEU tokenizer, as for `sacrebleu --tokenize`; null: the recommended one for the target language."""
    examples: int = number(0, 0, 1_000_000)
    """Number of examples (source, reference and translation) to print, spread evenly over the file."""
    format: str = choice("text", "text", "json", "tsv", "jsonl")
    """text or json; with `run`: text, tsv (line number, log probability, perplexity, tokens) or jsonl."""
    plugins: dict[str, Any] = plugin_options("score")

    def __post_init__(self) -> None:
        require(
            self.examples == 0 or self.format == "text",
            f"examples={self.examples}: requires format=text",
        )


def example_text(
    sources: list[str] | None, references: list[str], hypotheses: list[str], count: int
) -> str:
    count = min(count, len(references))
    sides = {"source": sources, "reference": references, "translation": hypotheses}
    indices = (i * len(references) // count for i in range(count))
    blocks = [
        "\n".join(f"{side:>11}  {lines[i]}" for side, lines in sides.items() if lines)
        for i in indices
    ]
    return "".join(f"{block}\n\n" for block in blocks)


def scores_of(config: ScoreConfig) -> str:
    from nmt.evaluation import score
    from nmt.text import language_of_file, not_parallel, read_texts

    require(
        config.format in ("text", "json"),
        f"format={config.format}: must be text or json without run",
    )
    names = [config.hypothesis, config.reference, config.source]
    language = (
        config.language
        or language_of_file(config.reference or "")
        or language_of_file(config.hypothesis)
        or ""
    )
    hypotheses, references, sources = texts = [
        list(read_texts(name)) if name else [] for name in names
    ]
    whole, lines = (
        (config.hypothesis, hypotheses)
        if config.reference is None
        else (config.reference, references)
    )
    for name, others in zip(names, texts, strict=True):
        if name and len(others) != len(lines):
            raise not_parallel((name, whole), (len(others), len(lines)))
    findings: dict[str, list[Any]] = {}
    for options in config.plugins.values():
        findings |= options.findings(config, language, *texts)
    scores = []
    if config.reference is None:
        require(bool(findings), f"reference: a value is needed; {FORMS}")
        require(config.examples == 0, f"examples={config.examples}: needs reference=FILE")
    else:
        scores = score(
            hypotheses, references, config.metrics, language, config.lowercase, config.tokenize
        )
    rows = {"scores": scores, **findings}
    if config.format == "json":
        plain = {name: [asdict(row) for row in part] for name, part in rows.items()}
        return (
            json.dumps(plain if findings else plain["scores"], indent=2, ensure_ascii=False) + "\n"
        )
    written = "".join(f"{row}\n" for part in rows.values() for row in part if str(row))
    return example_text(sources, references, hypotheses, config.examples) + written


def run(config: ScoreConfig) -> None:
    if not any(options.takes_over(config) for options in config.plugins.values()):
        sys.stdout.write(scores_of(config))


def files_or_run(words: list[str]) -> dict[str, Any]:
    files, folders, texts = paths_and_texts(words, FORMS)
    is_one_form = not texts and len(files) <= 2 and not (files and folders)
    require(is_one_form, f"{' '.join(words)}: give one or two files, or runs; {FORMS}")
    return (
        {"run": folders} if folders else dict(zip(("hypothesis", "reference"), files, strict=False))
    )


COMMAND = Command(
    *("score", ScoreConfig, run, files_or_run),
    usage="[HYPOTHESIS REFERENCE or RUN...]",
    examples=(
        "output.de corpus/test.de",
        "output.de corpus/test.de source=corpus/test.en examples=5",
    ),
    options={"--json": "format=json"},
    memory="pass a lower batch_tokens",
)
