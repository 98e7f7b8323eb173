"""The embeddings of new vocabulary entries, composed from those of old ones.

Shapes: D d_model, N vocabulary, A added entries.
"""

import unicodedata
from dataclasses import replace

import torch
from torch import Tensor, nn

from nmt.files import EMBEDDINGS
from nmt.model import Transformer
from nmt.plugins.extend.learning import NewPiece

Sources = list[list[int]]
"""For each new entry, the ids of old entries whose mean it starts from; none: all."""


def sources_of_pieces(pieces: list[NewPiece], ids: dict[str, int]) -> Sources:
    """The old entries that each new piece consists of, given the ids of the old pieces."""
    entries = {piece: [id] for piece, id in ids.items()}
    sources = []
    for piece in pieces:
        composing = similar_characters(piece.text, ids)
        if piece.parts:
            # The parts of a piece are old, or come before it.
            composing = []
            for part in piece.parts:
                composing += entries.get(part, [])
        entries[piece.text] = composing
        sources.append(composing)
    return sources


def similar_characters(character: str, ids: dict[str, int]) -> list[int]:
    """The old entries for a character in the other case, or for its parts: o and an accent."""
    candidates = [
        [character.lower()],
        [character.upper()],
        [*unicodedata.normalize("NFD", character)],
        [*unicodedata.normalize("NFKD", character)],
    ]
    for characters in candidates:
        similar = ids.keys() & characters
        if similar:
            return sorted(ids[one] for one in similar)
    return []


def composed_rows(matrix: Tensor, sources: Sources) -> Tensor:
    """The means of the named rows of a matrix [N, D] or vector [N]: [A, D] or [A]."""
    everything = matrix.mean(dim=0)
    rows = [matrix[row].mean(dim=0) if row else everything for row in sources]
    return torch.stack(rows)


def with_rows(model: Transformer, sources: Sources) -> Transformer:
    """A model with more vocabulary entries, which it reads, but does not predict yet.

    Everything that it computes without them stays the same to the bit.
    """
    added = len(sources)
    config = replace(model.config, untrained=model.config.untrained + added)
    weights = dict(model.state_dict())
    for name in (*EMBEDDINGS, "output.bias"):
        # A matrix of separate source entries would need its own rows.
        if name in weights:
            old = weights[name]
            weights[name] = torch.cat((old, composed_rows(old, sources).to(old)))
    with torch.device("meta"):
        extended = Transformer(config, model.vocabulary_size + added)
    extended.load_state_dict(weights, assign=True)
    if config.tied_embeddings:
        extended.tie_embeddings()
    assert isinstance(extended.output, nn.Linear)
    return extended.eval()
