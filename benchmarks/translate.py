"""Measure how fast `nmt translate` is: the search and the whole command, compared with engines on the same weights.

    python benchmarks/translate.py MODEL TEXT [LINES] [ROUNDS]
    python benchmarks/translate.py base|small [LINES] [ROUNDS]

MODEL is a run or model directory, and TEXT a file of source lines. `base` and `small` create random sentences and a
model of that shape with random weights, whose translations are 20 tokens long. Each contender runs in its own process.
They take turns translating the first LINES (400) lines ROUNDS (3) times, with a beam of 4 and greedily:

- nmt torch, nmt ctranslate2: from raw lines to translations, including tokenization and reordering;
- CTranslate2: what one would write by hand, from raw lines to texts: sentencepiece and CTranslate2's own call on tokens
  sorted by length, with two threads or two single-threaded workers, in batches of the fastest of five sizes;
- Hugging Face: `generate` of transformers on the exported model, on input sorted by length, in batches of 32; absent
  if `nmt export format=huggingface` cannot convert the model, such as one with pre-norm layers.

The script prints medians of sentences/s and output tokens/s, excluding loading, the peak memory, and the ratios to
Hugging Face and to CTranslate2 in float32. Then it times the whole command on 32 lines, from a cold start.
"""

import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path

BEAMS = {"beam 4": 4, "greedy": 1}
MAX_EXTRA = 50
BATCH_SIZES = [256, 512, 1024, 2048, 4096]
"""In tokens; CTranslate2 by hand uses the fastest."""
RANDOM_TOKENS, VOCABULARIES = 20, {"base": 32_000, "small": 8_000}
THREADS = os.cpu_count() or 1
CONTENDERS = [
    "nmt torch",
    "nmt ctranslate2 float32",
    "nmt ctranslate2 int8",
    f"CTranslate2 float32, 1 x {THREADS}",
    f"CTranslate2 float32, {THREADS} x 1",
    f"CTranslate2 int8, 1 x {THREADS}",
    f"CTranslate2 int8, {THREADS} x 1",
    "Hugging Face",
]
REFERENCES = ["Hugging Face", CONTENDERS[3], CONTENDERS[4]]
Translate = Callable[[list[str]], int]
"""Raw lines, or tokens joined by blanks, to the number of tokens that came out."""


def tokenized(folder: Path, lines: list[str]) -> list[list[int]]:
    from nmt.text import clean, read_tokenizer

    return read_tokenizer(folder).encode([clean(line) for line in lines])


def nmt_translator(folder: Path, beam: int, engine: str, precision: str) -> Translate:
    from nmt.commands import compose
    from nmt.translation import load_translator

    options = [
        f"run={folder}",
        f"engine={engine}",
        f"precision={precision}",
        f"decode.beam_size={beam}",
    ]
    translator = load_translator(compose("translate", options).translator, print)

    def translate(lines: list[str]) -> int:
        start = time.perf_counter()
        texts = [translations[0].text for translations in translator.translate(lines)]
        translate.seconds = time.perf_counter() - start  # type: ignore[attr-defined]
        return sum(map(len, translator.tokenizer.encode(texts)))

    return translate


def ctranslate2_by_hand(
    folder: Path, source: list[str], beam: int, precision: str, workers: int, threads: int
) -> Translate:
    import ctranslate2
    from sentencepiece import SentencePieceProcessor

    model = ctranslate2.Translator(
        str(folder / f"ctranslate2-{precision}"),
        inter_threads=workers,
        intra_threads=threads,
        compute_type=precision,
    )
    subwords = SentencePieceProcessor(model_file=str(folder / "tokenizer.model"))

    def translate(lines: list[str], size: int) -> int:
        tokens = subwords.encode(
            lines, out_type=str
        )  # the exported model adds the end symbol itself
        order = sorted(range(len(tokens)), key=lambda number: len(tokens[number]), reverse=True)
        results = model.translate_batch(
            [tokens[number] for number in order],
            beam_size=beam,
            max_batch_size=size,
            batch_type="tokens",
            max_decoding_length=len(tokens[order[0]]) + MAX_EXTRA,
        )
        outputs = [result.hypotheses[0] for result in results]
        texts = [""] * len(lines)
        for number, text in zip(order, subwords.decode(outputs), strict=True):
            texts[number] = text
        return sum(map(len, outputs))

    def seconds(size: int) -> float:
        start = time.perf_counter()
        translate(source, size)
        return time.perf_counter() - start

    seconds(BATCH_SIZES[0])  # warms up
    return partial(translate, size=min(BATCH_SIZES, key=seconds))


def hugging_face(folder: Path, beam: int) -> Translate:
    import torch
    from transformers import AutoModelForSeq2SeqLM

    model = AutoModelForSeq2SeqLM.from_pretrained(folder / "huggingface").eval()
    model.generation_config.max_length = None

    def translate(lines: list[str]) -> int:
        ids = sorted(
            ([*sentence, 2] for sentence in tokenized(folder, lines)), key=len, reverse=True
        )
        start, tokens = time.perf_counter(), 0
        for first in range(0, len(ids), 32):
            batch = [torch.tensor(sentence) for sentence in ids[first : first + 32]]
            source = torch.nn.utils.rnn.pad_sequence(batch, batch_first=True)
            longest = source.shape[1] + MAX_EXTRA
            with torch.inference_mode():
                out = model.generate(
                    input_ids=source,
                    attention_mask=(source != 0).long(),
                    num_beams=beam,
                    do_sample=False,
                    max_new_tokens=longest + 1,
                )
            tokens += int((out > 2).sum())
        translate.seconds = time.perf_counter() - start  # type: ignore[attr-defined]
        return tokens

    return translate


def contender(name: str, folder: Path, source: list[str], beam: int) -> Translate:
    kind, *rest = name.replace(",", "").split()
    if kind == "nmt":
        return nmt_translator(folder, beam, rest[0], rest[1] if len(rest) > 1 else "float32")
    if kind == "CTranslate2":
        return ctranslate2_by_hand(folder, source, beam, rest[0], int(rest[1]), int(rest[3]))
    return hugging_face(folder, beam)


def contend(name: str, folder: Path, text: Path, lines: int) -> None:
    """A contender's process: for each line of standard input, a beam, it translates the text and says how long it took.

    What a contender's own clock leaves out, as tokenizing, is not counted.
    """
    source = text.read_text(encoding="utf-8").split("\n")[:lines]
    translators = {beam: contender(name, folder, source, beam) for beam in BEAMS.values()}
    for translate in translators.values():
        translate(source)
    print("ready", flush=True)
    for word in sys.stdin:
        translate = translators[int(word)]
        start = time.perf_counter()
        tokens = translate(source)
        seconds = vars(translate).get("seconds", time.perf_counter() - start)
        print(
            json.dumps(
                {
                    "seconds": seconds,
                    "tokens": tokens,
                    "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
                }
            ),
            flush=True,
        )


def make_random(shapes: str, folder: Path, lines: int) -> tuple[str, Path]:
    """A model directory of base or small shapes with random weights, and a file of random sentences."""
    import torch

    from nmt.commands import compose
    from nmt.config import BOS, EOS, PAD, UNK, TokenizerConfig
    from nmt.files import ModelDescription, sha256
    from nmt.model import Transformer, write_model_directory
    from nmt.text import train_tokenizer

    draw = random.Random(1)
    syllables = [a + b + c for a in "bdfgklmnprst" for b in "aeiou" for c in ("", "n", "r", "s")]
    words = ["".join(draw.choices(syllables, k=3)) for _ in range(60_000)]
    text = [" ".join(draw.choices(words, k=max(3, int(draw.gauss(14, 4))))) for _ in range(20_000)]
    tokenizer = train_tokenizer(
        text, TokenizerConfig(kind="bpe", vocabulary_size=VOCABULARIES[shapes])
    )
    tokenizer.save(folder / "tokenizer")
    settings = [f"model={shapes}", "model.positions=learned", "model.tied_embeddings=false"]
    config = compose("train", ["data=files", *settings]).model
    torch.manual_seed(1)
    model = Transformer(config, tokenizer.vocabulary_size)
    with torch.no_grad():
        # Sub-layers add little to what comes in, and from there on that is the end symbol.
        for layer in model.decoder_layers:
            for matrix in (
                layer.self_attention.output,
                layer.cross_attention.output,
                layer.feed_forward[2].weight,
            ):
                matrix *= 0.05
        end = model.output.weight[EOS]
        model.output.weight[[PAD, BOS, UNK]] = 0
        model.target_embedding.positions.table[RANDOM_TOKENS:] += 100 * end / end.norm()
    fingerprint = sha256(folder / "tokenizer")
    description = ModelDescription(
        asdict(config), tokenizer.vocabulary_size, "en", "de", fingerprint, {}
    )
    write_model_directory(folder / "base", model, folder / "tokenizer", description, "")
    path = folder / "text"
    path.write_text("\n".join(text[:lines]) + "\n")
    return str(folder / "base"), path


def prepare(model: str, folder: Path) -> Path:
    """A copy of the model directory, with its exports inside."""
    from nmt.errors import NMTError
    from nmt.files import find_model_directory
    from nmt.plugins.exchange import ctranslate2 as ctranslate2_model, huggingface

    copy = Path(shutil.copytree(find_model_directory(model), folder / "model"))
    for precision in ("float32", "int8"):
        ctranslate2_model.write(copy, copy / f"ctranslate2-{precision}", precision)
    try:
        huggingface.write(copy, copy / "huggingface")
    except NMTError as error:
        print(f"without Hugging Face: {error}")
        CONTENDERS.remove("Hugging Face")
    return copy


def start(name: str, folder: Path, text: Path, lines: int) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "contend", name, str(folder), str(text), str(lines)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(THREADS), "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    while process.stdout.readline() != "ready\n":
        assert process.poll() is None, name
    return process


def turn(process: subprocess.Popen[str], beam: int) -> dict[str, float]:
    assert process.stdin is not None
    assert process.stdout is not None
    print(beam, file=process.stdin, flush=True)
    return json.loads(process.stdout.readline())


def cold(folder: Path, text: Path, rounds: int) -> Iterator[tuple[str, float, float]]:
    """Each engine's whole command on 32 lines: seconds, and gigabytes at most."""
    short = "\n".join(text.read_text(encoding="utf-8").split("\n")[:32]) + "\n"
    for engine in ("ctranslate2", "torch"):
        command = [sys.executable, "-m", "nmt", "translate", f"run={folder}", f"engine={engine}"]
        times = []
        for _ in range(rounds):
            begin = time.perf_counter()
            subprocess.run(command, input=short, text=True, stdout=subprocess.DEVNULL, check=True)
            times.append(time.perf_counter() - begin)
        yield (
            engine,
            statistics.median(times),
            resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6,
        )


def main(model: str, text: Path | None, lines: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if text is None:
            model, text = make_random(model, folder, lines)
        copy = prepare(model, folder)
        for engine, seconds, memory in cold(copy, text, 5):
            print(
                f"whole command, cold, 32 lines, engine={engine}: {seconds:.2f} s, {memory:.2f} GB",
                flush=True,
            )
        processes = {name: start(name, copy, text, lines) for name in CONTENDERS}
        for label, beam in BEAMS.items():
            results: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
            for _ in range(rounds):
                for name, process in processes.items():
                    results[name].append(turn(process, beam))
            print(f"{label}, {lines:,} lines, {rounds} rounds, {THREADS} threads")
            medians = {
                name: statistics.median(r["seconds"] for r in results[name]) for name in CONTENDERS
            }
            others = [name for name in REFERENCES if name in medians]
            for name in CONTENDERS:
                tokens, memory = results[name][0]["tokens"], results[name][-1]["memory"]
                ratios = "  ".join(
                    f"{medians[other] / medians[name]:5.2f} x {other}" for other in others
                )
                print(
                    f"  {name:28} {lines / medians[name]:8.1f} sentences/s {tokens / medians[name]:8.0f} tokens/s  "
                    f"{memory:.2f} GB  {ratios}",
                    flush=True,
                )
        for process in processes.values():
            process.kill()
            process.wait()


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if len(arguments) < 1 + (arguments[:1] != ["base"] and arguments[:1] != ["small"]):
        sys.exit((__doc__ or "").split("\n\n")[1])
    if arguments[0] == "contend":
        contend(arguments[1], Path(arguments[2]), Path(arguments[3]), int(arguments[4]))
    else:
        given = None if arguments[0] in VOCABULARIES else Path(arguments.pop(1))
        counts = [int(word) for word in arguments[1:]] + [400, 3][len(arguments) - 1 :]
        main(arguments[0], given, *counts)
