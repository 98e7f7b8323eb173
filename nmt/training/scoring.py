"""Loss and score on the validation set."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from lightning.fabric.utilities import move_data_to_device

from nmt import evaluation, search
from nmt.data import Domain, PreparedCorpus, PreparedSplit
from nmt.model import Transformer
from nmt.training.loss import summed_losses
from nmt.translation import Translator, kind_of_corpus

BATCH_TOKENS = 4000
"""Of the longer side of a validation batch, with padding. It decides the last bits of the loss."""


@dataclass
class DomainTexts:
    """The translated lines of a domain and their references."""

    translations: list[str]
    references: list[str]


def translated(
    translator: Translator, corpus: PreparedCorpus, domains: list[Domain], sentences: int | None
) -> list[DomainTexts]:
    """Translate the first `sentences` lines of each domain (None: all).

    All processes share the work, and get all translations.
    """
    sources, targets = corpus.text("valid")
    rank = dist.get_rank() if dist.is_initialized() else 0
    processes = dist.get_world_size() if dist.is_initialized() else 1
    translate = kind_of_corpus(corpus).translate
    texts = []
    for domain in domains:
        rows = domain.rows[:sentences]
        # Every nth line, so that all processes get a similar number of long lines.
        # Stored lines are raw text, without the tag that a source's lines get in preparation.
        our_lines = [domain.tag + sources[row] for row in rows[rank::processes]]
        our_translations = translate(translator, our_lines)
        parts = [our_translations] * processes
        if processes > 1:
            dist.all_gather_object(parts, our_translations)
        translations = []
        # Undo the division: line i is number i // n of process i % n.
        for line in range(len(rows)):
            process = line % processes
            translations.append(parts[process][line // processes])
        references = [targets[row] for row in rows]
        texts.append(DomainTexts(translations, references))
    return texts


def joint_score(
    corpus: PreparedCorpus, domains: list[DomainTexts], tokenize: str | None
) -> evaluation.Score:
    """One score for the lines of several domains together."""
    hypotheses: list[str] = []
    references: list[str] = []
    for texts in domains:
        hypotheses += texts.translations
        references += texts.references
    metrics = [kind_of_corpus(corpus).metric]
    scores = evaluation.score(
        hypotheses, references, metrics, corpus.target_language, tokenize=tokenize
    )
    return scores[0]


def batches_of(split: PreparedSplit, rows: range) -> list[np.ndarray]:
    """The pairs of these rows, in batches of pairs of similar lengths."""
    part = slice(rows.start, rows.stop)
    lengths = np.maximum(split.source_lengths[part], split.target_lengths[part]).tolist()
    row_numbers = np.array(rows)
    return [row_numbers[batch] for batch in search.batches_by_length(lengths, BATCH_TOKENS)]


@torch.no_grad()
def validation_loss(model: Transformer, split: PreparedSplit, label_smoothing: float) -> float:
    """The smoothed loss per target token on the model's device, in float32."""
    device = next(model.parameters()).device
    total = 0.0
    tokens = 0
    for indices in batches_of(split, range(len(split))):
        batch = move_data_to_device(split.batch(indices), device)
        # Without autocast, because the delivered model has float32 weights.
        loss, _ = summed_losses(model, batch, label_smoothing)
        total += loss.item()
        tokens += len(batch.target_indices)
    return total / tokens
