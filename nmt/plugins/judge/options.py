"""What this plugin adds to `nmt score`: flags=, run= and contrast=."""

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nmt.config import Compute, DecodeConfig, TranslatorOptions, choice, number, require
from nmt.text import scripts_of_language

if TYPE_CHECKING:
    from nmt.commands.score import ScoreConfig


@dataclass
class JudgeConfig:
    """Judging without references."""

    flags: bool = False
    """Count likely failures, such as repetitions and lost numbers, by source and translation."""
    run: list[str] = choice([])
    """A run, or a list of them, to score by; log P of each hypothesis, given its source, may filter a corpus."""
    target: str | None = None
    """run: target language of a model for several, whose sources begin with a tag for it."""
    contrast: str | None = None
    """run: file of contrastive pairs, TSV or JSONL: source, right, wrong, category. How often is log P (the sum, not
    divided by the length) of the right translation higher than that of the wrong one? Ties count as wrong."""
    device: str = "auto"
    """run: auto, cpu, cuda, cuda:1, mps."""
    batch_tokens: int = number(4000, 1, 10**9)
    """run: tokens of the longer side that are scored at once; padding counts."""
    buffer: int = number(2000, 1, 10**9)
    """run: pairs held in memory at most, to be sorted by length and scored in batches."""

    def takes_over(self, config: "ScoreConfig") -> bool:
        """Write what the models of a run, or several, think of pairs, or of contrastive pairs; False without run."""
        if not self.run:
            require(self.contrast is None, f"contrast={self.contrast}: a model scores its pairs; pass run=RUN")
            return False
        name, files = f"run={','.join(self.run)}", (config.source or "", config.hypothesis)
        require(not self.flags, f"{name}: leave it out with flags=true, which no model is needed for")
        alone = config.reference is None and config.examples == 0
        require(alone, f"{name}: scores hypotheses by their sources alone; leave reference and examples out")
        if self.contrast is not None:
            pairs = f"contrast={self.contrast}: has sources and translations; leave source and hypothesis out"
            require(files == ("", "-"), pairs)
            require(config.format != "jsonl", f"format={config.format}: must be one of text, json, tsv with contrast")
        else:
            require(bool(config.source), "source: a value is needed with run; pass source=VALUE")
            require(files != ("-", "-"), "source=- and hypothesis=-: standard input is one file; name the other")

        from nmt.plugins.judge.likelihood import write_contrast, write_scores
        from nmt.translation import load_translator, warn

        decode = DecodeConfig(batch_tokens=self.batch_tokens)
        compute = Compute("torch", device=self.device)
        translator = load_translator(TranslatorOptions(self.run, compute, self.target, decode=decode), warn)
        if self.contrast:
            write_contrast(translator, self.contrast, config.format, self.buffer)
        else:
            write_scores(translator, files, config.format, self.buffer)
        return True

    def findings(
        self, config: "ScoreConfig", language: str, hypotheses: list[str], references: list[str], sources: list[str]
    ) -> dict[str, list[Any]]:
        """The counts of flags."""
        if not self.flags:
            return {}
        require(config.source is not None, "source: a value is needed with flags=true; pass source=FILE")

        from nmt.plugins.judge.flags import count_flags

        if scripts_of_language(language) is None:
            print(f"nmt: language={language or 'null'}: its script is not known, nor looked at", file=sys.stderr)
        return {"flags": count_flags(sources, hypotheses, references, scripts_of_language(language))}
