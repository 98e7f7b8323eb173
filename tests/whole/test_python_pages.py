"""The examples of docs/reference/python.md and the notebooks run."""

import base64
import json
import re
import tomllib
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

import nmt as package
from docs import notebook
from tests.conftest import TOY, write_toy_text

DOCS = Path(__file__).parents[2] / "docs"
TINY = [
    word
    for word in TOY
    if not word.startswith(("data", "model=", "tokenizer", "trainer.max_steps"))
]
SETS = [
    "data.valid=corpus/valid",
    "data.test=corpus/test",
    "tokenizer.vocabulary_size=300",
    "workers=1",
]


@pytest.mark.slow
def test_the_examples_of_the_page_run(here, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(here))
    Path("corpus").mkdir()
    write_toy_text(Path("corpus"), seed=1)
    smaller = {
        "prepare": lambda *words, **keys: package.prepare(*words, *SETS, **keys),
        "train": lambda *words, batching, **keys: package.train(
            *words, *TINY, "trainer.max_steps=2", **keys
        ),
    }
    names = {
        "nmt": SimpleNamespace(
            **{name: getattr(package, name) for name in package.__all__} | smaller
        )
    }
    examples = re.findall(
        r"```python\n(.*?)```", (DOCS / "reference/python.md").read_text(), flags=re.S
    )
    assert len(examples) == 4
    for example in examples:
        exec(example.replace("import nmt\n", ""), names)
    assert (names["run"], names["model"].engine, len(names["texts"])) == (
        Path("runs/corpus-small"),
        "ctranslate2",
        2,
    )
    assert capsys.readouterr().out.count("\n") == 22


@pytest.mark.slow
def test_the_notebook_prints_what_it_shows(here):
    content = (DOCS / "guides/python.ipynb").read_text()
    stored, computed = (
        [[*map(notebook.text_of, cell["outputs"])] for cell in notebook.code_cells(book)]
        for book in (json.loads(content), notebook.run(json.loads(content)))
    )
    for before, after in zip(stored, computed, strict=True):
        assert before
        # Numbers depend on the processor, but the model is certain of its translations.
        assert {text for text in before if not re.search(r"\d\.\d", text)} <= {*after}


@pytest.mark.slow
def test_the_notebook_for_colab_trains_on_files(here, monkeypatch):
    """With a smaller model and fewer updates. Outside Colab, it neither uploads nor downloads."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(here))
    Path("corpus").mkdir()
    write_toy_text(Path("corpus"), seed=1)
    smaller = {
        "CORPUS = []": 'CORPUS = ["corpus/train.en", "corpus/train.de"]',
        'data={"name": "colab"},': 'data={"name": "colab", "valid_size": 20, "test_size": 20},',
        "tokenizer=VOCABULARY,": 'tokenizer={"kind": "bpe", "vocabulary_size": 300}, workers=1,',
        "minutes=MINUTES": f"*{[*TINY, 'trainer.max_steps=4', 'validation.every_steps=2']}",
    }
    content = (DOCS / "guides/colab.ipynb").read_text()
    assert content.count("minutes=MINUTES") == 1
    book = json.loads(content)
    for cell in notebook.code_cells(book):
        text = "".join(cell["source"])
        for before, after in smaller.items():
            text = text.replace(before, after)
        cell["source"] = text.splitlines(keepends=True)
    notebook.run(book)

    outputs = [output for cell in notebook.code_cells(book) for output in cell["outputs"]]
    texts = [notebook.text_of(output) for output in outputs]
    assert any(re.match(r"BLEU \d+\.\d\d  nrefs:1", text) for text in texts)
    [picture] = [output["data"]["image/png"] for output in outputs if "image/png" in str(output)]
    assert base64.b64decode(picture).startswith(b"\x89PNG")
    assert f"![](data:image/png;base64,{picture})" in notebook.as_markdown(book)
    with zipfile.ZipFile("model.zip") as archive:
        archive.extractall("unpacked")
    assert package.load("unpacked/model").translate("ka lo")


def test_the_notebook_for_colab_installs_this_package_and_names_one_address():
    """The repository's address is only in the notebook's button, so it can be set in one place."""
    content = (DOCS / "guides/colab.ipynb").read_text()
    project = tomllib.loads((DOCS.parent / "pyproject.toml").read_text())["project"]
    assert f"%pip install --quiet {project['name']} " in content
    address = re.findall(
        r"colab\.research\.google\.com/github/[\w-]+/[\w-]+/blob/main/([\w./]+)", content
    )
    assert [(DOCS.parent / path).exists() for path in address] == [True]
