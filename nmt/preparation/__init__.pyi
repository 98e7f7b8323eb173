from .corpora import Corpus as Corpus, corpus_for as corpus_for, file_digests as file_digests
from .preprocess import preprocess as preprocess
from .workers import begin as begin, worker_pool as worker_pool
