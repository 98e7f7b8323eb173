"""Extended vocabularies: old outputs stay the same, and new languages are learned."""

import json
import random
import shutil
from pathlib import Path

import pytest
import torch

from nmt.config import BOS, EOS, UNK
from nmt.model import load_model
from nmt.search import forced_decoding
from nmt.text import TARGET, MultilingualTokenizer, read_tokenizer
from tests.helpers.multilingual import LOCALES, STEPS, lines_in_many_scripts, write_folder

pytest.importorskip("transformers")

WORDS = [
    "ыңгай",
    "тыва",
    "дыл",
    "чоннуң",
    "ӧрээл",
    "ӧг",
    "болур",
    "мен",
    "сен",
    "кижи",
    "хүн",
    "ном",
    "ӧӧредир",
    "чагаа",
]
"""Words of Tuvan, with letters that the vocabulary lacks."""
EXTEND = ("languages=[tyv_Cyrl]", "like=[kaz_Cyrl]", "text=[corpus.tyv]", "subwords=40")


def tuvan(lines: int, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(WORDS, k=rng.randint(3, 8))) + "." for _ in range(lines)]


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    """A folder with an imported model, and the same model with Tuvan."""
    from nmt.config import build
    from nmt.plugins.exchange.importing import ImportConfig, run_import
    from nmt.plugins.extend.command import ExtendConfig, run_extend

    folder = tmp_path_factory.mktemp("extend")
    write_folder(folder / "hub", "nllb", steps=STEPS)
    run_import(ImportConfig(path=str(folder / "hub"), output=str(folder / "old"), verify=False))
    (folder / "corpus.tyv").write_text("\n".join(tuvan(600)))
    options = {
        "run": str(folder / "old"),
        "output": str(folder / "new"),
        "languages": ["tyv_Cyrl"],
        "like": ["kaz_Cyrl"],
        "text": [str(folder / "corpus.tyv")],
        "subwords": 40,
    }
    run_extend(build(ExtendConfig, options))
    return folder


@pytest.fixture(scope="module")
def loaded(models):
    return [(load_model(models / name), read_tokenizer(models / name)) for name in ("old", "new")]


@pytest.mark.slow
def test_thousand_lines_have_the_same_translations_and_scores(nmt, models, tmp_path):
    text = "\n".join(line for line in lines_in_many_scripts(1000, seed=8))
    (tmp_path / "input").write_text(text + "\n")
    outputs = []
    for name in ("old", "new"):
        words = ("source=en", "target=ru", "format=jsonl", "engine=torch", "decode.beam_size=2")
        done = nmt("translate", str(models / name), "input=input", *words)
        assert done.code == 0
        outputs.append(done.out)
    assert outputs[0].count("\n") == 1000
    assert outputs[0] == outputs[1]


@torch.no_grad()
def test_logits_of_old_entries_have_the_same_bits(loaded):
    (old, _), (new, _) = loaded
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(UNK + 1, old.vocabulary_size, (2, 5, 20), generator=generator)
    sources, targets = ids
    sources[:, -1] = EOS
    targets[:, 0] = BOS
    before = old(sources, targets)
    after = new(sources, targets)
    assert torch.equal(after[..., : old.vocabulary_size], before)
    assert (after[..., old.vocabulary_size :] == -torch.inf).all()
    pairs = [(sources[0, :-1].tolist(), targets[0, 1:].tolist())]
    scores = [forced_decoding([model], pairs, 500)[0].log_probabilities for model in (old, new)]
    assert scores[0] == scores[1]


def test_text_in_old_languages_has_the_same_ids(loaded):
    (_, old), (_, new) = loaded
    # Tuvan words, too, if the tag says that the text is in another language.
    lines = lines_in_many_scripts(500, seed=9) + tuvan(100, seed=2)
    tagged = [f"<rus_Cyrl2eng_Latn> {line}" for line in lines]
    assert new.encode(tagged) == old.encode(tagged)
    tag = "<eng_Latn2rus_Cyrl>"
    assert new.encode(lines, TARGET, tag) == old.encode(lines, TARGET, tag)


def test_text_in_the_new_language_takes_fewer_tokens(loaded):
    (_, old), (_, new) = loaded
    lines = tuvan(100, seed=3)
    before = sum(map(len, old.encode(lines)))
    tag = "<eng_Latn2tyv_Cyrl>"
    rows = new.encode(lines, TARGET, tag)
    assert sum(map(len, rows)) < 0.5 * before
    # What lacks no character any more is lossless.
    assert [new.decode(row) for row in rows] == lines
    sources = new.encode([f"<tyv_Cyrl2eng_Latn> {line}" for line in lines])
    assert [row[1:] for row in sources] == rows
    assert {row[0] for row in sources} == {new.languages["tyv_Cyrl"]}


def test_new_rows_start_from_old_ones(loaded):
    (old_model, old), (model, new) = loaded
    rows = model.source_embedding.weight
    like = old_model.source_embedding.weight[old.languages["kaz_Cyrl"]]
    assert torch.equal(rows[new.languages["tyv_Cyrl"]], like)
    entries = {entry: id for id, entry in enumerate(new.vocabulary())}
    # A letter with a mark starts from the letter.
    assert torch.equal(rows[entries["ӧ"]], rows[entries["о"]])
    assert torch.equal(rows[: old_model.vocabulary_size], old_model.source_embedding.weight)


def test_extending_twice_keeps_both(nmt, models, tmp_path):
    (tmp_path / "corpus.tyv").write_text((models / "corpus.tyv").read_text())
    words = ("languages=[aaa_Cyrl]", "like=[tyv_Cyrl]", "text=[corpus.tyv]", "subwords=60")
    done = nmt("extend", str(models / "new"), "output=twice", *words)
    assert done.code == 0
    tokenizer = read_tokenizer(tmp_path / "twice")
    before = read_tokenizer(models / "new")
    lines = tuvan(50, seed=4)
    tag = "<eng_Latn2tyv_Cyrl>"
    assert tokenizer.encode(lines, TARGET, tag) == before.encode(lines, TARGET, tag)
    longer = tokenizer.encode(lines, TARGET, "<eng_Latn2aaa_Cyrl>")
    assert sum(map(len, longer)) < sum(map(len, tokenizer.encode(lines, TARGET, tag)))


def test_text_with_symbols_and_tags_adds_no_entry_for_them(nmt, models, tmp_path):
    words = ["<unk>", "</s>", "<pad>", "<mask>", "eng_Latn", "tyv_Cyrl", "a\0b", "\0", "ŋa"]
    (tmp_path / "corpus.tyv").write_text("\n".join([" ".join(words)] * 40))
    options = ("languages=[tyv_Cyrl]", "like=[kaz_Cyrl]", "text=[corpus.tyv]", "min_count=2")
    done = nmt("extend", str(models / "old"), "output=odd", *options)
    assert done.code == 0, done.err
    tokenizer = read_tokenizer(tmp_path / "odd")
    [ids] = tokenizer.encode(["<eng_Latn2tyv_Cyrl> ŋa <unk> </s> eng_Latn tyv_Cyrl"])
    assert not {0, 1, 2, *tokenizer.languages.values()} & {*ids[1:]}


@pytest.mark.slow
def test_training_makes_the_new_entries_predictable(nmt, models, tmp_path):
    lines = tuvan(400, seed=5)
    english = [f"line {number}" for number in range(len(lines))]
    for name, part in (("train", slice(0, 360)), ("valid", slice(360, 400))):
        (tmp_path / f"{name}.tyv").write_text("\n".join(lines[part]) + "\n")
        (tmp_path / f"{name}.en").write_text("\n".join(english[part]) + "\n")
    init = f"init={models / 'new'}"
    keys = ("data.source=en", "data.target=tyv", "data.train=train", "data.valid=valid")
    done = nmt("preprocess", init, "data=files", "data.name=tyv", *keys, "data.test_size=0")
    assert done.code == 0
    assert "lacks" not in done.err
    steps = ("experiment=adapt", "trainer.max_steps=3", "optim.warmup=1")
    done = nmt("train", "data/tyv", init, *steps, "checkpoints.every_steps=3")
    assert done.code == 0
    description = json.loads((tmp_path / "runs/tyv-m2m_100/model/config.json").read_text())
    assert description["model"]["untrained"] == 0
    assert description["target"] == "tyv_Cyrl"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "languages: name the languages"),
        (("languages=[tyv_Cyrl]",), "like: name one language"),
        (("languages=[tyv_Cyrl]", "like=[tlh]"), "like=tlh"),
        (("languages=[rus_Cyrl]", "like=[kaz_Cyrl]"), "in the vocabulary already"),
        (("languages=[arb]", "like=[kaz_Cyrl]"), "in the vocabulary already, as arb_Arab"),
        (("languages=[ENG_LATN]", "like=[kaz_Cyrl]"), "in the vocabulary already, as eng_Latn"),
        (("languages=[tyv_Cyrl,tyv_Cyrl]", "like=[ru,ru]"), "tyv_Cyrl is given twice"),
        (("languages=[日本]", "like=[ru]"), "must be a language code"),
        (("languages=[en2de]", "like=[ru]"), "must be a language code"),
        (("languages=[tyv_Cyrl]", "like=[ru]", "output=old"), "exists; pass another folder"),
        (("languages=[../x]", "like=[kaz_Cyrl]"), "must be a language code"),
        (("languages=[tyv]", "like=[kaz_Cyrl]"), "three letters and a script; pass tyv_Cyrl"),
        (("languages=[Tuvan]", "like=[kaz_Cyrl]"), "three letters and a script; pass tyv_Cyrl"),
    ],
)
def test_mistakes_take_one_line(nmt, models, tmp_path, words, message):
    shutil.copytree(models / "old", "old")
    done = nmt("extend", "old", "output=new", *words)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "new").exists()


@pytest.fixture
def own(nmt, tmp_path) -> Path:
    """A model of nmt with tags for two target languages, trained for two updates."""
    # The first of the languages: English.
    lines = lines_in_many_scripts(len(LOCALES) * 300, seed=1)[:: len(LOCALES)]
    for language in ("en", "de", "fr"):
        (tmp_path / f"train.{language}").write_text("\n".join(lines) + "\n")
        (tmp_path / f"valid.{language}").write_text("\n".join(lines[:20]) + "\n")
    (tmp_path / "conf" / "data").mkdir(parents=True)
    (tmp_path / "conf" / "data" / "tagged.yaml").write_text(TAGGED)
    words = ("data=tagged", "tokenizer.vocabulary_size=400", "tokenizer=bpe37k")
    assert nmt("preprocess", "--config-dir", "conf", *words).code == 0
    steps = ("model=tiny", "trainer.max_steps=2", "checkpoints.every_steps=2", "optim.warmup=1")
    assert nmt("train", "data/tagged", *steps).code == 0
    return tmp_path / "runs" / "tagged-tiny"


TAGGED = """
defaults: [files]
name: tagged
target: any
valid_size: 0
test_size: 0
sources:
- {target: de, train: train, valid: valid, tag: <2de>}
- {target: fr, train: train, valid: valid, tag: <2fr>}
"""


@pytest.mark.slow
def test_a_model_of_nmt_gets_languages_after_training(nmt, own, tmp_path):
    (tmp_path / "corpus.tyv").write_text("\n".join(tuvan(300)))
    words = ("languages=[tyv]", "like=[de]", "text=[corpus.tyv]", "subwords=30")
    done = nmt("extend", str(own), "output=new", *words)
    assert done.code == 0, done.err
    old = read_tokenizer(own / "model")
    new = read_tokenizer(tmp_path / "new")
    assert isinstance(new, MultilingualTokenizer)
    assert [*new.tags] == [*old.tags, "<2tyv>"]
    lines = lines_in_many_scripts(len(LOCALES) * 20, seed=3)[:: len(LOCALES)]
    (tmp_path / "input").write_text("\n".join(lines) + "\n")
    outputs = []
    for run in (str(own), "new"):
        options = ("target=de", "format=jsonl", "engine=torch", "input=input")
        outputs.append(nmt("translate", run, *options).out)
    assert outputs[0]
    assert outputs[0] == outputs[1]
    tagged = [f"<2de> {line}" for line in lines]
    assert new.encode(tagged) == old.encode(tagged)
    rows = new.encode(tuvan(20, seed=6), TARGET, "<2tyv>")
    assert [new.decode(row) for row in rows] == tuvan(20, seed=6)
    assert sum(map(len, rows)) < sum(map(len, new.encode(tuvan(20, seed=6), TARGET, "<2de>")))
