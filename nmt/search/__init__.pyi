from .beam_search import Search as Search, beam_search as beam_search, largest as largest
from .beam_search import pad_source as pad_source
from .engine import Constraints as Constraints, Engine as Engine, EngineOptions as EngineOptions
from .engine import Hypothesis as Hypothesis, Pair as Pair, TokenScores as TokenScores, aligning_layer as aligning_layer
from .engine import batch_tokens as batch_tokens, batches_by_length as batches_by_length
from .engine import penalty as penalty
from .torch_engine import forced_decoding as forced_decoding, recorded as recorded
from .torch_engine import TorchEngine as TorchEngine, choose_device as choose_device
