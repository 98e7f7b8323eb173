"""The Python API: every line of docs/reference/python.md runs, and returns what the commands print."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import TOY, write_toy_text

import nmt as package
from nmt.errors import NMTError

PAGE = (Path(__file__).parents[2] / "docs/reference/python.md").read_text()
TINY = [word for word in TOY if not word.startswith(("data", "model=", "tokenizer", "trainer.max_steps"))]


def test_three_functions_are_public_and_to_import_them_loads_nothing_heavy():
    assert sorted(dir(package)) == sorted(package.__all__) == ["load", "prepare", "train"]
    assert (Path(package.__file__).parent / "py.typed").is_file()
    with pytest.raises(AttributeError, match="attribute translate"):
        package.translate  # noqa: B018
    script = "import nmt, sys; dir(nmt); print([name for name in ('torch', 'hydra', 'yaml') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True).stdout == "[]\n"


def test_every_line_of_the_page_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("corpus").mkdir()
    write_toy_text(Path("corpus"), seed=1)

    def prepare(*words, tokenizer, **keys):
        sets = ("data.valid=corpus/valid", "data.test=corpus/test")
        return package.prepare(*words, *sets, "tokenizer.vocabulary_size=300", "workers=1", **keys)

    def train(*words, **keys):
        keys |= {"trainer": {**keys.get("trainer", {}), "max_steps": 2}}
        return package.train(*(word for word in words if "max_steps" not in word), *TINY, "overwrite=false", **keys)

    names = {"nmt": SimpleNamespace(prepare=prepare, train=train, load=package.load)}
    given = []
    for block in re.findall(r"```python\n(.*?)```", PAGE, flags=re.S):
        for line in filter(None, block.replace("import nmt\n", "").splitlines()):
            whole = line.startswith("import ") or " = " in line.partition("(")[0]
            exec(line if whole else f"given = {line}", names)
            given.append(names.get("given"))
    assert given[:2] == [Path("data/corpus"), Path("runs/corpus-small")]
    assert all(isinstance(text, str) for text in given[3])
    assert all(isinstance(score, float) and score < 0 for score in given[4])


def test_it_gives_what_the_commands_give(checkpoint, nmt, tmp_path):
    lines, references = ["ka nu lo", "mi pe", "so tu va we"], ["lo ka", "mi", "we"]
    (tmp_path / "source").write_text("\n".join(lines))
    model = package.load(checkpoint, device="cpu", decode={"beam_size": 2})
    printed = nmt("translate", checkpoint, "source", "decode.beam_size=2", "device=cpu", "engine=torch").out
    assert model.translate(lines) == printed.splitlines()
    assert (model.translate([]), model.score([])) == ([], [])
    assert len(model.score(zip(lines, references, strict=True))) == 3
    model = package.load(checkpoint, device="cpu", target_prefix="ka ${x} 'q\"", decode={"max_extra_length": 3})
    assert model.translate(["ka"])[0].startswith("ka ${x} 'q\"")
    with pytest.raises(NMTError, match=r"^model\.translate takes a list"):
        model.translate("The house")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: package.load("runs/nowhere"), "runs/nowhere: no such file or folder"),
        (lambda: package.load(decode={"beem_size": 3}), "did you mean decode.beam_size?"),
        (lambda: package.train(optim={"factor": "fast"}), "optim.factor=fast: must be a number between"),
        (lambda: package.train(name="${oc.env:HOME}", max_stesp=1), "did you mean trainer.max_steps?"),
        (lambda: package.load("no such run"), "nmt.load takes a run or a model directory"),
        (lambda: package.load(__file__), "nmt.load takes a run or a model directory"),
        (lambda: package.load(engine="ctranslate2"), "engine=ctranslate2: "),
    ],
)
def test_a_mistake_is_the_line_that_a_command_prints(call, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NMTError, match=re.escape(said)):
        call()
