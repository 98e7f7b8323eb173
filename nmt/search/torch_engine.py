"""PyTorch search on any device, and forced decoding: the log probabilities and attention of given translations.

Attention weights, softmax(Q K^T / sqrt(d_k)) of equation 1, are computed separately, because the model uses PyTorch's
fused attention, which does not return them.

Shapes: B pairs, T target positions, S source positions, L layers, H heads, D d_model, M positions in all pairs.
"""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from nmt.config import BOS, PAD, DecodeConfig, NMTError
from nmt.kernels import few_shapes, prepare
from nmt.model import DecoderLayer, MultiHeadAttention, Transformer, load_model
from nmt.search import (
    Constraints,
    EngineOptions,
    Hypothesis,
    Pair,
    TokenScores,
    aligning_layer,
    batch_tokens,
    batches_by_length,
)
from nmt.search.beam_search import beam_search, pad, pad_source


def choose_device(name: str) -> str:
    """Resolve a device name; auto is cuda if available, else cpu. NMTError if PyTorch cannot use the device."""
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=name)
    except (RuntimeError, AssertionError) as error:
        raise NMTError(f"device={name}: not available here ({str(error).splitlines()[0]}); use device=cpu") from error
    return name


@contextmanager
def without_deterministic_mode() -> Iterator[None]:
    """Allow all operations in a block, where training may have turned deterministic mode on.

    In that mode, some operations of a search raise on a GPU, such as cumulative sums (top_p).
    """
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("default")
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(before)


def load(folders: Sequence[Path], options: EngineOptions, notice: Callable[[str], None]) -> "TorchEngine":
    prepare()
    if options.threads:
        torch.set_num_threads(options.threads)
    device, dtype = choose_device(options.device), getattr(torch, options.precision)
    models = [load_model(folder, device).to(dtype) for folder in folders]
    return TorchEngine(models, options.decode, keeps_kernels=True)


class TorchEngine:
    """A model, or an ensemble of models that share a vocabulary; puts the models in evaluation mode.

    `keeps_kernels` lets oneDNN keep many kernels; do not use it in a process that trains.
    """

    longest: int | None = None
    ahead = False
    turn: AbstractContextManager[Any] = threading.Lock()  # held for each batch, so that threads take turns

    def __init__(self, models: Sequence[Transformer], config: DecodeConfig, keeps_kernels: bool = False) -> None:
        self.models, self.config, self.keeps_kernels = [model.eval() for model in models], config, keeps_kernels

    @property
    def device(self) -> torch.device:
        return next(self.models[0].parameters()).device

    @property
    def batch_tokens(self) -> int:
        return batch_tokens(self.config, self.device.type)

    def with_search(self, config: DecodeConfig) -> "TorchEngine":
        other = copy(self)
        other.config = config
        return other

    def search(
        self, sentences: Sequence[list[int]], prefixes: Sequence[list[int]], constraints: Constraints | None = None
    ) -> list[list[Hypothesis]]:
        """Search in batches of similar length; see `Engine`."""
        results: list[list[Hypothesis]] = [[] for _ in sentences]
        rows = constraints.rows if constraints else [()] * len(sentences)
        # Search constrained sentences separately, so that they do not affect the other sentences.
        for part in ([n for n, row in enumerate(rows) if not row], [n for n, row in enumerate(rows) if row]):
            lengths = [len(sentences[n]) + 1 for n in part]
            for batch in batches_by_length(lengths, self.batch_tokens):
                batch = [part[n] for n in batch]
                source_BS = pad_source([sentences[n] for n in batch], self.device)
                arguments = self.models, source_BS, self.config, [prefixes[n] for n in batch]
                search = constraints.of(batch).search if constraints and rows[batch[0]] else beam_search
                kernels = few_shapes() if self.keeps_kernels else nullcontext()
                with self.turn, without_deterministic_mode(), kernels:
                    for index, hypotheses in zip(batch, search(*arguments), strict=True):
                        results[index] = hypotheses
        return results

    def token_scores(self, pairs: Sequence[Pair], align: bool = True) -> list[TokenScores]:
        with self.turn, without_deterministic_mode():
            return forced_decoding(self.models, pairs, self.batch_tokens, align)


POSITIONS_AT_ONCE = 512  # positions whose logits are in memory at once


@contextmanager
def recorded(attentions: Sequence[MultiHeadAttention]) -> Iterator[list[Tensor]]:
    """Collect the weights of these attention modules, [B, H, T, S], while the model runs."""
    weights: list[Tensor] = []

    def attend(attention: MultiHeadAttention, q: Tensor, k: Tensor, v: Tensor, *mask: Any, **causal: Any) -> Tensor:
        weights.append(attention.weights(q, k, *mask, **causal))
        return MultiHeadAttention.attend(attention, q, k, v, *mask, **causal)

    for attention in attentions:
        attention.attend = partial(attend, attention)  # type: ignore[method-assign]
    try:
        yield weights
    finally:
        for attention in attentions:
            del attention.attend


def token_log_probabilities(model: Transformer, hidden_MD: Tensor, tokens_M: Tensor) -> Tensor:
    """log P of the token after each hidden state, [M], without holding the logits of all positions in memory."""
    parts = zip(hidden_MD.split(POSITIONS_AT_ONCE), tokens_M.split(POSITIONS_AT_ONCE), strict=True)
    logp = (model.logits(hidden).float().log_softmax(dim=1).gather(1, tokens[:, None]) for hidden, tokens in parts)
    return torch.cat(list(logp))[:, 0]


def score_batch(
    models: Sequence[Transformer], source_BS: Tensor, inputs_BT: Tensor, tokens_BT: Tensor, align: bool
) -> tuple[Tensor, Tensor | None]:
    """log P of each non-padding token, pair by pair, [M]; with `align`, also the heads' mean attention, [B, T, S]."""
    real_BT = tokens_BT != PAD
    log_probabilities, attention = [], []
    for model in models:
        layer = cast(DecoderLayer, model.decoder_layers[aligning_layer(len(model.decoder_layers))])
        with recorded([layer.cross_attention] if align else []) as weights:
            hidden_BTD = model.decode(inputs_BT, model.encode(source_BS), source_BS)
        log_probabilities.append(token_log_probabilities(model, hidden_BTD[real_BT], tokens_BT[real_BT]))
        attention += [weights_BHTS.mean(dim=1) for weights_BHTS in weights]
    mean_M = torch.stack(log_probabilities).logsumexp(0) - math.log(len(models))
    return mean_M, torch.stack(attention).mean(dim=0) if align else None


@torch.inference_mode()
def forced_decoding(
    models: Sequence[Transformer], pairs: Sequence[Pair], budget: int, align: bool = False
) -> list[TokenScores]:
    """Score the tokens of each pair with a model, or with an ensemble that averages probabilities.

    The longer side of each batch has at most `budget` tokens. If `align`, also return the attention to the source,
    taken from the step that predicts the target token; one step later, the model attends to what comes next.
    """
    device = next(models[0].parameters()).device
    scores: dict[int, TokenScores] = {}
    for batch in batches_by_length([max(map(len, pair)) + 1 for pair in pairs], budget):
        sources, targets = zip(*(pairs[index] for index in batch), strict=True)
        inputs = pad([[BOS, *ids] for ids in targets], device)
        log_probabilities_M, attention_BTS = score_batch(
            models, pad_source(sources, device), inputs, pad_source(targets, device), align
        )
        rows = log_probabilities_M.split([len(ids) + 1 for ids in targets])
        for row, index in enumerate(batch):
            source, target = pairs[index]
            scores[index] = TokenScores(rows[row].tolist())
            if attention_BTS is not None:
                scores[index].attention = attention_BTS[row, : len(target), : len(source)].float().cpu().numpy()
    return [scores[index] for index in range(len(pairs))]
