"""`nmt score`: score translations by metrics with signatures, or by a model's log probability."""

import json
import sys
from dataclasses import asdict, dataclass, field
from typing import Any

from nmt.commands.words import paths_and_texts
from nmt.compose import Command, Option
from nmt.config import DecodeConfig, TranslateConfig
from nmt.config.rules import as_list, check_numbers, number, require, require_choice
from nmt.errors import NMTError

FORMS = "`nmt score HYPOTHESIS REFERENCE`, or by a model `nmt score RUN source=FILE hypothesis=FILE`"


@dataclass
class ScoreConfig:
    """The tree of `nmt score`."""

    hypothesis: str = "-"
    """File of translations; -: standard input."""
    reference: str | None = None
    """File of reference translations; needed, unless a model is to score the translations."""
    source: str | None = None
    """File of source lines; shown beside the examples, or read by the model."""
    metrics: Any = field(default_factory=list)
    """bleu, chrf, ter, tokenised, split, brackets; the first three are sacreBLEU's, then the paper's BLEUs, then
    EVALB's of trees."""
    language: str = "de"
    """Target language, for the paper's Moses tokenisation."""
    lowercase: bool = False
    """Ignore case, in every metric."""
    examples: int = number(0, 0, 1_000_000)
    """Examples to show; source, reference and translation, spread evenly over the file."""
    format: str = "text"
    """text or json; with run: text, tsv (line number, log probability, perplexity, tokens) or jsonl."""
    run: Any = None
    """A run, or a list of them, to score by; log P of each hypothesis, given its source, may filter a corpus."""
    target: str | None = None
    """run: target language of a model for several, whose sources begin with a tag for it."""
    device: str = "auto"
    """run: auto, cpu, cuda, cuda:1, mps."""
    batch_tokens: int = number(4000, 1, 10**9)
    """run: tokens of the longer side that are scored at once; padding counts."""
    buffer: int = number(2000, 1, 10**9)
    """run: pairs held in memory at most, to be sorted by length and scored in batches."""

    def __post_init__(self) -> None:
        check_numbers(self)
        self.run, self.metrics = as_list(self.run), as_list(self.metrics)
        require_choice("format", self.format, ("text", "json", "tsv", "jsonl") if self.run else ("text", "json"))
        require(self.examples == 0 or self.format == "text", f"examples={self.examples}: only with format=text")
        for metric in self.metrics:
            require_choice("metrics", metric, ("bleu", "chrf", "ter", "tokenised", "split", "brackets"))
        if not self.run:
            require(self.reference is not None, f"reference: a value is needed; {FORMS}")
            return
        require(self.source is not None, "source: a value is needed with run; pass source=VALUE")
        require(
            self.reference is None and self.examples == 0,
            f"run={','.join(self.run)}: scores hypotheses by their sources alone; leave reference and examples out",
        )
        require(
            (self.source, self.hypothesis) != ("-", "-"),
            "source=- and hypothesis=-: standard input is one file; name the other",
        )


def example_text(sources: list[str] | None, references: list[str], hypotheses: list[str], count: int) -> str:
    """`count` examples spread evenly over the file, each with source, reference and translation."""
    count = min(count, len(references))
    blocks = []
    for index in (i * len(references) // count for i in range(count)):
        rows = [("source", sources[index])] if sources else []
        rows += [("reference", references[index]), ("translation", hypotheses[index])]
        blocks.append("\n".join(f"{label:>11}  {text}" for label, text in rows))
    return "\n\n".join(blocks) + "\n\n" if blocks else ""


def scores_of(config: ScoreConfig) -> str:
    """The scores, as text or JSON; NMTError if a file cannot be read or line counts differ."""
    from nmt.evaluation.scores import score
    from nmt.text.files import not_parallel, read_texts

    assert config.reference is not None
    hypotheses, references = list(read_texts(config.hypothesis)), list(read_texts(config.reference))
    sources = list(read_texts(config.source)) if config.source else None
    for name, lines in ((config.source, sources), (config.hypothesis, hypotheses)):
        if lines is not None and len(lines) != len(references):
            raise not_parallel((str(name), config.reference), (len(lines), len(references)))
    scores = score(hypotheses, references, config.metrics, config.language, config.lowercase)
    if config.format == "json":
        return json.dumps([asdict(item) for item in scores], indent=2, ensure_ascii=False) + "\n"
    return example_text(sources, references, hypotheses, config.examples) + "".join(f"{item}\n" for item in scores)


def run(config: ScoreConfig) -> None:
    """Score a file of translations by metrics, or by a model."""
    if config.run:
        from nmt.translation.job import warn
        from nmt.translation.likelihood import read_pairs, write_scores
        from nmt.translation.load import load_translator

        assert config.source is not None
        pairs = read_pairs(config.source, config.hypothesis)
        decode = DecodeConfig(batch_tokens=config.batch_tokens)
        translator = load_translator(
            TranslateConfig(config.run, target=config.target, device=config.device, decode=decode), warn
        )
        write_scores(translator, pairs, config.format, config.buffer)
    else:
        sys.stdout.write(scores_of(config))


def files_or_run(words: list[str]) -> dict[str, Any]:
    """Translations and their references, or the run or runs to score with."""
    files, folders, texts = paths_and_texts(words, FORMS)
    if texts or len(files) > 2 or (files and folders):
        raise NMTError(f"{' '.join(words)}: files or a run, please: {FORMS}")
    return {"run": folders} if folders else dict(zip(("hypothesis", "reference"), files, strict=False))


COMMAND = Command(
    "score",
    "Score translations, with signatures; or by a model, as to filter a corpus.",
    ScoreConfig,
    run,
    files_or_run,
    usage="[HYPOTHESIS REFERENCE or RUN...]",
    example="out.de ref.de",
    keys=(
        "hypothesis=out.de reference=ref.de metrics=[bleu,chrf,tokenised] lowercase=true source=input.en "
        "examples=10 format=json run=runs/mine device=cpu"
    ),
    texts=("target",),
    options={"--json": Option("Short for format=json.", override="format=json")},
    memory="pass a lower batch_tokens or buffer",
)
