"""Join the ids of consecutive pairs into one training pair (data.join)."""

from collections.abc import Sequence
from pathlib import Path

from nmt.config import NMTError, SourceConfig, structured_targets
from nmt.data.lengths import Ints
from nmt.data.transforms import IdPair
from nmt.text import SOURCE, TARGET, joined, load_tokenizer


class PairJoiner:
    """Joins pairs whose source and target may begin with tags, which the result has once."""

    def __init__(self, tokenizer_file: Path, sources: Sequence[SourceConfig]) -> None:
        self.tokenizer = load_tokenizer(tokenizer_file)
        self.tags = [self.tags_of(source) for source in sources]

    def tags_of(self, source: SourceConfig) -> tuple[int, int]:
        """The number of tokens that a tag adds to sources and targets."""
        tag = source.data.tag
        if tag is None:
            return 0, 0
        return 1, len(self.tokenizer.target_start(tag))

    def __call__(self, pairs: Sequence[IdPair], counts: Ints, sources: Ints) -> list[IdPair]:
        """Join `counts[i]` pairs from source `sources[i]`, for each i in turn."""
        results = []
        begin = 0
        for count, source in zip(counts.tolist(), sources.tolist(), strict=True):
            of_row = pairs[begin : begin + count]
            begin += count
            if count == 1:
                results.append(of_row[0])
                continue
            source_tags, target_tags = self.tags[source]
            source_ids = self.side([ids for ids, _ in of_row], SOURCE, source_tags)
            target_ids = self.side([ids for _, ids in of_row], TARGET, target_tags)
            results.append((source_ids, target_ids))
        return results

    def side(self, sentences: list[list[int]], side: int, tags: int) -> list[int]:
        """The ids of joined sentences, each of which begins with `tags` tokens."""
        start = sentences[0][:tags]
        bodies = [ids[tags:] for ids in sentences]
        result = [*start]
        for body in bodies:
            result += body
        texts = [self.tokenizer.decode(body, side) for body in bodies]
        text = joined(texts)
        # No subword crosses a space, so the ids of the sentences are those of the joined text.
        if text == " ".join(texts):
            return result
        # Chinese and Japanese have no space between sentences.
        [ids] = self.tokenizer.encode([text], side)
        without_blanks = start + ids
        # Batches are planned for the sum of the lengths.
        return without_blanks if len(without_blanks) <= len(result) else result


def joiner_for(tokenizer_file: Path, sources: Sequence[SourceConfig]) -> PairJoiner | None:
    """What joins the pairs of these sources; None if no option asks for it.

    Raises NMTError for targets that are not text.
    """
    joining = [source for source in sources if joins_pairs(source)]
    if not joining:
        return None
    for source in joining:
        if structured_targets(source.data.kind):
            raise NMTError(f"data.join={source.data.join}: joins text, but targets are structures")
    return PairJoiner(tokenizer_file, sources)


def joins_pairs(source: SourceConfig) -> bool:
    return source.data.join > 1 and source.data.join_probability > 0
