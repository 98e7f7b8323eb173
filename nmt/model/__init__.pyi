from .attention import MultiHeadAttention as MultiHeadAttention
from .embedding import sinusoids as sinusoids
from .flops import training_flops as training_flops
from .layers import (
    DecoderLayer as DecoderLayer,
    EncoderLayer as EncoderLayer,
    FeedForward as FeedForward,
    Residual as Residual,
)
from .positions import position_angles as position_angles, sinusoid_table as sinusoid_table
from .transformer import Transformer as Transformer
