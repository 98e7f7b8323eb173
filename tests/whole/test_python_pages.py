"""The examples of docs/reference/python.md and the notebook run."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import notebook
from conftest import TOY, write_toy_text

import nmt as package

DOCS = Path(__file__).parents[2] / "docs"
TINY = [word for word in TOY if not word.startswith(("data", "model=", "tokenizer", "trainer.max_steps"))]


def test_the_examples_of_the_page_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    Path("corpus").mkdir()
    write_toy_text(Path("corpus"), seed=1)
    sets = ["data.valid=corpus/valid", "data.test=corpus/test", "tokenizer.vocabulary_size=300", "workers=1"]

    def prepare(*words, **keys):
        return package.prepare(*words, *sets, **keys)

    def train(*words, batching, **keys):
        return package.train(*words, *TINY, "trainer.max_steps=2", **keys)

    names = {"nmt": SimpleNamespace(**{name: getattr(package, name) for name in package.__all__})}
    names["nmt"].__dict__.update(prepare=prepare, train=train)
    examples = re.findall(r"```python\n(.*?)```", (DOCS / "reference/python.md").read_text(), flags=re.S)
    assert len(examples) == 4
    for example in examples:
        exec(example.replace("import nmt\n", ""), names)
    assert names["run"] == Path("runs/corpus-small")
    assert (names["model"].engine, len(names["texts"])) == ("ctranslate2", 2)
    assert capsys.readouterr().out.count("\n") == 22


def test_the_notebook_prints_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = DOCS / "guides/python.ipynb"
    before, after = (json.loads(file.read_text()) for _ in range(2))
    notebook.run(after)
    results = [
        [[text for text in map(notebook.text_of, cell["outputs"]) if "." in text] for cell in notebook.code_cells(book)]
        for book in (before, after)
    ]
    assert all(cell["outputs"] for cell in notebook.code_cells(before))
    for stored, computed in zip(*results, strict=True):
        # Numbers depend on the processor, but the model is certain of its translations.
        plain = [text for text in stored if not re.search(r"\d\.\d", text)]
        assert set(plain) <= set(computed)
