"""The Python API gives what the commands give; tests/whole runs docs/reference/python.md and the notebook."""

import itertools
import json
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import nmt as package
from nmt.errors import NMTError

LINES = ["ka nu lo", "mi pe", "so tu va we"]
NAMES = [
    "Model",
    "NMTError",
    "Score",
    "Translation",
    "compare",
    "export",
    "load",
    "prepare",
    "score",
    "train",
]


@pytest.fixture(scope="module")
def model(checkpoint) -> package.Model:
    return package.load(checkpoint, engine="torch", device="cpu", beam_size=2)


def test_to_import_the_public_names_loads_nothing_heavy():
    assert sorted(dir(package)) == sorted(package.__all__) == NAMES
    assert (Path(package.__file__).parent / "py.typed").is_file()
    with pytest.raises(AttributeError, match="attribute translate"):
        package.translate  # noqa: B018
    script = "import nmt, sys; dir(nmt); print([name for name in ('torch', 'hydra', 'yaml') if name in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout
        == "[]\n"
    )


def test_it_gives_what_the_commands_give(model, checkpoint, nmt, tmp_path):
    (tmp_path / "source").write_text("\n".join(LINES))
    words = ["translate", checkpoint, "source", "decode.beam_size=2", "device=cpu", "engine=torch"]
    texts = nmt(*words).out.splitlines()
    assert (model.translate(LINES), model.translate(LINES[0]), model.translate([])) == (
        texts,
        texts[0],
        [],
    )
    assert list(model.stream(iter(LINES), buffer=1)) == texts
    assert model.translate(LINES, beam_size=1) == nmt(*words, "decode.beam_size=1").out.splitlines()
    output = nmt(*words, "decode.n_best=2", "format=jsonl").out.splitlines()
    rows, keys = model.explain(LINES, n_best=2), ("text", "score", "log_probability", "flags")
    for row, line in zip(rows, output, strict=True):
        records = [{key: getattr(t, key) for key in keys} | vars(t.details) for t in row]
        assert json.loads(json.dumps(records)) == json.loads(line)["translations"]
    assert [t.text for t in model.explain(LINES[1], n_best=2)] == [t.text for t in rows[1]]
    scores = model.score((line, line) for line in LINES)
    assert scores == pytest.approx([model.score([(line, line)])[0] for line in LINES])
    assert max(scores) < 0
    assert repr(model) == f"<nmt.Model {checkpoint}, engine=torch, precision=float32>"
    options = {"target_prefix": "ka ${x} 'q\"", "decode": {"max_extra_length": 3}}
    assert (
        package.load(Path(checkpoint), device="cpu", **options)
        .translate("ka")
        .startswith("ka ${x} 'q\"")
    )


def test_a_stream_that_is_left_dropped_or_broken_leaves_no_thread(model):
    before, endless = threading.active_count(), (f"ka {n}" for n in itertools.count())
    with model.stream(endless, buffer=2) as translations:
        assert isinstance(next(translations), str)
    for _ in model.stream((f"ka {n}" for n in itertools.count()), buffer=2):
        break
    with pytest.raises(NMTError, match=r"^lines\[1\]=None: must be a string"):
        list(model.stream(["ka", None]))
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_threads_share_a_model_but_forks_do_not(model, monkeypatch):
    pairs = [(line, line) for line in LINES]
    calls = [
        lambda: model.translate(LINES * 5),
        lambda: model.explain(LINES, n_best=2),
        lambda: model.score(pairs),
    ]
    with ThreadPoolExecutor(6) as pool:
        assert [*pool.map(lambda call: call(), calls * 6)] == [call() for call in calls] * 6
    monkeypatch.setattr(os, "getpid", lambda: 1)
    with pytest.raises(NMTError, match="after a fork"):
        model.translate("ka")


@pytest.mark.plugins
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: package.load("runs/nowhere"), "run=runs/nowhere: no such folder"),
        (lambda m: package.load(None), "run=None: must be a run folder or a list of them"),
        (
            lambda m: package.compare(None),
            "systems=None: must be a list of runs or files, or a mapping",
        ),
        (lambda m: package.load(), "train a model first: nmt.prepare(), then nmt.train()"),
        (
            lambda m: package.load(__file__, beem_size=3),
            "unknown key beem_size; did you mean beam_size?",
        ),
        (
            lambda m: package.load(m.translator.options.run, devices=2),
            "devices: a model runs on one device",
        ),
        (
            lambda m: package.load(m.translator.options.run, decode="greedy"),
            "pass search settings by name",
        ),
        (
            lambda m: package.train(optim={"factor": "fast"}),
            "optim.factor=fast: must be a number between",
        ),
        (
            lambda m: package.train(name="${oc.env:HOME}", max_stesp=1),
            "did you mean trainer.max_steps?",
        ),
        (
            lambda m: package.train("nowhere"),
            "no such folder; nmt.train('CORPUS', 'KEY=VALUE...') takes a folder that",
        ),
        (
            lambda m: package.score(["a"], ["b"], metrics=["blue"]),
            "metrics=[blue]: must be a list of bleu",
        ),
        (lambda m: package.score(["a"], ["b", "c"]), "reference"),
        (lambda m: m.translate("a", beam_size=0), "beam_size=0: must be a whole number"),
        (lambda m: m.translate("a", num_beams=4), "num_beams=4: use beam_size=4"),
        (
            lambda m: package.load(m.translator.options.run, num_beams=3),
            "num_beams=3: use beam_size=3",
        ),
        (lambda m: m.translate("a", glossary="nowhere.tsv"), "glossary=nowhere.tsv: no such file"),
        (lambda m: m.translate_file("nowhere.txt", "out.txt"), "input=nowhere.txt: no such file"),
        (
            lambda m: m.translate_file(__file__, "out.txt", beem_size=3),
            "unknown key beem_size; did you mean beam",
        ),
        (lambda m: package.export("nowhere"), "run=nowhere: no such folder"),
        (lambda m: m.stream(["a"], buffer=0), "buffer=0: must be at least 1"),
        (lambda m: m.translate("a", n_best=2), "only model.explain returns several"),
        (lambda m: m.explain("a", n_best=3), "n_best=3: must be at most beam_size=2"),
        (lambda m: m.translate("a\nb"), "lines: one string is one line"),
        (lambda m: m.translate(None), "lines=None: must be a string"),
        (
            lambda m: m.score("a", "b"),
            "pairs: must be (source, target) pairs of strings, as in model.score(zip(",
        ),
        (lambda m: m.score([("a", 1)]), "pairs: must be"),
        (lambda m: m.score(None), "pairs: must be"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_argument(call, message, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(package.NMTError, match=re.escape(message)) as caught:
        call(model)
    assert not re.search(r"\n|decode\.", str(caught.value))


@pytest.mark.plugins
def test_files_and_documents_are_translated_as_by_the_command(model, nmt, here):
    Path("lines.txt").write_text("ka nu lo\nmi so\n")
    Path("page.html").write_text("<p>ka <b>nu</b> lo</p>")
    run = model.translator.options.run[0]
    for name in ("lines.txt", "page.html"):
        assert (
            nmt(
                "translate", run, f"input={name}", f"output=command-{name}", "decode.beam_size=3"
            ).code
            == 0
        )
        output = model.translate_file(name, Path(f"python-{name}"), beam_size=3)
        assert output.read_text() == Path(f"command-{name}").read_text()
    with pytest.raises(NMTError, match="exists: pass overwrite=true"):
        model.translate_file("lines.txt", "python-lines.txt")


@pytest.mark.plugins
def test_a_glossary_is_used_for_one_call(model, here):
    Path("terms.tsv").write_text("nu\tKrokodil\n")
    before = model.translate("ka nu lo")
    assert "Krokodil" in model.translate("ka nu lo", glossary=Path("terms.tsv"))
    assert model.translate("ka nu lo") == before
