"""Training on a mixture: exact after a kill, validated by domain, and translating with tags."""

import csv
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import torch
from conftest import toy_options, write_toy_text
from preloaded import python

from nmt.text import Tokenizer, load_tokenizer

MORE = ("trainer.max_steps=24", "validation.every_steps=8", "checkpoints.every_steps=6", "validation.bleu_sentences=3")


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Overrides of two tagged corpora with noise, the second one from update 10 on, which are prepared."""
    from nmt.commands import compose
    from nmt.preparation import preprocess

    folder = tmp_path_factory.mktemp("mixture")
    for name, seed in (("de", 5), ("fr", 6)):
        (folder / name).mkdir()
        write_toy_text(folder / name, seed)
    (folder / "data").mkdir()
    (folder / "data/mixed.yaml").write_text(
        f"""defaults: [files]
name: mixed
target: xx
noise: {{bpe_dropout: 0.2}}
sources:
- {{target: de, train: {folder}/de/train, valid: {folder}/de/valid, test: {folder}/de/test, tag: <2de>, name: german}}
- train: "{folder}/fr/train.en:{folder}/fr/train.de"
  valid: "{folder}/fr/valid.en:{folder}/fr/valid.de"
  test: "{folder}/fr/test.en:{folder}/fr/test.de"
  target: fr
  name: french
  tag: <2fr>
  share: 0.4
  start: 10
  noise: {{typos: 0.5, upper: 0.2}}
"""
    )
    plain = [word for word in toy_options(folder) if not word.startswith("data")]
    options = [*plain, "data=mixed", f"prepared={folder / 'prepared'}"]
    preprocess(compose("preprocess", options, folder), lambda words: None)
    return [str(folder / "prepared"), *(word for word in plain if not word.startswith(("tokenizer", "workers")))]


def tokenizer_of(mixture: list[str]) -> Tokenizer:
    return load_tokenizer(Path(mixture[0]) / "tokenizer.model")


def metrics(run: str) -> list[dict[str, str]]:
    with Path(run, "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_killed_run_on_a_mixture_with_noise_ends_with_the_same_bits(mixture, nmt, training_state):
    straight = nmt("train", *mixture, *MORE, "run=straight")
    assert straight.code == 0
    assert "of the sentences, german 100.0%" in straight.err
    process = subprocess.Popen(
        [python(), "-m", "nmt", "train", *mixture, *MORE, "run=killed"], stderr=subprocess.DEVNULL
    )
    while not list(Path("killed").glob("checkpoints/step=*12.ckpt")):
        assert process.poll() is None
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    again = nmt("train", *mixture, *MORE, "run=killed")
    assert "of the sentences, german 60.0%, french 40.0%" in again.err
    torch.testing.assert_close(training_state(Path("straight")), training_state(Path("killed")), rtol=0, atol=0)
    rows = metrics("straight")
    reported = [(int(row["step"]), float(row["share/french"])) for row in rows if row["share/french"]]
    assert reported == [
        (int(row["step"]), float(row["share/french"])) for row in metrics("killed") if row["share/french"]
    ]
    assert all((share > 0) == (step > 10) for step, share in reported)
    assert dict(reported)[24] == pytest.approx(0.4, abs=0.1)
    assert f"french {dict(reported)[24]:.1%}" in straight.err
    for row in (row for row in rows if row["valid_loss"]):
        one, other, both = (float(row[key]) for key in ("valid_loss/german", "valid_loss/french", "valid_loss"))
        assert min(one, other) <= both <= max(one, other)
        assert row["valid_bleu/french"]
    page = nmt("report", "straight")
    assert page.code == 0, page.err
    assert "french" in Path("straight/report.html").read_text()


def test_the_pairs_of_the_first_update_can_be_looked_at(mixture, nmt):
    first = ["train", *mixture, *MORE, "--show"]
    plain, noisy = (nmt(*first, f"data.noise.bpe_dropout={share}").out.splitlines() for share in (0, 0.9))
    for line in (*plain, *noisy):
        assert line.startswith("<2de> \u2581")
        assert line.count("\t") == 1
    whole, cut = ("".join(lines).count(" ") / len("".join(lines)) for lines in (plain, noisy))
    assert cut > 1.3 * whole > 0


def test_a_target_language_is_a_tag_and_a_line_may_have_its_own(mixture, nmt):
    short = nmt("train", *mixture, *MORE, "trainer.max_steps=8", "run=run")
    assert short.code == 0
    assert "notice: data.sources: french starts at update 10, but training ends" in short.err
    tagged = nmt("translate", "run", "text=<2fr> ka lo", "format=tsv").out
    assert nmt("translate", "run", "text=ka lo", "target=fr", "format=tsv").out == tagged
    assert nmt("translate", "run", "text=<2fr> ka lo", "format=jsonl").code == 0
    nmt("translate", "run", "text=ka lo", "target=cs").refused("target=cs: the model has de, fr")
    nmt("translate", "run", "text= <2cs> ka lo").refused("line 1: <2cs>: the model has <2de>, <2fr>")
    assert "without a tag need target=de" in nmt("translate", "run", "text=ka lo").err
    for name in ("source", "hypothesis"):
        Path(name).write_text("ka lo\n")
    score = ["score", "run", "source=source", "hypothesis=hypothesis", "format=tsv"]
    assert nmt(*score, "target=fr").out != nmt(*score, "target=de").out
    Path("source").write_text("<2fr> ka lo\n")
    assert nmt(*score, "target=de").out == nmt(*score, "target=fr").out

    def translated(text: str, *options: str) -> str:
        Path("lines").write_text(text)
        return nmt("translate", "run", "format=tsv", "input=lines", *options).out

    both = translated("<2fr> ka lo\n\n<2de> ka lo\n")
    assert both.count("\n") == 3
    assert both != translated("ka lo\n\nka lo\n", "target=fr")
    assert translated("\tka lo\n\nde\tka lo\n", "target=fr", "input_format=tsv") == both
    records = '{"source": "ka lo", "line": 1}\n\n{"source": "ka lo", "target": "de"}\n'
    assert translated(records, "target=fr", "input_format=jsonl") == both
