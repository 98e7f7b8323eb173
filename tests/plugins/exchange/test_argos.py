"""Packages that Argos Translate itself installs and runs, on a machine without internet.

Its versions of other packages are not ours: NMT_TEST_ARGOS names the Python of an environment that has it.
"""

import importlib.util
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ctranslate2")

from nmt.plugins.exchange.argos_sentences import sentence_model, sentences
from nmt.plugins.exchange.to_argos import ArgosPackage

PYTHON = os.environ.get("NMT_TEST_ARGOS", sys.executable)
HAS_ARGOS = "NMT_TEST_ARGOS" in os.environ or importlib.util.find_spec("argostranslate") is not None
pytestmark = pytest.mark.skipif(not HAS_ARGOS, reason="argostranslate is not installed; see NMT_TEST_ARGOS")

OFFLINE = """
import json, socket, sys

def refuse(*arguments, **options):
    raise OSError("no internet")

socket.socket.connect = socket.getaddrinfo = refuse
given = json.load(sys.stdin)
"""
TRANSLATE = """
from argostranslate import package, translate

package.install_from_path(given["package"])
languages = [(language.code, language.name) for language in translate.get_installed_languages()]
json.dump([languages, [translate.translate(line, "en", "de") for line in given["lines"]]], sys.stdout)
"""
SPLIT = """
from minisbd import SBDetect

detector = SBDetect(given["model"], use_gpu=False)
json.dump([detector.sentences(line) for line in given["lines"]], sys.stdout)
"""
LINES = [
    *(f"ka {a} lo {b} mi {a}{b}" for a in ("nu", "pe", "ri") for b in ("so", "tu", "va", "we")),
    *("", "   ", "Ka nu. Lo mi! Pe", "\uff2b\uff41 nu", "ka\tnu\r", "\U0001f600 ka", "\u2581ka ka_nu", "a\u0323\u0302"),
    "Ka nu lo so, mi pe. Ri ka nu lo tu mi? Ka pe lo va mi peva! " * 12,
]


def by_argos(program: str, home: Path, **given):
    """What a program makes of what it is given, as a user who has never run Argos Translate."""
    own = {"HOME": str(home), "PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", "ARGOS_COMPUTE_TYPE": "default"}
    words, text = [PYTHON, "-W", "ignore", "-c", OFFLINE + program], json.dumps(given)
    done = subprocess.run(words, input=text, capture_output=True, text=True, env=own, cwd=home)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_argos_translate_translates_as_the_comparison_says(checkpoint, nmt, tmp_path, precision):
    path = tmp_path / "translate-en_de-1_0.argosmodel"
    done = nmt("export", checkpoint, "format=argos", f"precision={precision}", f"output={path}")
    assert done.code == 0, done.err
    languages, found = by_argos(TRANSLATE, tmp_path, package=str(path), lines=LINES)
    assert [code for code, _ in languages] == ["en", "de"]
    assert found == ArgosPackage(path, 512).translate(LINES)
    assert sum(map(bool, found)) > len(LINES) / 2


def test_minisbd_finds_the_sentences_that_the_rules_do(tmp_path):
    chance, model = random.Random(1), tmp_path / "sentences.onnx"
    model.write_bytes(sentence_model("en", 10))
    alphabet = "aB\u00e9 .!?\u2026\"'\u00bb\u3002\uff01\u300d)\t\u00a0\u3000\ufb01\u04311"
    lines = ["".join(chance.choices(alphabet, k=chance.randint(0, 60))) for _ in range(2000)]
    lines += ["See https://a.de/x. So write to me@foo.com. Thanks", "Ka nu. " * 500]
    found = by_argos(SPLIT, tmp_path, model=str(model), lines=lines)
    plain = [[" ".join(sentence.split()) for sentence in row] for row in found]
    assert plain == [sentences(line, 10) for line in lines]
