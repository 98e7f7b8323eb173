"""The examples of docs/reference/python.md and the notebook run."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import notebook

import nmt as package
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
