"""Translation speed of a random base model, with nmt's search and with CTranslate2."""

import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from gpu_report import Report
from gpu_settings import Settings
from lengths import text_like_lengths

from nmt.commands import compose
from nmt.model import Transformer, write_model_directory
from nmt.search import TorchEngine
from nmt.training import synchronize

BEAM_SIZE = 4
WARM_LINES = 64


def random_model(settings: Settings, vocabulary: int) -> Transformer:
    config = compose("train", ["data=files", *settings.sizes.models["base"]]).model
    torch.manual_seed(1)
    return Transformer(config, vocabulary).eval()


def random_lines(settings: Settings, vocabulary: int) -> list[list[int]]:
    """Sentences of random tokens, as long as those of WMT 2014."""
    sizes = settings.sizes
    drawn, _ = text_like_lengths(sizes.lines)
    random = np.random.default_rng(1)
    lengths = np.minimum(drawn, sizes.longest) - 1
    return [random.integers(4, vocabulary, size=max(1, n)).tolist() for n in lengths]


def search(settings: Settings, report: Report) -> None:
    """Output tokens per second in two precisions and with two batch sizes."""
    device, sizes = settings.device, settings.sizes
    model = random_model(settings, sizes.vocabulary).to(device)
    lines = random_lines(settings, sizes.vocabulary)
    names = ("small batches", "large batches")
    for dtype in (torch.float32, torch.bfloat16):
        model = model.to(dtype)
        precision = str(dtype).removeprefix("torch.")
        for name, tokens in zip(names, sizes.batch_tokens, strict=True):
            options = [
                "run=x",
                f"decode.beam_size={BEAM_SIZE}",
                f"decode.max_length={sizes.translation_tokens}",
                f"decode.batch_tokens={tokens}",
            ]
            engine = TorchEngine([model], compose("translate", options).translator.decode)
            engine.search(lines[:WARM_LINES], [[] for _ in lines[:WARM_LINES]])
            synchronize(device)
            start = time.perf_counter()
            results = engine.search(lines, [[] for _ in lines])
            seconds = time.perf_counter() - start
            produced = sum(len(hypotheses[0].tokens) for hypotheses in results)
            report.figure(
                f"search, {precision}, {name}",
                produced / seconds,
                "tokens/s",
                f"decode.batch_tokens={tokens:,}, {len(lines) / seconds:,.0f} sentences/s",
                seconds=seconds,
                tokens=produced,
            )


def ctranslate2(settings: Settings, report: Report) -> None:
    """CTranslate2 on the same kind of model, if it loads here."""
    try:
        import ctranslate2 as library
    except (ImportError, OSError) as error:
        report.skip("CTranslate2", str(error).splitlines()[0])
        return
    if not settings.is_dry and library.get_cuda_device_count() == 0:
        report.skip("CTranslate2", "it finds no GPU")
        return
    from nmt.config import TokenizerConfig
    from nmt.files import ModelDescription, sha256
    from nmt.plugins.exchange import ctranslate2 as exchange
    from nmt.text import train_tokenizer

    folder = Path(settings.work) / "ctranslate2"
    folder.mkdir()
    random = np.random.default_rng(1)
    letters = list("abcdefghijklmnopqrstuvwxyz ")
    pairs = settings.sizes.vocabulary // 4
    text = ["".join(row) for row in random.choice(letters, size=(pairs, 60))]
    kind = TokenizerConfig(kind="bpe", vocabulary_size=settings.sizes.vocabulary)
    tokenizer = train_tokenizer(text, kind)
    tokenizer.save(folder / "tokenizer")
    model = random_model(settings, tokenizer.vocabulary_size)
    description = ModelDescription(
        asdict(model.config),
        tokenizer.vocabulary_size,
        "en",
        "de",
        sha256(folder / "tokenizer"),
        {},
    )
    write_model_directory(folder / "model", model, folder / "tokenizer", description, "")
    lines = [line.split() for line in text[: settings.sizes.lines]]
    for precision in ("float32",) if settings.is_dry else ("float32", "bfloat16"):
        exchange.write(folder / "model", folder / precision, "float32")
        try:
            measure_ctranslate2(settings, report, folder / precision, precision, lines)
        # For example, because its libraries are for another version of CUDA.
        except RuntimeError as error:
            report.skip(f"CTranslate2, {precision}", str(error).splitlines()[0])


def measure_ctranslate2(
    settings: Settings, report: Report, model: Path, precision: str, lines: list[list[str]]
) -> None:
    import ctranslate2 as library

    device = settings.device.type
    translator = library.Translator(str(model), device=device, compute_type=precision)
    options = {
        "beam_size": BEAM_SIZE,
        "max_decoding_length": settings.sizes.translation_tokens,
        "max_batch_size": settings.sizes.batch_tokens[1],
        "batch_type": "tokens",
    }
    # Words, which are not in the vocabulary, are as good as other tokens for the speed.
    translator.translate_batch(lines[:WARM_LINES], **options)
    start = time.perf_counter()
    results = translator.translate_batch(lines, **options)
    seconds = time.perf_counter() - start
    produced = sum(len(result.hypotheses[0]) for result in results)
    report.figure(f"CTranslate2, {precision}", produced / seconds, "tokens/s", seconds=seconds)
