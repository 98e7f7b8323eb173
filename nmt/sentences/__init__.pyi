from .splitting import split_sentences as split_sentences
