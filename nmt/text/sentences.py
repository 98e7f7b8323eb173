"""Sentence ends, for lines that are too long for a model."""


def split_sentences(text: str, language: str) -> list[str]:
    """The sentences of a line, by the rules of its language or general ones; together they are the whole line."""
    import sentencex

    return [sentence for sentence in sentencex.segment(language, text) if sentence.strip()]
