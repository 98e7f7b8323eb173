"""Test sets: lines to translate and their references, from files or from a model's corpus."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from nmt import data
from nmt.config import DecodeConfig, NMTError, structured_targets
from nmt.files import MODEL_FILES, find_model_directory, is_prefixed, read_description, sha256
from nmt.text import language_of_file, not_parallel, read_texts

Text = str | Path | Iterable[str]
"""A file, or its lines."""
SPLITS = {
    "valid": "validation",
    "test": "test",
}
"""Held-out sets -> their names in sentences."""


@dataclass
class TestSet:
    """Lines to translate, and their references."""

    name: str
    sources: list[str] | None  # None if only the references are given
    references: list[str]
    corpus: "data.PreparedCorpus | None" = None
    language: str | None = None  # of the references, if known
    tags: list[str] = field(default_factory=list)  # one for each source; none without a corpus

    __test__ = False  # keeps pytest from collecting this class


def cited_model(run: str) -> Path:
    """The model directory of a run or model directory."""
    path = Path(run)
    if not is_prefixed(run) and path.is_symlink():  # runs/latest may point to another run tomorrow
        run = str(path.parent / path.readlink())
    return find_model_directory(run)


def names_model(system: str) -> bool:
    """Whether a system is a run or a model, not a file of translations."""
    return is_prefixed(system) or Path(system).is_dir()


def digests_of(folder: Path) -> dict[str, str]:
    return {name: sha256(folder / name) for name in MODEL_FILES}


def corpus_of_model(model: str, prepared: str | None) -> "data.PreparedCorpus":
    """The prepared corpus in the folder `prepared`, or else that of a model's training."""
    files = "source=FILE reference=FILE"
    # A system may also be a file of translations, which has no corpus.
    folder = Path(model)
    if names_model(model):
        folder = find_model_directory(model)
    elif not prepared:
        raise NMTError(f"{model}: not a run folder, so it has no test set; pass {files}")
    try:
        record = read_description(folder).training if folder.is_dir() else {}
        return data.corpus_of(folder, record, prepared)
    except NMTError as error:
        raise NMTError(f"{error}; pass prepared=FOLDER, or {files}") from error


def held_out_text(corpus: "data.PreparedCorpus", split: str) -> tuple[list[str], list[str]]:
    """The sources and references of a held-out set, "valid" or "test"."""
    counts = corpus.manifest.counts.get(split, {})
    if not counts.get("kept"):
        raise NMTError(f"split={split}: {corpus.folder} has no {SPLITS[split]} set")
    return corpus.text(split)


def read_test_set(
    model: str, source: Text | None, reference: Text | None, prepared: str | None
) -> TestSet:
    """The test set, from two texts (files or lists of lines) or from a model's corpus."""
    if reference is None:
        if source is not None:
            advice = "pass its reference translations too, as reference=FILE"
            raise NMTError(f"source={source}: {advice}")
        return corpus_test_set(corpus_of_model(model, prepared))
    source_name, sources = named_lines("source", source or [])
    name, references = named_lines("reference", reference)
    # Without sources, systems that are files of translations can still be scored.
    if source and len(sources) != len(references):
        raise not_parallel((source_name, name), (len(sources), len(references)))
    if not references:
        raise NMTError(f"reference={name}: is empty")
    return TestSet(
        name=name,
        sources=sources if source else None,
        references=references,
        corpus=corpus_of_model(model, prepared) if prepared else None,
        # The suffix of the references decides BLEU's tokenizer.
        language=language_of_file(name),
    )


def corpus_test_set(corpus: "data.PreparedCorpus") -> TestSet:
    kind = corpus.manifest.content["data"]["kind"]
    # Trees have different metrics; see `nmt score metrics=[brackets]`.
    if structured_targets(kind):
        advice = "pass source=FILE reference=FILE"
        raise NMTError(f"{corpus.folder}: contains no translations; {advice}")
    sources, references = held_out_text(corpus, "test")
    name = f"test set of {corpus.folder}"
    tags = corpus.tags("test")
    return TestSet(name, sources, references, corpus, corpus.target_language, tags)


def named_lines(kind: str, text: Text) -> tuple[str, list[str]]:
    """The name of a file and its lines, or a name for lines that a caller passed."""
    if isinstance(text, str | Path):
        return str(text), list(read_texts(str(text)))
    return f"the {kind}", list(text)


def search_keys(decode: DecodeConfig, *always: str) -> list[str]:
    """The search keys that differ from the defaults or are in `always`, as decode.KEY=VALUE."""
    keys = []
    for key, value in asdict(decode).items():
        if key in always or value != getattr(DecodeConfig, key):
            keys.append(f"decode.{key}={value}".lower())
    return keys
