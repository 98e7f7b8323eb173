"""Loss, perplexity and BLEU on the validation set during training; a corpus kind may add another metric."""

import math
from copy import deepcopy

import numpy as np
import torch
import torch.distributed as dist
from lightning import Trainer
from lightning.fabric.utilities import move_data_to_device

from nmt import evaluation, search
from nmt.config import ExperimentConfig, enough_memory_or
from nmt.data import Domain, PreparedCorpus, PreparedSplit
from nmt.model import Transformer
from nmt.text import load_tokenizer
from nmt.training.loss import summed_losses
from nmt.training.metrics import VALIDATION_COLUMNS, MetricsCallback
from nmt.training.module import TranslationModule, UpdateCallback
from nmt.translation import Translator, kind_of_corpus

BATCH_TOKENS = 4000
Texts = tuple[list[str], list[str]]  # translations and references


def translated(
    translator: Translator, corpus: PreparedCorpus, domains: list[Domain], sentences: int | None
) -> list[Texts]:
    """Translate the first `sentences` lines of each domain (None: all); all processes share the work."""
    sources, targets = corpus.text("valid")
    rank, world_size = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    texts = []
    for domain in domains:
        rows = domain.rows[:sentences]
        lines = [domain.tag + sources[row] for row in rows[rank::world_size]]
        parts = [kind_of_corpus(corpus).translate(translator, lines)] * world_size
        if world_size > 1:
            dist.all_gather_object(parts, parts[0])
        translations = [parts[line % world_size][line // world_size] for line in range(len(rows))]
        texts.append((translations, [targets[row] for row in rows]))
    return texts


def joint_score(
    corpus: PreparedCorpus, parts: list[Texts], tokenize: str | None
) -> evaluation.Score:
    """One score for the lines of several domains together."""
    hypotheses, references = ([line for part in parts for line in part[side]] for side in (0, 1))
    metrics = [kind_of_corpus(corpus).metric]
    return evaluation.score(
        hypotheses, references, metrics, corpus.target_language, tokenize=tokenize
    )[0]


def batches_of(split: PreparedSplit, rows: range) -> list[np.ndarray]:
    part = slice(rows.start, rows.stop)
    lengths = np.maximum(split.source_lengths[part], split.target_lengths[part]).tolist()
    return [np.array(rows)[batch] for batch in search.batches_by_length(lengths, BATCH_TOKENS)]


@torch.no_grad()
def validation_loss(model: Transformer, split: PreparedSplit, label_smoothing: float) -> float:
    """The smoothed loss per target token on the model's device, in float32."""
    device = next(model.parameters()).device
    total = tokens = 0.0
    for indices in batches_of(split, range(len(split))):
        batch = move_data_to_device(split.batch(indices), device)
        total += summed_losses(model, batch, label_smoothing)[0].item()
        tokens += len(batch.target_indices)
    return total / tokens


class Validation(UpdateCallback):
    """Validates every `validation.every_steps` updates and after the last one.

    `best` is the lowest perplexity or highest score so far, `worse` is the number of validations since then, and
    `improved` says whether the last update set a new best.
    """

    def __init__(
        self, corpus: PreparedCorpus, config: ExperimentConfig, metrics: MetricsCallback
    ) -> None:
        self.corpus, self.config, self.decode, self.metrics = (
            corpus,
            config.validation,
            config.decode,
            metrics,
        )
        self.split, self.kind = corpus.split("valid"), kind_of_corpus(corpus)
        references = corpus.text("valid")[1]  # reports a damaged file before training
        if (
            self.config.bleu_sentences != 0 and self.kind.metric == "bleu"
        ):  # reports a missing tokenizer package
            evaluation.bleu_tokenizer(self.config.tokenize, corpus.target_language, references)
        self.tokenizer, self.domains = (
            load_tokenizer(corpus.tokenizer_file),
            corpus.domains("valid", config.data),
        )
        if len(self.domains) > 1:
            metrics.columns = [
                f"{column}/{domain.name}"
                for domain in self.domains
                for column in VALIDATION_COLUMNS
            ]
        self.best: float | None = None
        self.worse, self.improved = 0, False

    def on_update_end(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
        self.improved = False
        if step % self.config.every_steps and step != trainer.max_steps:
            return
        tokens = search.batch_tokens(self.decode, module.device.type)
        advice = (
            "validation does not fit next to weights, gradients and Adam's moments. "
            f"Pass a lower decode.batch_tokens={tokens} or "
            f"decode.beam_size={self.decode.beam_size}, or validation.bleu_sentences=0"
        )
        with self.metrics.paused(module.device), enough_memory_or(advice):
            module.eval()
            metrics, words = self.measure(trainer, module)
            module.train()
            if (
                step % self.config.every_steps == 0
            ):  # an extended run would lack the extra validation at the end
                sign = 1 if self.config.best == "bleu" else -1
                value = metrics[self.kind.column if sign > 0 else "valid_perplexity"]
                self.improved = not math.isnan(value) and (
                    self.best is None or sign * value > sign * self.best
                )
                self.best, self.worse = (value, 0) if self.improved else (self.best, self.worse + 1)
            self.metrics.report(step, metrics)
        console = self.metrics.line.console
        if trainer.is_global_zero:
            console.print(f"update {step:,}: validation {words}")
        if self.config.patience is not None and self.worse >= self.config.patience:
            trainer.should_stop = True
            reason = f"no better {self.config.best} in {self.worse} validations"
            console.print(f"{reason}: training stops (validation.patience)")

    def measure(self, trainer: Trainer, module: TranslationModule) -> tuple[dict[str, float], str]:
        """Loss, perplexity and score for the whole set and for each domain of a mixture, as numbers and as text."""
        sums = [self.domain_sums(trainer, module, domain) for domain in self.domains]
        parts, texts = [("", np.sum(sums, 0).tolist())], list[Texts]()
        if len(sums) > 1:
            parts += zip([f"/{domain.name}" for domain in self.domains], sums, strict=True)
        if self.config.bleu_sentences != 0:
            engine = search.TorchEngine([self.searched(module.model)], self.decode)
            translator = Translator(engine, self.tokenizer)
            texts = translated(translator, self.corpus, self.domains, self.config.bleu_sentences)
        metrics, words = dict[str, float](), list[str]()
        for number, (name, (loss, likelihood, tokens)) in enumerate(parts):
            perplexity = math.exp(min(likelihood / tokens, 100))
            metrics |= {f"valid_loss{name}": loss / tokens, f"valid_perplexity{name}": perplexity}
            words.append(f"{name[1:] or f'loss {loss / tokens:.3f}, perplexity'} {perplexity:.2f}")
            if texts:
                result = joint_score(
                    self.corpus, texts[number - 1 : number] or texts, self.config.tokenize
                )
                metrics[self.kind.column + name] = result.value
                words[-1] += f", {'' if name else f'{result.name} '}{result.value:.1f}"
        return metrics, "; ".join(words)

    def searched(self, model: Transformer) -> Transformer:
        """The model that translates: the trained one, or a copy in validation.precision."""
        if self.config.precision == "float32":
            return model
        return deepcopy(model).to(getattr(torch, self.config.precision))

    @torch.no_grad()
    def domain_sums(
        self, trainer: Trainer, module: TranslationModule, domain: Domain
    ) -> list[float]:
        """Sums of smoothed loss, negative log likelihood and target tokens; all processes share the work."""
        batches = batches_of(self.split, domain.rows)
        sums = torch.zeros(len(batches), 3, device=module.device)
        for number in range(trainer.global_rank, len(batches), trainer.world_size):
            batch = trainer.strategy.batch_to_device(self.split.batch(batches[number]))
            with trainer.precision_plugin.val_step_context():
                loss, likelihood = module.losses(batch)
            sums[number] = torch.stack(
                (loss, likelihood, torch.full_like(loss, len(batch.target_indices)))
            )
        # One process adds to each row, and the rows are added in order, so the sums are the same on any devices.
        return trainer.strategy.reduce(sums, reduce_op="sum").sum(0).tolist()
