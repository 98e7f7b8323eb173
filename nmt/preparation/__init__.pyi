from .preparation import begin as begin, preprocess as preprocess, worker_pool as worker_pool
from .reading import Corpus as Corpus, arrow_blocks as arrow_blocks, arrow_writer as arrow_writer
from .reading import corpus_for as corpus_for, file_digests as file_digests
