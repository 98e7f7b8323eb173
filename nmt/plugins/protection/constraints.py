"""Lexical constraints: the phrases that the translation of each sentence must contain. No torch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from nmt.config import DecodeConfig
from nmt.plugins.protection.phrases import Constraint
from nmt.plugins.protection.tracker import Tracker
from nmt.plugins.protection.written_terms import WrittenTerms

if TYPE_CHECKING:
    from torch import Tensor

    from nmt.model import Transformer
    from nmt.search import Hypothesis


@dataclass(frozen=True)
class PhraseConstraints:
    """Non-overlapping phrases that the translation of each sentence must contain.

    With `terms`, the text decides which phrases it contains, and tokens only guide the search.
    """

    rows: Sequence[Sequence[Constraint]]
    """The constraints of each sentence."""
    kinds: bytes
    """The kind of each vocabulary entry; see `kinds_of_tokens`."""
    terms: WrittenTerms | None = None

    def of(self, indices: Sequence[int]) -> "PhraseConstraints":
        # The engine orders sentences into batches as it likes.
        rows = [self.rows[index] for index in indices]
        terms = self.terms.of(indices) if self.terms else None
        return PhraseConstraints(rows, self.kinds, terms)

    def without(self, index: int, number: int) -> "PhraseConstraints":
        """All constraints of a sentence except one."""
        row = [*self.rows[index]]
        del row[number]
        terms = self.terms
        if terms:
            forms = [*terms.rows[index]]
            del forms[number]
            # The sentence is now the only one, so its index in both lists is 0.
            terms = replace(terms, rows=[forms])
        return PhraseConstraints([row], self.kinds, terms)

    def are_met(self, index: int, tokens: Sequence[int]) -> bool:
        # This also judges translations of engines that know no constraints, such as CTranslate2.
        if self.terms:
            all_terms = (1 << len(self.rows[index])) - 1
            return self.terms.met(index, tokens) == all_terms
        tracker = Tracker(self.rows[index], self.kinds)
        state = tracker.start
        for token in tokens:
            state = tracker.step(state, token)
        return tracker.left(state) == 0

    def search(
        self,
        models: "Sequence[Transformer]",
        source_BS: "Tensor",
        config: DecodeConfig,
        prefixes: Sequence[list[int]],
    ) -> "list[list[Hypothesis]]":
        from nmt.plugins.protection.constrained_search import constrained_search  # imports torch

        return constrained_search(models, source_BS, config, prefixes, self)
