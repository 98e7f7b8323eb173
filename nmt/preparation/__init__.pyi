from .arrow_files import arrow_blocks as arrow_blocks
from .arrow_files import arrow_writer as arrow_writer
from .corpus_folder import preprocess as preprocess
from .sources import Corpus as Corpus
from .sources import corpus_for as corpus_for
from .sources import file_digests as file_digests
from .workers import begin as begin
from .workers import worker_pool as worker_pool
