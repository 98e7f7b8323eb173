"""`nmt score`: score translations by metrics with signatures, or by a model's log probability."""

import json
import sys
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from nmt.commands.words import paths_and_texts
from nmt.config import (
    Command,
    Compute,
    DecodeConfig,
    Option,
    TranslatorOptions,
    as_list,
    check_scoring,
    inline,
    number,
    require,
    require_choice,
)
from nmt.errors import NMTError

FORMS = "`nmt score HYPOTHESIS REFERENCE`, or by a model `nmt score RUN source=FILE hypothesis=FILE`"


@dataclass
class ScoreConfig:
    """The tree of `nmt score`."""

    hypothesis: str = "-"
    """File of translations; -: standard input."""
    reference: str | None = None
    """File of reference translations; needed, but for flags and for scores by a model."""
    source: str | None = None
    """File of source lines; shown beside the examples, or read for flags or by the model."""
    metrics: Any = field(default_factory=lambda: ["bleu", "chrf", "ter"])
    """bleu, chrf, chrf++, ter, tokenised, split, brackets; the first four are sacreBLEU's, then the paper's BLEUs,
    then EVALB's of trees."""
    language: str | None = None
    """Target language; null: as the name of the reference or the hypothesis ends in it, such as out.ja. It decides how
    BLEU and the paper's BLEUs split words, and the script that flags expect."""
    lowercase: bool = False
    """Ignore case, in every metric."""
    tokenize: str | None = None
    """Tokenizer of BLEU, as of `sacrebleu --tokenize`; null: the recommended one for the target language. 13a, intl,
    zh, ja-mecab, ko-mecab, char, flores101, flores200, spBLEU-1K, none."""
    examples: int = number(0, 0, 1_000_000)
    """Examples to show; source, reference and translation, spread evenly over the file."""
    format: str = "text"
    """text or json; with run: text, tsv (line number, log probability, perplexity, tokens) or jsonl; with contrast:
    text, json or tsv (pair number, 1 if right, log P of the right and of the wrong side, category)."""
    flags: bool = False
    """Count likely failures, such as repetitions and lost numbers, by source and translation."""
    run: list[str] = field(default_factory=list)
    """A run, or a list of them, to score by; log P of each hypothesis, given its source, may filter a corpus."""
    translator: TranslatorOptions = inline(TranslatorOptions(compute=Compute(engine="torch")), "target", "device")
    contrast: str | None = None
    """run: file of contrastive pairs, TSV or JSONL: source, right, wrong, category. How often is log P (the sum, not
    divided by the length) of the right translation higher than that of the wrong one? Ties count as wrong."""
    batch_tokens: int = number(4000, 1, 10**9)
    """run: tokens of the longer side that are scored at once; padding counts."""
    buffer: int = number(2000, 1, 10**9)
    """run: pairs held in memory at most, to be sorted by length and scored in batches."""

    def __post_init__(self) -> None:
        self.metrics = as_list(self.metrics)
        formats = ("text", "json", "tsv") if self.contrast else ("text", "json", "tsv", "jsonl")
        require_choice("format", self.format, formats if self.run else ("text", "json"))
        require(self.examples == 0 or self.format == "text", f"examples={self.examples}: only with format=text")
        check_scoring(self.metrics, self.tokenize)
        if self.run:
            self.check_with_run()
        else:
            self.check_without_run()

    def check_without_run(self) -> None:
        require(self.contrast is None, f"contrast={self.contrast}: a model scores its pairs; pass run=RUN")
        if self.reference is None:
            require(self.flags, f"reference: a value is needed; {FORMS}")
            require(self.examples == 0, f"examples={self.examples}: show references too; pass reference=FILE")
        no_source = self.flags and self.source is None
        require(not no_source, "source: a value is needed with flags=true; pass source=FILE")

    def check_with_run(self) -> None:
        name = f"run={','.join(self.run)}"
        require(not self.flags, f"{name}: leave it out with flags=true, which no model is needed for")
        require(
            self.reference is None and self.examples == 0,
            f"{name}: scores hypotheses by their sources alone; leave reference and examples out",
        )
        if self.contrast is not None:
            require(
                self.source is None and self.hypothesis == "-",
                f"contrast={self.contrast}: has sources and translations; leave source and hypothesis out",
            )
            return
        require(self.source is not None, "source: a value is needed with run; pass source=VALUE")
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


def read_files(config: ScoreConfig) -> list[list[str]]:
    """The lines of hypothesis, reference and source, none of a file that is not given; NMTError if counts differ."""
    from nmt.text import not_parallel, read_texts

    names = [config.hypothesis, config.reference, config.source]
    lines = [list(read_texts(name)) if name else [] for name in names]
    whole = 0 if config.reference is None else 1
    for name, found in zip(names, lines, strict=True):
        if name and len(found) != len(lines[whole]):
            raise not_parallel((name, str(names[whole])), (len(found), len(lines[whole])))
    return lines


def scores_of(config: ScoreConfig) -> str:
    """The scores and the flags, as text or JSON; NMTError if a file cannot be read or line counts differ."""
    from nmt.evaluation import score
    from nmt.plugins.judge.flags import count_flags
    from nmt.text import language_of_file, scripts_of_language

    language = config.language or next(
        filter(None, map(language_of_file, (config.reference or "", config.hypothesis))), ""
    )
    hypotheses, references, sources = read_files(config)
    scores, counts = [], []
    if config.reference:
        scores = score(hypotheses, references, config.metrics, language, config.lowercase, config.tokenize)
    if config.flags:
        if scripts_of_language(language) is None:
            print(f"nmt: language={language or 'null'}: its script is not known, nor looked at", file=sys.stderr)
        counts = count_flags(sources, hypotheses, references, scripts_of_language(language))
    if config.format == "json":
        records = [asdict(item) for item in scores]
        tree = {"scores": records, "flags": [asdict(count) for count in counts]} if config.flags else records
        return json.dumps(tree, indent=2, ensure_ascii=False) + "\n"
    rows = [*scores, *(count for count in counts if count.count or count.flag == "any")]
    return example_text(sources, references, hypotheses, config.examples) + "".join(f"{row}\n" for row in rows)


def by_model(config: ScoreConfig) -> None:
    """Write what the models of a run, or several, think of pairs, or of contrastive pairs."""
    from nmt.plugins.judge.likelihood import write_contrast, write_scores
    from nmt.translation import load_translator, warn

    options = replace(config.translator, run=config.run, decode=DecodeConfig(batch_tokens=config.batch_tokens))
    if config.contrast:
        write_contrast(load_translator(options, warn), config.contrast, config.format, config.buffer)
        return
    assert config.source is not None
    files = (config.source, config.hypothesis)
    write_scores(load_translator(options, warn), files, config.format, config.buffer)


def run(config: ScoreConfig) -> None:
    """Score a file of translations by metrics, or by a model."""
    if config.run:
        by_model(config)
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
    ScoreConfig,
    run,
    files_or_run,
    usage="[HYPOTHESIS REFERENCE or RUN...]",
    example="out.de ref.de",
    keys=(
        "hypothesis=out.de reference=ref.de metrics=[bleu,chrf,tokenised] lowercase=true source=input.en "
        "examples=10 format=json flags=true run=runs/mine contrast=pairs.tsv device=cpu"
    ),
    texts=("target",),
    options={"--json": Option("Short for format=json.", override="format=json")},
    memory="pass a lower batch_tokens or buffer",
)
