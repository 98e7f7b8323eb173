"""Loss, perplexity and BLEU, or the F1 of trees, on the validation set while training.

Validation comes before the checkpoint of the same update, so a run that resumes never owes one.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from lightning import LightningModule, Trainer
from torch import Tensor

from nmt.config import DecodeConfig, ValidationConfig
from nmt.config.decoding import MOST
from nmt.data.prepared import PreparedCorpus
from nmt.errors import NMTError, enough_memory_or
from nmt.evaluation.scores import Score, score
from nmt.search.beam_search import beam_search
from nmt.search.engine import batches_by_length
from nmt.text.tokenizers import load_tokenizer
from nmt.training.metrics import MetricsCallback
from nmt.training.module import TranslationModule
from nmt.training.strategies import whole_weights
from nmt.training.updates import UpdateCallback
from nmt.translation.parser import parse_lines
from nmt.translation.torch_translator import torch_translator
from nmt.translation.translator import Translator

BATCH_TOKENS = 4000


def validation_score(translator: Translator, corpus: PreparedCorpus, sentences: int | None) -> Score:
    """BLEU, or the F1 of trees, on the first `sentences` of the validation set (None: all).

    The processes share them out.
    """
    source, reference = (lines[:sentences] for lines in corpus.text("valid"))
    rank, world_size = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
    own_source = source[rank::world_size]
    if corpus.manifest.is_treebank:
        own = [tree.bracketed() for tree, _ in parse_lines(translator, own_source)]
    else:
        own = [best[0].text for best in translator.translate(own_source)]
    parts: list[list[str]] = [own]
    if world_size > 1:
        parts = [[] for _ in range(world_size)]
        dist.all_gather_object(parts, own)
    hypotheses = [parts[line % world_size][line // world_size] for line in range(len(source))]
    return score(hypotheses, reference, ["brackets" if corpus.manifest.is_treebank else "bleu"])[0]


class Validation(UpdateCallback):
    """Validates every `config.every_steps` updates, and after the last."""

    def __init__(
        self, corpus: PreparedCorpus, config: ValidationConfig, decode: DecodeConfig, metrics: MetricsCallback
    ) -> None:
        self.corpus, self.config, self.decode, self.metrics = corpus, config, decode, metrics
        self.split = corpus.split("valid")
        if any(len(side) != len(self.split) for side in corpus.text("valid")):
            raise NMTError(f"{corpus.folder}: the texts of valid have other lines than its pairs; prepare it again")
        self.tokenizer = load_tokenizer(corpus.tokenizer_file)
        self.score_key = "valid_f1" if corpus.manifest.is_treebank else "valid_bleu"
        self.best: float | None = None
        """The lowest perplexity, or the highest score, so far."""
        self.worse = 0
        """Validations since then."""
        self.improved = False
        """Whether the last update was validated, and is the best."""

    @property
    def out_of_patience(self) -> bool:
        return self.config.patience is not None and self.worse >= self.config.patience

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best, "worse": self.worse}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.best, self.worse = state_dict["best"], state_dict["worse"]

    def compare(self, metrics: dict[str, float], regular: bool) -> None:
        """See whether this validation is the best; one that is not `regular` leaves no trace for those to come.

        So a run that ended sooner, and was extended, goes on as one that was longer from the beginning.
        """
        by_score = self.config.best == "bleu"
        value = metrics[self.score_key if by_score else "valid_perplexity"]
        self.improved = self.best is None or (value > self.best if by_score else value < self.best)
        if regular:
            self.best, self.worse = (value, 0) if self.improved else (self.best, self.worse + 1)

    def on_update_end(self, trainer: Trainer, module: LightningModule, step: int) -> None:
        self.improved = False
        if step % self.config.every_steps and step != trainer.max_steps:
            return
        assert isinstance(module, TranslationModule)
        with self.metrics.paused(module.device), enough_memory_or(self.advice()):
            self.validate(trainer, module, step)

    def validate(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
        """Measure, report, and see whether it is the best, and whether to stop."""
        module.eval()
        with whole_weights(module):
            metrics = self.losses(trainer, module)
            words = "update {step:,}: validation loss {valid_loss:.3f}, perplexity {valid_perplexity:.2f}"
            if self.config.bleu_sentences != 0:
                translator = torch_translator([module.model], self.tokenizer, self.decode)
                scored = validation_score(translator, self.corpus, self.config.bleu_sentences)
                metrics[self.score_key] = scored.value
                words += f", {scored.name} {{{self.score_key}:.1f}}"
        module.train()
        self.compare(metrics, regular=step % self.config.every_steps == 0)
        self.metrics.report(step, metrics)
        if trainer.is_global_zero:
            self.metrics.console.print(words.format(step=step, **metrics))
        if self.out_of_patience:
            trainer.should_stop = True
            self.metrics.console.print(
                f"no better {self.config.best} in {self.worse} validations: training stops (validation.patience)"
            )

    def advice(self) -> str:
        """The numbers to change where validation does not fit."""
        d = self.decode
        return (
            "validation does not fit beside weights, gradients and Adam's moments. Pass a lower "
            f"decode.batch_tokens={d.batch_tokens} or decode.beam_size={d.beam_size}, or validation.bleu_sentences=0"
        )

    def rehearse(self, trainer: Trainer, module: TranslationModule) -> None:
        """The batches that need the most memory, searched as far as a translation may be long."""
        module.eval()
        with enough_memory_or(self.advice()), whole_weights(module):
            self.sums(trainer, module, self.batches()[:1])
            lengths = self.split.source_lengths[: self.config.bleu_sentences][trainer.global_rank :: trainer.world_size]
            batches = list(batches_by_length(lengths.tolist(), self.decode.batch_tokens))
            if batches:
                rows = max(batches, key=lambda batch: len(batch) * (lengths[batch[0]] + self.decode.max_extra_length))
                places = trainer.global_rank + trainer.world_size * np.array(rows)
                source = self.split.batch(places).source.to(module.device)
                endless = replace(self.decode, min_length=self.decode.max_length or MOST)
                beam_search([module.model], source, endless)
        module.train()

    def batches(self) -> list[list[int]]:
        """Places of the validation set's sentences, the longest first."""
        lengths = np.maximum(self.split.source_lengths, self.split.target_lengths).tolist()
        return list(batches_by_length(lengths, BATCH_TOKENS))

    @torch.no_grad()
    def sums(self, trainer: Trainer, module: TranslationModule, batches: list[list[int]]) -> Tensor:
        """Smoothed loss, negative log likelihood and target tokens."""
        sums = torch.zeros(3, device=module.device)
        for places in batches:
            batch = trainer.strategy.batch_to_device(self.split.batch(np.array(places)))
            with trainer.precision_plugin.val_step_context():
                loss, likelihood = module.losses(batch)
            sums += torch.stack((loss, likelihood, torch.full_like(loss, len(batch.places))))
        return sums

    def losses(self, trainer: Trainer, module: TranslationModule) -> dict[str, float]:
        """Smoothed loss and perplexity (without smoothing) per target token of the whole set."""
        sums = self.sums(trainer, module, self.batches()[trainer.global_rank :: trainer.world_size])
        totals = trainer.strategy.reduce(sums, reduce_op="sum")
        assert isinstance(totals, Tensor)
        loss_sum, likelihood_sum, tokens = totals.tolist()
        return {
            "valid_loss": loss_sum / tokens,
            "valid_perplexity": math.exp(min(likelihood_sum / tokens, 100)),
        }
