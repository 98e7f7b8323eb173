from .layers import SSRU as SSRU, DecoderLayer as DecoderLayer, EncoderLayer as EncoderLayer, FeedForward as FeedForward
from .layers import MultiHeadAttention as MultiHeadAttention, Residual as Residual, sinusoids as sinusoids
from .transformer import Transformer as Transformer
from .weights import check_ours as check_ours, check_shapes as check_shapes, described as described
from .weights import load_model as load_model, training_flops as training_flops
from .weights import write_model_directory as write_model_directory
