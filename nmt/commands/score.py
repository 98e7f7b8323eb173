"""`nmt score`: how good translations are, each score with its signature; or what a model thinks of them."""

import json
import sys
from dataclasses import dataclass, field
from typing import Any

from nmt.compose import Command, Option
from nmt.config.rules import as_list, check_numbers, number, require, require_choice


@dataclass
class ScoreConfig:
    """The tree of `nmt score`."""

    hypothesis: str = "-"
    """File of translations; -: standard input."""
    reference: str | None = None
    """File of reference translations; needed, unless a model is to score the translations."""
    source: str | None = None
    """File of source lines, shown beside the examples, or read by the model."""
    metrics: Any = field(default_factory=list)
    """bleu, chrf, ter (sacreBLEU), tokenised, split (the paper's BLEUs), brackets (of trees, as EVALB)."""
    language: str = "de"
    """Target language, for the paper's Moses tokenisation."""
    lowercase: bool = False
    """Ignore case, in every metric."""
    examples: int = number(0, 0, 1_000_000)
    """Source, reference and translation triples to show, spread evenly over the file."""
    format: str = "text"
    """text or json; with run: text, tsv (line number, log probability, perplexity, tokens) or jsonl."""
    run: Any = None
    """A run, or a list of them: log P of each hypothesis, given its source, by which a corpus may be filtered."""
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
            require(
                self.reference is not None,
                "reference: a value is needed; pass reference=VALUE, or run=RUN and source=FILE to score by a model",
            )
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
    """`count` examples spread evenly over the file: source, reference and translation one below another."""
    count = min(count, len(references))
    places = [i * len(references) // count for i in range(count)]
    blocks = []
    for place in places:
        rows = [("source", sources[place])] if sources else []
        rows += [("reference", references[place]), ("translation", hypotheses[place])]
        blocks.append("\n".join(f"{label:>11}  {text}" for label, text in rows))
    return "\n\n".join(blocks) + "\n\n" if blocks else ""


def scores_of(config: ScoreConfig) -> str:
    """The scores of `config`, as text or JSON; NMTError where files cannot be read or their line counts differ."""
    from nmt.evaluation.scores import score
    from nmt.text.files import not_parallel, read_texts

    assert config.reference is not None
    hypotheses, references = list(read_texts(config.hypothesis)), list(read_texts(config.reference))
    sources = list(read_texts(config.source)) if config.source else None
    if sources is not None and len(sources) != len(references):
        raise not_parallel((str(config.source), config.reference), (len(sources), len(references)))
    if len(hypotheses) != len(references):
        raise not_parallel((config.hypothesis, config.reference), (len(hypotheses), len(references)))
    scores = score(hypotheses, references, config.metrics, config.language, config.lowercase)
    if config.format == "json":
        return json.dumps([item.as_dict() for item in scores], indent=2, ensure_ascii=False) + "\n"
    return example_text(sources, references, hypotheses, config.examples) + "".join(f"{item}\n" for item in scores)


def run(config: ScoreConfig) -> None:
    """Score a file of translations, for people or machines."""
    if config.run:
        from nmt.translation.likelihood import score_pairs

        score_pairs(config)
    else:
        sys.stdout.write(scores_of(config))


COMMAND = Command(
    "score",
    "Score translations, with signatures; or by a model, as to filter a corpus.",
    ScoreConfig,
    run,
    options={"--json": Option("Short for format=json.", override="format=json")},
    memory="pass a lower batch_tokens or buffer",
)
