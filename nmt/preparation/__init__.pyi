from .corpora import Corpus as Corpus, corpus_for as corpus_for, file_digests as file_digests
from .preprocess import preprocess as preprocess
from .reading import arrow_blocks as arrow_blocks, arrow_writer as arrow_writer, list_column as list_column
from .workers import begin as begin, worker_pool as worker_pool
