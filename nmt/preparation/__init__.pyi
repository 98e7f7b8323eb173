from .arrow_files import arrow_blocks as arrow_blocks, arrow_writer as arrow_writer
from .preparation import preprocess as preprocess
from .sources import Corpus as Corpus, corpus_for as corpus_for, file_digests as file_digests
from .workers import begin as begin, worker_pool as worker_pool
