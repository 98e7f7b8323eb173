from .contrast import ContrastivePair as ContrastivePair, Tally as Tally, read_contrast as read_contrast
from .flags import count_flags as count_flags, flags as flags
from .scores import (
    Score as Score,
    Scoring as Scoring,
    bleu_tokenizer as bleu_tokenizer,
    sacrebleu_metric as sacrebleu_metric,
    score as score,
    sentence_scorer as sentence_scorer,
    signature_tokenizer as signature_tokenizer,
)
