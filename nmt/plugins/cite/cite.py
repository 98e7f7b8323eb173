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
from nmt.files import LARGE, check_output, expected_search, parse_json, read_bytes, read_mapping, write_file
from nmt.hardware import processor, versions
from nmt.plugins.cite.bundle import STATEMENT, digest, pack, with_sums
from nmt.plugins.cite.command import CiteConfig
from nmt.plugins.cite.statement import Cited, Statement, find_cited, text_digest, text_of
from nmt.search import choose_device
from nmt.translation import find_models, language_of, load_translator, read_test_set, translate_lines, warn

SOFTWARE = f"""@software{{nmt,
  author = {{{{The nmt authors}}}},
  title = {{nmt: Neural machine translation with the Transformer of ``Attention Is All You Need''}},
  version = {{{__version__}}}
}}"""
"""The software in BibTeX."""


def commands(config: CiteConfig, cited: Cited, decode: DecodeConfig) -> list[str]:
    """The commands that trained the model, and that make the translations and scores of the test set's files."""
    source, target, trained = cited.description.source, cited.description.target, None
    if cited.run and (cited.run / "environment.json").exists():
        trained = read_mapping(cited.run / "environment.json", parse_json).get("command")
    unset = asdict(DecodeConfig())
    search = [f"decode.{key}={value}".lower() for key, value in asdict(decode).items() if value != unset[key]]
    words = [f"run={cited.run or cited.folder}", *([f"target={config.target}"] if config.target else []), *search]
    keys = f"metrics=[{','.join(config.metrics)}] language={language_of(config.target or target)}"
    keys += f" tokenize={config.tokenize}" if config.tokenize else ""
    keys += " lowercase=true" if config.lowercase else ""
    return [
        *([trained] if isinstance(trained, str) else []),
        f"nmt translate {shlex.join(words)} < source.{source} > hypotheses.{target}",
        f"nmt score hypotheses.{target} reference.{target} {keys}",
    ]


def cite(config: CiteConfig, console: Console) -> tuple[Path, str, Statement]:
    """Translate the test set and write the bundle; its path, its SHA-256, and what it states."""
    cited = find_cited(config.run)
    source, target, name = cited.description.source, cited.description.target, Path(config.source or "test").name
    if not config.source and find_models([config.run])[2].tags and not config.target:
        raise NMTError(f"run={config.run}: a model for several languages; pass source=FILE reference=FILE target=CODE")
    test = read_test_set(str(cited.folder), config.source, config.reference, config.prepared)
    default = f"citation-{name}.zip"
    output = check_output(Path(config.output or (cited.run or Path()) / default), default)
    if output.exists() or output.is_symlink():
        raise NMTError(f"{output} is there already, and may be cited: pass output=FILE, or remove it")

    assert test.sources is not None, "CiteConfig needs a source for each reference"
    compute = Compute("torch", device=config.device)
    options = TranslatorOptions([config.run], compute, target=config.target, decode=config.decode)
    translator = load_translator(with_plugin_defaults(options), warn)
    console.print(f"translating {len(test.sources):,} lines")
    hypotheses = translate_lines(translator, test.sources, console)
    parts = [(cited.folder, "README.md"), (cited.folder, "config.json")]
    if cited.run:
        parts += [(cited.run, "config.yaml"), (cited.run, "environment.json")]
    files = {name: read_bytes(folder / name) for folder, name in parts if (folder / name).exists()}
    files[f"hypotheses.{target}"] = text_of(hypotheses)
    if config.text:
        files |= {f"source.{source}": text_of(test.sources), f"reference.{target}": text_of(test.references)}
    decode, device = expected_search(config.decode, cited.description), choose_device(config.device)
    statement = Statement(
        run=(cited.run or cited.folder).resolve().name,
        test_set=name,
        source=source,
        target=target,
        lines=len(test.sources),
        texts={"source": text_digest(test.sources), "reference": text_digest(test.references)},
        model=cited.digests,
        decode=asdict(decode),
        language_tag=config.target,
        lowercase=config.lowercase,
        scores=[],
        commands=commands(config, cited, decode),
        device=f"{device}, {gpu_name(device) if device.startswith('cuda') else processor()}",
        versions=versions(),
        files=sorted(files),
    )
    scoring = (statement.language, config.lowercase, config.tokenize)
    statement.scores = [asdict(result) for result in score(hypotheses, test.references, config.metrics, *scoring)]
    stated = (json.dumps(asdict(statement), indent=2) + "\n").encode()
    content = pack(with_sums({STATEMENT: stated, **files}))
    if len(content) > LARGE:
        raise NMTError(f"{output}: would have {len(content):,} bytes, but a bundle has {LARGE:,} at most")
    write_file(output, content)
    return output, digest(content), statement


def gpu_name(device: str) -> str:
    import torch

    return torch.cuda.get_device_name(device)


def words_to_paste(statement: Statement, sha256: str) -> str:
    """A sentence that cites the scores."""
    scores = "; ".join(f"{s.name} {s.value:.2f} ({s.signature})" for s in statement.stated_scores())
    search = f"beam {statement.search.beam_size}, length penalty {statement.search.length_penalty}"
    return (
        f"{scores}; {statement.lines:,} lines of {statement.test_set}, {statement.source}-{statement.target}, by"
        f" {statement.run}, {search}, nmt {statement.versions['nmt']}, bundle SHA-256 {sha256}."
    )
