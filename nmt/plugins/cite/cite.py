"""Making a bundle: what is stated, the files that show it, and the words to cite it with."""

import json
import shlex
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from nmt import __version__
from nmt.config import Compute, DecodeConfig, TranslatorOptions, with_plugin_defaults
from nmt.errors import NMTError
from nmt.evaluation import score
from nmt.files import LARGE, expected_search, read_bytes, write_file
from nmt.hardware import processor, versions
from nmt.plugins.cite.bundle import STATEMENT, digest, pack, with_sums
from nmt.plugins.cite.cited import Cited, find_cited, model_digests
from nmt.plugins.cite.config import CiteConfig
from nmt.plugins.cite.statement import Statement, search_words, text_digest, text_of
from nmt.plugins.cite.translate import translate_lines
from nmt.plugins.compare.systems import read_test_set
from nmt.plugins.report.pages import check_output
from nmt.plugins.report.run import read_object
from nmt.search import choose_device
from nmt.translation import find_models, language_of

SOFTWARE = f"""@software{{nmt,
  author = {{{{The nmt authors}}}},
  title = {{nmt: Neural machine translation with the Transformer of ``Attention Is All You Need''}},
  version = {{{__version__}}}
}}"""
"""The software in BibTeX."""


def device_name(device: str) -> str:
    """A device, and what it is."""
    import torch

    return f"{device}, {torch.cuda.get_device_name(device) if device.startswith('cuda') else processor()}"


def find_test_set(config: CiteConfig, cited: Cited) -> tuple[str, dict[str, list[str]]]:
    """The name of the test set, and its lines as source and reference: the given files, or that of the corpus."""
    if not config.source and find_models([config.run])[2].tags and not config.target:
        raise NMTError(f"run={config.run}: a model for several languages; pass source=FILE reference=FILE target=CODE")
    found = read_test_set(str(cited.folder), config.source, config.reference, config.prepared, "test")
    corpus, sources = found.corpus, found.sources
    assert sources is not None, "CiteConfig wants a source for each reference"
    if not config.source and corpus and corpus.manifest.fingerprint != cited.description.training.get("corpus"):
        raise NMTError(
            f"{corpus.folder} is not the corpus that {config.run} was trained on: pass source= and reference="
        )
    return Path(config.source).name if config.source else "test", {"source": sources, "reference": found.references}


def find_output(config: CiteConfig, cited: Cited, name: str) -> Path:
    """The file to write, checked before time is spent; NMTError where it is there, as somebody may have cited it."""
    default = f"citation-{name}.zip"
    output = check_output(Path(config.output or (cited.run or Path()) / default), default)
    if output.exists() or output.is_symlink():
        raise NMTError(f"{output} is there already, and may be cited: pass output=FILE, or remove it")
    return output


def commands(config: CiteConfig, cited: Cited, decode: DecodeConfig) -> list[str]:
    """The commands that trained the model, and that make the translations and scores of the test set's files."""
    source, target = cited.description.source, cited.description.target
    trained = read_object(cited.run / "environment.json").get("command") if cited.run else None
    tag = [f"target={config.target}"] if config.target else []
    words = shlex.join([f"run={cited.run or cited.folder}", *tag, *search_words(decode)])
    keys = f"metrics=[{','.join(config.metrics)}] language={language_of(config.target or target)}"
    keys += f" tokenize={config.tokenize}" if config.tokenize else ""
    keys += " lowercase=true" if config.lowercase else ""
    return [
        *([trained] if isinstance(trained, str) else []),
        f"nmt translate {words} < source.{source} > hypotheses.{target}",
        f"nmt score hypotheses.{target} reference.{target} {keys}",
    ]


def make_statement(
    config: CiteConfig, cited: Cited, name: str, texts: dict[str, list[str]], files: list[str]
) -> Statement:
    """What the bundle with these files states: the model, the test set, the search, the scores of its hypotheses."""
    target, decode = cited.description.target, expected_search(config.decode, cited.description)
    scores = score(
        *(texts["hypotheses"], texts["reference"], config.metrics),
        *(language_of(config.target or target), config.lowercase, config.tokenize),
    )
    return Statement(
        run=cited.name,
        test_set=name,
        source=cited.description.source,
        target=target,
        lines=len(texts["source"]),
        texts={kind: text_digest(texts[kind]) for kind in ("source", "reference")},
        model=model_digests(cited.folder),
        decode=asdict(decode),
        language_tag=config.target,
        lowercase=config.lowercase,
        scores=[asdict(each) for each in scores],
        commands=commands(config, cited, decode),
        device=device_name(choose_device(config.device)),
        versions=versions(),
        files=files,
    )


def files_of(cited: Cited, texts: dict[str, list[str]]) -> dict[str, bytes]:
    """The files of a bundle but its statement; `texts` go into it, by the first part of their names."""
    known = [(cited.folder, "README.md"), (cited.folder, "config.json")]
    if cited.run:
        known += [(cited.run, "config.yaml"), (cited.run, "environment.json")]
    source, target = cited.description.source, cited.description.target
    languages = {"source": source, "reference": target, "hypotheses": target}
    return {
        **{name: read_bytes(folder / name) for folder, name in known if (folder / name).exists()},
        **{f"{kind}.{languages[kind]}": text_of(lines) for kind, lines in texts.items()},
    }


def cite(config: CiteConfig, console: Console) -> tuple[Path, str, Statement]:
    """Translate the test set and write the bundle; its path, its SHA-256, and what it states."""
    cited = find_cited(config.run)
    name, given = find_test_set(config, cited)
    output = find_output(config, cited, name)
    compute = Compute("torch", device=config.device)
    options = TranslatorOptions([config.run], compute, target=config.target, decode=config.decode)
    hypotheses = {"hypotheses": translate_lines(with_plugin_defaults(options), given["source"], console)}
    files = files_of(cited, hypotheses | (given if config.text else {}))
    statement = make_statement(config, cited, name, given | hypotheses, sorted(files))
    stated = (json.dumps(asdict(statement), indent=2) + "\n").encode()
    content = pack(with_sums({STATEMENT: stated, **files}))
    if len(content) > LARGE:
        raise NMTError(f"{output}: would have {len(content):,} bytes, but a bundle has {LARGE:,} at most")
    write_file(output, content)
    return output, digest(content), statement


def words_to_paste(statement: Statement, sha256: str) -> str:
    """A sentence that cites the scores."""
    scores = "; ".join(f"{each.name} {each.value:.2f} ({each.signature})" for each in statement.stated_scores())
    decode = statement.search
    search = f"beam {decode.beam_size}, length penalty {decode.length_penalty}"
    version = statement.versions["nmt"]
    return (
        f"{scores}; {statement.lines:,} lines of {statement.test_set}, {statement.source}-{statement.target}, by"
        f" {statement.run}, {search}, nmt {version}, bundle SHA-256 {sha256}."
    )
