"""`nmt score run=` prints translations' log P under a model, and `nmt score flags=true` counts likely failures."""

import json
import math
import sys
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from nmt.commands.score import ScoreConfig
from nmt.config import Compute, DecodeConfig, TranslatorOptions, choice, number, require
from nmt.flags import count_flags
from nmt.text import parallel, read_texts, scripts_of_language

BUFFER = 2000  # pairs held in memory, to be sorted by length and scored in batches


def perplexity(log_probability: float, tokens: int) -> float:
    return math.exp(min(-log_probability / tokens, 700.0))  # `tokens` includes the end symbol


@dataclass
class JudgeConfig:
    """Options for scoring without references."""

    flags: bool = False
    """Count likely failures, such as repetitions and lost numbers."""
    run: list[str] = choice([])
    """Run or list of runs: print the log P of each hypothesis given its source, for example to filter a corpus."""
    target: str | None = None
    """run: target language; only for multilingual models, whose source sentences begin with a language tag."""
    device: str = "auto"
    """run: auto, cpu, cuda, cuda:1, mps."""
    batch_tokens: int | None = number(None, 1, 10**9)
    """run: tokens per batch, counted on the longer side, including padding; null: 2,000 on a CPU,
    16,000 on a GPU."""

    def takes_over(self, config: ScoreConfig) -> bool:
        """Write the scores from the models in `run` and return True, or return False without `run`."""
        if not self.run:
            return False
        name = f"run={','.join(self.run)}"
        require(not self.flags, f"{name}: omit it with flags=true, which needs no model")
        require(
            config.reference is None and config.examples == 0,
            f"{name}: omit reference and examples",
        )
        require(bool(config.source), "source: required with run; pass source=FILE")
        self.write_scores((str(config.source), config.hypothesis), config.format)
        return True

    def write_scores(self, names: tuple[str, str], format: str) -> None:
        from rich.console import Console
        from rich.status import Status

        from nmt.translation import load_translator, score_pairs, warn

        compute, decode = (
            Compute("torch", device=self.device),
            DecodeConfig(batch_tokens=self.batch_tokens),
        )
        translator = load_translator(
            TranslatorOptions(self.run, compute, self.target, decode=decode), warn
        )
        lines = parallel(names, [read_texts(name, warn) for name in names])
        pairs = chain(
            list(islice(lines, 1)), lines
        )  # reports a missing file before the status line appears
        count, tokens, total = 0, 0, 0.0
        with Status("scoring", console=Console(stderr=True, quiet=sys.stdout.isatty())) as status:
            while block := list(islice(pairs, BUFFER)):
                for score in score_pairs(translator, block):
                    log_probability, length = (
                        score.log_probability,
                        len(score.token_log_probabilities),
                    )
                    count, tokens, total = count + 1, tokens + length, total + log_probability
                    per_token = perplexity(log_probability, length)
                    if format == "text":
                        row = (
                            f"{log_probability:10.4f}  perplexity {per_token:.4f}  {length} tokens"
                        )
                    elif format == "tsv":
                        row = f"{count}\t{log_probability:.4f}\t{per_token:.4f}\t{length}"
                    else:
                        numbers = {
                            "log_probability": log_probability,
                            "perplexity": per_token,
                            "length": length,
                        }
                        row = json.dumps(
                            {"line": count, **numbers, **vars(score)}, ensure_ascii=False
                        )
                    sys.stdout.buffer.write(f"{row}\n".encode())
                sys.stdout.buffer.flush()
                status.update(f"scored {count:,} pairs")
        figures = f"log probability {total:.4f}, perplexity {perplexity(total, max(tokens, 1)):.4f}"
        warn(f"pairs: {count:,}, tokens: {tokens:,}, {figures}")

    def findings(
        self,
        config: ScoreConfig,
        language: str,
        hypotheses: list[str],
        references: list[str],
        sources: list[str],
    ) -> dict[str, list[Any]]:
        if not self.flags:
            return {}
        require(config.source is not None, "source: required with flags=true; pass source=FILE")
        scripts = scripts_of_language(language)
        if scripts is None:
            print(
                f"nmt: language={language or 'null'}: unknown script; wrong_script is not checked",
                file=sys.stderr,
            )
        return {"flags": count_flags(sources, hypotheses, references, scripts, language or "")}
