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
from nmt.plugins.cite.bundle import MODEL_AND_RUN, STATEMENT, digest, pack_with_sums
from nmt.plugins.cite.command import CiteConfig
from nmt.plugins.cite.verify import Statement, model_digests, model_to_cite, text_of
from nmt.search import choose_device
from nmt.translation import find_models, language_of, load_translator, read_test_set, translate_lines, warn

SOFTWARE = f"""@software{{nmt,
  author = {{{{The nmt authors}}}},
  title = {{nmt: Neural machine translation with the Transformer of ``Attention Is All You Need''}},
  version = {{{__version__}}}
}}"""
"""The software in BibTeX."""


def cite(config: CiteConfig, console: Console) -> tuple[Path, str, str]:
    """Translate the test set and write the bundle; its path, its SHA-256, and a sentence that cites the scores."""
    folder, description = model_to_cite(config.run)
    run = folder.parent if folder.name == "model" and (folder.parent / "config.yaml").is_file() else None
    source, target, name = description.source, description.target, Path(config.source or "test").name
    if not config.source and find_models([config.run])[2].tags and not config.target:
        raise NMTError(f"run={config.run}: a model for several languages; pass source=FILE reference=FILE target=CODE")
    test = read_test_set(str(folder), config.source, config.reference, config.prepared)
    default = f"citation-{name}.zip"
    output = check_output(Path(config.output or (run or Path()) / default), default)
    if output.exists() or output.is_symlink():
        raise NMTError(f"{output} is there already, and may be cited: pass output=FILE, or remove it")

    assert test.sources is not None, "CiteConfig needs a source for each reference"
    compute = Compute("torch", device=config.device)
    options = TranslatorOptions([config.run], compute, target=config.target, decode=config.decode)
    translator = load_translator(with_plugin_defaults(options), warn)
    console.print(f"translating {len(test.sources):,} lines")
    hypotheses = translate_lines(translator, test.sources, console)
    texts = {"source": text_of(test.sources), "reference": text_of(test.references)}
    paths = [(run if index > 1 else folder, name) for index, name in enumerate(MODEL_AND_RUN)]
    files = {name: read_bytes(place / name) for place, name in paths if place and (place / name).exists()}
    files[f"hypotheses.{target}"] = text_of(hypotheses)
    if config.text:
        files |= {f"source.{source}": texts["source"], f"reference.{target}": texts["reference"]}
    search, device = expected_search(config.decode, description), choose_device(config.device)
    language, processors = language_of(config.target or target), processor()
    if device.startswith("cuda"):
        import torch

        processors = torch.cuda.get_device_name(device)
    scores = score(hypotheses, test.references, config.metrics, language, config.lowercase, config.tokenize)
    usual, decode = asdict(DecodeConfig()), asdict(search)
    words = [f"run={run or folder}", "engine=torch", *([f"target={config.target}"] if config.target else [])]
    words += [f"decode.{key}={value}".lower() for key, value in decode.items() if value != usual[key]]
    keys = f"metrics=[{','.join(config.metrics)}] language={language}"
    keys += f" tokenize={config.tokenize}" * bool(config.tokenize) + " lowercase=true" * config.lowercase
    record = read_mapping(run / "environment.json", parse_json) if run and "environment.json" in files else {}
    trained = record.get("command")
    statement = Statement(
        run=(run or folder).resolve().name,
        test_set=name,
        source=source,
        target=target,
        lines=len(test.sources),
        texts={kind: digest(text) for kind, text in texts.items()},
        model=model_digests(folder),
        decode=decode,
        language_tag=config.target,
        lowercase=config.lowercase,
        scores=[asdict(result) for result in scores],
        commands=[
            *([trained] if isinstance(trained, str) else []),
            f"nmt translate {shlex.join(words)} < source.{source} > hypotheses.{target}",
            f"nmt score hypotheses.{target} reference.{target} {keys}",
        ],
        device=f"{device}, {processors}",
        versions=versions(),
        files=sorted(files),
    )
    stated = (json.dumps(asdict(statement), indent=2) + "\n").encode()
    content = pack_with_sums({STATEMENT: stated, **files})
    if len(content) > LARGE:
        raise NMTError(f"{output}: would have {len(content):,} bytes, but a bundle has {LARGE:,} at most")
    write_file(output, content)
    figures = "; ".join(f"{s.name} {s.value:.2f} ({s.signature})" for s in scores)
    sentence = f"{figures}; {statement.lines:,} lines of {name}, {source}-{target}, by {statement.run}"
    sentence += f", beam {search.beam_size}, length penalty {search.length_penalty}, nmt {statement.versions['nmt']}"
    return output, digest(content), f"{sentence}, bundle SHA-256 {digest(content)}."
