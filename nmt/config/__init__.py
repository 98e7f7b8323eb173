"""Typed configuration: what every key means, its unit, and the rules between keys.

The values live in the YAML groups under `conf/`; the defaults there are the paper's. The text under
a field is its help: `nmt COMMAND --help` prints it. Sections and tables are those of
"Attention Is All You Need" (arXiv:1706.03762).
"""

from nmt.config.corpus import BOS, EOS, PAD, UNK, DataConfig, FilterConfig, TokenizerConfig
from nmt.config.decoding import DecodeConfig
from nmt.config.model import ModelConfig
from nmt.config.noise import NoiseConfig
from nmt.config.rules import field_help
from nmt.config.sources import SourceConfig, held_out_name, sources_of
from nmt.config.training import (
    BatchingConfig,
    CheckpointConfig,
    ExperimentConfig,
    OptimConfig,
    ValidationConfig,
)
from nmt.config.translation import RayConfig, SearchConfig, TranslateConfig

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "UNK",
    "BatchingConfig",
    "CheckpointConfig",
    "DataConfig",
    "DecodeConfig",
    "ExperimentConfig",
    "FilterConfig",
    "ModelConfig",
    "NoiseConfig",
    "OptimConfig",
    "RayConfig",
    "SearchConfig",
    "SourceConfig",
    "TokenizerConfig",
    "TranslateConfig",
    "ValidationConfig",
    "field_help",
    "held_out_name",
    "sources_of",
]
