"""The figures of the paper's tables (arXiv:1706.03762), as they are printed there."""

from typing import NamedTuple


class System(NamedTuple):
    """A row of Table 2: BLEU on newstest2014, and the FLOPs of training; None where the paper has no figure."""

    name: str
    bleu_de: str | None = None
    bleu_fr: str | None = None
    flops_de: str | None = None
    flops_fr: str | None = None


OTHER_SYSTEMS = [
    System("ByteNet", "23.75"),
    System("Deep-Att + PosUnk", None, "39.2", None, "1.0e20"),
    System("GNMT + RL", "24.6", "39.92", "2.3e19", "1.4e20"),
    System("ConvS2S", "25.16", "40.46", "9.6e18", "1.5e20"),
    System("MoE", "26.03", "40.56", "2.0e19", "1.2e20"),
    System("Deep-Att + PosUnk ensemble", None, "40.4", None, "8.0e20"),
    System("GNMT + RL ensemble", "26.30", "41.16", "1.8e20", "1.1e21"),
    System("ConvS2S ensemble", "26.36", "41.29", "7.7e19", "1.2e21"),
]
TRANSFORMERS = {
    "base": System("Transformer (base)", "27.3", "38.1", "3.3e18", "3.3e18"),
    "big": System("Transformer (big)", "28.4", "41.8", "2.3e19", "2.3e19"),
}


class Variation(NamedTuple):
    """A row of Table 3: perplexity and BLEU on newstest2013, millions of parameters."""

    name: str
    """Of its file in conf/experiment/table3."""
    letter: str
    change: str
    perplexity: str | None = None
    bleu: str | None = None
    parameters: str | None = None


VARIATIONS = [
    Variation("base", "base", "", "4.92", "25.8", "65"),
    Variation("a_heads_1", "A", "h 1, d_k = d_v = 512", "5.29", "24.9"),
    Variation("a_heads_4", "A", "h 4, d_k = d_v = 128", "5.00", "25.5"),
    Variation("a_heads_16", "A", "h 16, d_k = d_v = 32", "4.91", "25.8"),
    Variation("a_heads_32", "A", "h 32, d_k = d_v = 16", "5.01", "25.4"),
    Variation("b_d_k_16", "B", "d_k 16", "5.16", "25.1", "58"),
    Variation("b_d_k_32", "B", "d_k 32", "5.01", "25.4", "60"),
    Variation("c_layers_2", "C", "N 2", "6.11", "23.7", "36"),
    Variation("c_layers_4", "C", "N 4", "5.19", "25.3", "50"),
    Variation("c_layers_8", "C", "N 8", "4.88", "25.5", "80"),
    Variation("c_d_model_256", "C", "d_model 256, d_k = d_v = 32", "5.75", "24.5", "28"),
    Variation("c_d_model_1024", "C", "d_model 1024, d_k = d_v = 128", "4.66", "26.0", "168"),
    Variation("c_d_ff_1024", "C", "d_ff 1024", "5.12", "25.4", "53"),
    Variation("c_d_ff_4096", "C", "d_ff 4096", "4.75", "26.2", "90"),
    Variation("d_dropout_0", "D", "P_drop 0.0", "5.77", "24.6"),
    Variation("d_dropout_0.2", "D", "P_drop 0.2", "4.95", "25.5"),
    Variation("d_label_smoothing_0", "D", "ε_ls 0.0", "4.67", "25.3"),
    Variation("d_label_smoothing_0.2", "D", "ε_ls 0.2", "5.47", "25.7"),
    Variation("e_learned_positions", "E", "learned positions instead of sinusoids", "4.92", "25.7"),
    Variation("big", "big", "d_model 1024, d_ff 4096, h 16, P_drop 0.3, 300K updates", "4.33", "26.4", "213"),
]
COMPARISONS = [
    Variation("additive", "3.2.1", "additive attention"),
    Variation("dot_product", "3.2.1", "dot-product attention, not scaled"),
    Variation("restricted_15", "4", "self-attention restricted to 15 positions"),
]
"""What the paper says in words, without figures of its own."""


class Parser(NamedTuple):
    """A row of Table 4: F1 on section 23 of the Wall Street Journal."""

    name: str
    training: str
    f1: str
    transformer: bool = False


PARSERS = [
    Parser("Vinyals & Kaiser 2014", "WSJ only", "88.3"),
    Parser("Petrov et al. 2006", "WSJ only", "90.4"),
    Parser("Zhu et al. 2013", "WSJ only", "90.4"),
    Parser("Dyer et al. 2016", "WSJ only", "91.7"),
    Parser("Transformer (4 layers)", "WSJ only", "91.3", transformer=True),
    Parser("Zhu et al. 2013", "semi-supervised", "91.3"),
    Parser("Huang & Harper 2009", "semi-supervised", "91.3"),
    Parser("McClosky et al. 2006", "semi-supervised", "92.1"),
    Parser("Vinyals & Kaiser 2014", "semi-supervised", "92.1"),
    Parser("Transformer (4 layers)", "semi-supervised", "92.7", transformer=True),
    Parser("Luong et al. 2015", "multi-task", "93.0"),
    Parser("Dyer et al. 2016", "generative", "93.3"),
]
