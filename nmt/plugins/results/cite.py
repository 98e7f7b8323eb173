"""Write a bundle (a statement and the files that support it), and compose the sentence that cites it."""

import shlex
from dataclasses import asdict
from pathlib import Path

import torch
from rich.console import Console

from nmt import __version__
from nmt.config import TranslatorOptions, build, require
from nmt.evaluation import score
from nmt.files import expected_search, parse_json, read_bytes, read_description, write_file
from nmt.hardware import processor, versions
from nmt.plugins.results.commands import CiteConfig, check_output
from nmt.plugins.results.test_set import TestSet, cited_model, digests_of, read_test_set, search_keys, translate_lines
from nmt.plugins.results.verify import MODEL_AND_RUN, Statement, digest, seal, text_of
from nmt.search import choose_device
from nmt.translation import find_models, language_of

SOFTWARE = f"""@software{{nmt,
  author = {{{{The nmt authors}}}},
  title = {{nmt: Neural machine translation with the Transformer of ``Attention Is All You Need''}},
  version = {{{__version__}}}
}}"""


def cite(config: CiteConfig, console: Console) -> tuple[Path, str, str]:
    """Translate the test set and write the bundle; return its path, its SHA-256 and a sentence that cites it."""
    folder = cited_model(config.run)
    run = folder.parent if folder.name == "model" and (folder.parent / "config.yaml").is_file() else None
    several = not config.source and not config.translator.target and find_models([config.run])[2].tags
    require(not several, f"run={config.run} has several target languages; pass source=FILE reference=FILE target=CODE")
    test = read_test_set(str(folder), config.source, config.reference, config.prepared)
    default = f"citation-{Path(config.source or 'test').name}.zip"
    output = check_output(Path(config.output or (run or Path()) / default), default)
    require(not output.exists(), f"{output} exists and may have been cited: pass output=FILE or remove it")
    options = build(TranslatorOptions, {"run": [config.run]}, base=config.translator)
    hypotheses = translate_lines(options, test.sources or [], console)
    statement, files = state(config, folder, run, test, hypotheses)
    content = seal(statement, files)
    write_file(output, content)
    figures = "; ".join(f"{s['name']} {s['value']:.2f} ({s['signature']})" for s in statement.scores)
    lines = f"{statement.lines:,} lines of {statement.test_set}, {statement.source}-{statement.target}"
    search = f"beam {statement.decode['beam_size']}, length penalty {statement.decode['length_penalty']}"
    sentence = f"{figures}; {lines}, by {statement.run}, {search}, nmt {statement.versions['nmt']}"
    return output, digest(content), f"{sentence}, bundle SHA-256 {digest(content)}."


def state(
    config: CiteConfig, folder: Path, run: Path | None, test: TestSet, hypotheses: list[str]
) -> tuple[Statement, dict[str, bytes]]:
    description = read_description(folder)
    source, target, tag = description.source, description.target, config.translator.target
    language, search = language_of(tag or target), expected_search(config.translator.decode, description)
    texts = {"source": text_of(test.sources or []), "reference": text_of(test.references)}
    paths = [(run if index > 1 else folder, name) for index, name in enumerate(MODEL_AND_RUN)]
    files = {name: read_bytes(place / name) for place, name in paths if place and (place / name).exists()}
    trained = parse_json(files.get("environment.json", b"{}")).get("command")
    files[f"hypotheses.{target}"] = text_of(hypotheses)
    if config.text:
        files |= {f"source.{source}": texts["source"], f"reference.{target}": texts["reference"]}
    device = choose_device(config.translator.compute.device)
    place = torch.cuda.get_device_name(device) if device.startswith("cuda") else processor()
    scores = score(hypotheses, test.references, config.metrics, language, config.lowercase, config.tokenize)
    words = [f"run={run or folder}", "engine=torch", *([f"target={tag}"] if tag else []), *search_keys(search)]
    keys = f"metrics=[{','.join(config.metrics)}] language={language}"
    keys += f" tokenize={config.tokenize}" * bool(config.tokenize) + " lowercase=true" * config.lowercase
    translating = f"nmt translate {shlex.join(words)} < source.{source} > hypotheses.{target}"
    scoring = f"nmt score hypotheses.{target} reference.{target} {keys}"
    statement = Statement(
        run=(run or folder).resolve().name,
        test_set=Path(config.source or "test").name,
        source=source,
        target=target,
        lines=len(test.references),
        texts={kind: digest(text) for kind, text in texts.items()},
        model=digests_of(folder),
        decode=asdict(search),
        language_tag=tag,
        lowercase=config.lowercase,
        scores=[asdict(result) for result in scores],
        commands=[*([trained] if isinstance(trained, str) else []), translating, scoring],
        device=f"{device}, {place}",
        versions=versions(),
        files=sorted(files),
    )
    return statement, files
