from .preprocess import preprocess as preprocess
from .workers import begin as begin, worker_pool as worker_pool
