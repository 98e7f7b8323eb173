"""The callback that validates during training."""

import math
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch
from lightning import Trainer

from nmt import evaluation, search
from nmt.config import ExperimentConfig, enough_memory_or
from nmt.data import Domain, PreparedCorpus
from nmt.model import Transformer
from nmt.text import load_tokenizer
from nmt.training.callback import UpdateCallback
from nmt.training.logbook import VALIDATION_COLUMNS
from nmt.training.metrics import MetricsCallback
from nmt.training.module import TranslationModule
from nmt.training.scoring import DomainTexts, batches_of, joint_score, translated
from nmt.translation import Translator, kind_of_corpus


@dataclass
class Measurement:
    """The results for the whole validation set, or for one of its domains."""

    domain: str
    """The domain's name; empty for the whole set."""
    loss: float
    """The smoothed loss per target token."""
    perplexity: float
    score: evaluation.Score | None
    """The score of the translations; None with validation.bleu_sentences=0."""

    def metrics(self, score_column: str) -> dict[str, float]:
        """Column of metrics.csv -> value; `score_column` is the column of the score."""
        suffix = f"/{self.domain}" if self.domain else ""
        metrics = {
            f"valid_loss{suffix}": self.loss,
            f"valid_perplexity{suffix}": self.perplexity,
        }
        if self.score:
            metrics[f"{score_column}{suffix}"] = self.score.value
        return metrics

    def in_words(self) -> str:
        if self.domain:
            words = f"{self.domain}: perplexity {self.perplexity:.2f}"
            if self.score:
                words += f", {self.score.name} {self.score.value:.1f}"
            return words
        words = f"loss {self.loss:.3f}, perplexity {self.perplexity:.2f}"
        if self.score:
            words += f", {self.score.name} {self.score.value:.1f}"
        return words


class Validation(UpdateCallback):
    """Validates every `validation.every_steps` updates and after the last one.

    `best` is the lowest perplexity or highest score so far, `worse` is the number of validations
    since then, and `improved` says whether the last update set a new best.
    """

    def __init__(
        self, corpus: PreparedCorpus, config: ExperimentConfig, metrics: MetricsCallback
    ) -> None:
        self.corpus = corpus
        self.config = config.validation
        self.decode = config.decode
        self.metrics = metrics
        self.split = corpus.split("valid")
        self.kind = kind_of_corpus(corpus)
        _, references = corpus.text("valid")  # reports a damaged file before training
        if self.config.bleu_sentences != 0 and self.kind.metric == "bleu":
            # Reports a missing tokenizer package before training.
            evaluation.bleu_tokenizer(self.config.tokenize, corpus.target_language, references)
        self.tokenizer = load_tokenizer(corpus.tokenizer_file)
        self.domains = corpus.domains("valid", config.data)
        if len(self.domains) > 1:
            for domain in self.domains:
                metrics.columns += [f"{column}/{domain.name}" for column in VALIDATION_COLUMNS]
        self.best: float | None = None
        self.worse = 0
        self.improved = False

    def on_update_end(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
        # CheckpointCallback, which runs next, reads this after every update.
        self.improved = False
        is_regular = step % self.config.every_steps == 0
        if not is_regular and step != trainer.max_steps:
            return
        tokens = search.batch_tokens(self.decode, module.device.type)
        advice = (
            "validation does not fit next to weights, gradients and the optimizer's state. "
            f"Pass a lower decode.batch_tokens={tokens} or "
            f"decode.beam_size={self.decode.beam_size}, or validation.bleu_sentences=0"
        )
        # Training time and cost exclude validation, as section 5.2 counts the time of updates.
        with self.metrics.cost.paused(), enough_memory_or(advice):
            # Switch off dropout and the loss of consistency training.
            module.eval()
            measurements = self.measure(trainer, module)
            module.train()
            metrics: dict[str, float] = {}
            for measurement in measurements:
                metrics.update(measurement.metrics(self.kind.column))
            # The extra validation at the end must not count, because an extended run would lack it.
            if is_regular:
                self.compare_with_best(metrics)
            self.metrics.report(step, metrics)
        console = self.metrics.line.console
        if trainer.is_global_zero:
            words = "; ".join(measurement.in_words() for measurement in measurements)
            console.print(f"update {step:,}: validation {words}")
        # The same in every process: they share the measurements, so they stop together.
        if self.config.patience is not None and self.worse >= self.config.patience:
            trainer.should_stop = True
            reason = f"no better {self.config.best} in {self.worse} validations"
            console.print(f"{reason}: training stops (validation.patience)")

    def compare_with_best(self, metrics: dict[str, float]) -> None:
        """Update `best`, `worse` and `improved`."""
        if self.config.best == "bleu":
            value = metrics[self.kind.column]
            is_better = self.best is None or value > self.best
        else:
            value = metrics["valid_perplexity"]
            is_better = self.best is None or value < self.best
        # NaN compares as false, except that the first value has nothing to compare with.
        self.improved = is_better and not math.isnan(value)
        if self.improved:
            self.best = value
            self.worse = 0
        else:
            self.worse += 1

    def measure(self, trainer: Trainer, module: TranslationModule) -> list[Measurement]:
        """The results for the whole set and, if it has several domains, for each of them."""
        sums = [self.domain_sums(trainer, module, domain) for domain in self.domains]
        texts: list[DomainTexts] = []
        # null translates all lines, 0 none.
        if self.config.bleu_sentences != 0:
            engine = search.TorchEngine([self.searched(module.model)], self.decode)
            translator = Translator(engine, self.tokenizer)
            texts = translated(translator, self.corpus, self.domains, self.config.bleu_sentences)
        # From the sums, not from the domains' means: a domain counts by its tokens.
        joint_sums = np.sum(sums, axis=0).tolist()
        measurements = [self.measurement("", joint_sums, texts)]
        # A single domain is the whole set again.
        if len(self.domains) > 1:
            for number, domain in enumerate(self.domains):
                domain_texts = texts[number : number + 1]
                measurements.append(self.measurement(domain.name, sums[number], domain_texts))
        return measurements

    def measurement(self, domain: str, sums: list[float], texts: list[DomainTexts]) -> Measurement:
        """The results for `sums`, as `domain_sums` returns them, and for texts, if any."""
        loss, likelihood, tokens = sums
        score = None
        if texts:
            score = joint_score(self.corpus, texts, self.config.tokenize)
        return Measurement(
            domain=domain,
            loss=loss / tokens,
            perplexity=math.exp(min(likelihood / tokens, 100)),  # without overflow
            score=score,
        )

    def searched(self, model: Transformer) -> Transformer:
        """The model that translates: the trained one, or a copy in validation.precision."""
        if self.config.precision == "float32":
            return model
        # A copy, because `to` converts a module in place.
        return deepcopy(model).to(getattr(torch, self.config.precision))

    @torch.no_grad()
    def domain_sums(
        self, trainer: Trainer, module: TranslationModule, domain: Domain
    ) -> list[float]:
        """Sums of smoothed loss, negative log likelihood and target tokens.

        All processes share the work. One process fills each row, and the rows are added in order,
        so the sums have the same bits on any number of devices.
        """
        batches = batches_of(self.split, domain.rows)
        rows = torch.zeros(len(batches), 3, device=module.device)
        # Every nth batch, because batches are sorted by length.
        for number in range(trainer.global_rank, len(batches), trainer.world_size):
            batch = trainer.strategy.batch_to_device(self.split.batch(batches[number]))
            # Outside Lightning's own loop, autocast must be entered explicitly.
            with trainer.precision_plugin.val_step_context():
                loss, likelihood = module.losses(batch)
            tokens = torch.full_like(loss, len(batch.target_indices))
            rows[number] = torch.stack((loss, likelihood, tokens))
        return trainer.strategy.reduce(rows, reduce_op="sum").sum(0).tolist()
