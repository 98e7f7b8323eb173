"""BPE and unigram vocabularies, with sentencepiece."""

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from nmt.config import UNK
from nmt.text.normalization import NORMALIZATIONS, SOURCE, TARGET, Normalization
from nmt.text.tokenizers import BEFORE_NORMALIZATION, META, Tokenizer

ESCAPE = "\ue000"
"""The first character of the escape of a META, or of this character, in a text."""
FEW_TEXTS = 32
"""Fewer texts than this are encoded one by one."""
MANY_TEXTS = 1000
"""More texts than this are encoded by several threads."""
OF_SENTENCEPIECE = "nmt_"
"""The prefix of nmt's normalization in a sentencepiece model, which itself normalizes nothing."""


def escaped(line: str) -> str:
    """Convert a line to the form that sentencepiece receives."""
    # sentencepiece writes META for spaces, so a META in a text would come back as a space. ESCAPE
    # goes first: otherwise, the escapes of META would be escaped again.
    return line.replace(ESCAPE, ESCAPE + "0").replace(META, ESCAPE + "1")


def unescaped(text: str) -> str:
    # The reverse order of `escaped`.
    return text.replace(ESCAPE + "1", META).replace(ESCAPE + "0", ESCAPE)


def stored_normalization(content: bytes) -> Normalization:
    """The normalization that a sentencepiece model records.

    Models of earlier versions have other names there.
    """
    import sentencepiece

    # Importing the parser of whole models takes 50 ms. In the serialized message, the first field
    # is the name: its field number, its length in bytes, and its text.
    # Lengths below 128 take one byte in protocol buffers; the names are shorter.
    spec = sentencepiece.SentencePieceNormalizer(model_proto=content).serialized_normalizer_spec()
    name = BEFORE_NORMALIZATION
    if spec[:1] == b"\n":
        length = spec[1]
        name = spec[2 : 2 + length].decode().removeprefix(OF_SENTENCEPIECE)
    return NORMALIZATIONS.get(name, NORMALIZATIONS[BEFORE_NORMALIZATION])


class SentencePieceTokenizer(Tokenizer):
    """BPE or unigram; characters outside the vocabulary are spelled as bytes.

    For few lines, it starts no threads.
    """

    def __init__(self, content: bytes) -> None:
        import sentencepiece

        super().__init__(content)
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=content)
        self.vocabulary_size = int(self.processor.vocab_size())
        self.normalization = stored_normalization(content)
        # Tags are the control symbols after those that every vocabulary has.
        ids = range(UNK + 1, self.vocabulary_size)
        tag_ids = takewhile(self.processor.is_control, ids)
        self.tags = {self.symbol(id): id for id in tag_ids}

    @property
    def kind(self) -> str:
        trainer = self.parsed().trainer_spec
        return "unigram" if trainer.model_type == trainer.UNIGRAM else "bpe"

    def parsed(self) -> Any:
        """The vocabulary as sentencepiece stores it, with types and scores."""
        return parse_sentencepiece(self.content)

    def symbol(self, id: int, side: int = TARGET) -> str:
        return str(self.processor.id_to_piece(id))

    def encode(self, lines: Sequence[str], side: int = SOURCE, tag: str = "") -> list[list[int]]:
        # A tag in a target is text like any other.
        if side != SOURCE or not self.tags:
            return encode_texts(self.processor, [escaped(line) for line in lines])
        # sentencepiece encodes no text as a control symbol, so tags are added here.
        tags = [self.leading_tag(line) for line in lines]
        texts = []
        for line, tag in zip(lines, tags, strict=True):
            untagged = line.removeprefix(tag).lstrip() if tag else line
            texts.append(escaped(untagged))
        encoded = encode_texts(self.processor, texts)
        for ids, tag in zip(encoded, tags, strict=True):
            if tag:
                ids.insert(0, self.tags[tag])
        return encoded

    def decode(self, ids: Sequence[int], side: int = TARGET) -> str:
        # Special symbols have no text.
        subwords = [int(id) for id in ids if id > UNK]
        return unescaped(str(self.processor.decode(subwords)))


def encode_texts(processor: Any, texts: list[str]) -> list[list[int]]:
    """The numbers of the pieces of each text, with sentencepiece."""
    # Even with num_threads=1, encoding a list starts a thread, which takes longer than encoding a
    # few texts.
    if len(texts) < FEW_TEXTS:
        return [processor.encode(text) for text in texts]
    threads = 1 if len(texts) < MANY_TEXTS else -1
    encoded: list[list[int]] = processor.encode(texts, num_threads=threads)
    return encoded


def parse_sentencepiece(content: bytes) -> Any:
    """A sentencepiece model as a protocol buffer."""
    from sentencepiece import sentencepiece_model_pb2

    model: Any = sentencepiece_model_pb2
    return model.ModelProto.FromString(content)
