"""Options of `nmt synthesise`: pairs for training, whose one side a model writes."""

from dataclasses import dataclass

from nmt.config import TAG, TranslateConfig, number, require, require_choice


@dataclass
class SynthesiseConfig(TranslateConfig):
    """The tree of `nmt synthesise`."""

    input: str = "-"
    """File of lines, plain or compressed, a folder of such files, or a pattern of their names in quotes."""
    output: str = "-"
    """Folder for the pairs and what they are made from; after a kill the same command goes on."""
    kind: str = "back_translation"
    """back_translation (a translation is the source of its line, by a model of the other direction, Sennrich 2016) or
    distillation (it is the target, for a student to learn from, Kim and Rush 2016)."""
    tag: str | None = None
    """A symbol before each back-translation when it is prepared, BT for <BT> (Caswell 2019), in the printed command."""
    reference: str | None = None
    """File of references, a line for each of input: of decode.n_best translations, the one most like it is taken."""
    metric: str = "chrf"
    """How like a reference is: chrf or bleu, of the sentence."""
    drop: float = number(0.0, 0.0, 0.99)
    """Share of pairs to leave out, those with the lowest log P per token."""
    reverse: str | None = None
    """A run of the other direction: log P is then that of the line, given its translation."""
    flagged: str = "drop"
    """Pairs with flags of likely failures, as those of `nmt score flags=true`: drop or keep."""
    lines: int = number(2000, 1, 10**9)
    """Lines of each part, which is the most that a worker loses when a run is killed."""
    format: str = "tsv"
    """Not used."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("kind", self.kind, ("back_translation", "distillation"))
        require_choice("metric", self.metric, ("chrf", "bleu"))
        require_choice("flagged", self.flagged, ("drop", "keep"))
        if self.tag is not None:
            self.tag = f"<{self.tag.strip('<>')}>"
            require(bool(TAG.fullmatch(self.tag)), f"tag={self.tag!r:.60}: a word such as BT, please")
        require(self.kind == "back_translation" or self.tag is None, "tag: of back-translations; leave it out")
        several = self.decode.n_best > 1
        require(
            several == (self.reference is not None),
            f"reference={self.reference} with decode.n_best={self.decode.n_best}: the best of several needs both, "
            "reference=FILE and decode.n_best=8 decode.beam_size=8, or so",
        )
        plain = (self.format, self.input_format) == (SynthesiseConfig.format, "text")
        require(plain, "format, input_format: of `nmt translate`; here a line is a line, so leave them out")
        self.ray.lines = self.lines

    def require_files(self) -> None:
        """NMTError for options that Ray takes under other keys."""
        self.require_no_devices()

    def check_paths(self) -> None:
        """NMTError for standard input or output, which cannot be gone on with."""
        require(
            self.input != "-" and self.text is None,
            "input: of files, not of standard input, nor a text; pass input=FILE",
        )
        require(self.output != "-", "output: the pairs are written to a folder; pass output=FOLDER")
