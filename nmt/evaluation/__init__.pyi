from .scores import Score as Score, Scoring as Scoring, bleu_tokenizer as bleu_tokenizer
from .scores import sacrebleu_metric as sacrebleu_metric, score as score, sentence_scorer as sentence_scorer
