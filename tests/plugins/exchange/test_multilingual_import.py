"""Imported M2M-100, NLLB, SMaLL-100 and mBART-50 models against transformers."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.config import BOS, EOS, UNK, DecodeConfig
from nmt.plugins.exchange.multilingual_vocabulary import read_vocabulary
from nmt.search import beam_search, forced_decoding
from nmt.text import read_tokenizer
from tests.helpers.multilingual import (
    PAIRS,
    STEPS,
    Case,
    as_stored_in_2022,
    change,
    lines_in_many_scripts,
    renumbered,
    write_folder,
)

transformers = pytest.importorskip("transformers")

LINES = 5000


def score_of(case: Case, ids: list[int]) -> float:
    """The sum of the scores of pieces in the unigram model."""
    processor = case.tokenizer.base.processor
    return sum(processor.get_score(case.tokenizer.pieces_of_ids[id]) for id in ids if id > UNK)


@pytest.mark.slow
def test_lines_in_27_languages_have_the_ids_of_transformers(case):
    lines = lines_in_many_scripts(LINES, seed=2)
    ties = 0
    for line, ids in zip(lines, case.encode(lines), strict=True):
        expected = renumbered(case.their_tokenizer(line)["input_ids"])
        if case.kind == "small100":
            # Its own tokenizer begins with the target language.
            expected[0] = ids[0]
        if [*ids, EOS] == expected:
            continue
        # Of two segmentations with the same score, sentencepiece and tokenizers may choose
        # different ones. fairseq uses sentencepiece.
        assert case.kind == "mbart"
        assert sorted([*ids, EOS]) == sorted(expected)
        assert score_of(case, ids[1:]) == pytest.approx(score_of(case, expected[1:]))
        ties += 1
    assert ties < LINES / 100


def test_decoded_text_is_that_of_transformers(case):
    for line in lines_in_many_scripts(300, seed=3):
        # Without the tag, which the slow tokenizers of transformers would write.
        [ids] = case.tokenizer.encode([case.tokenizer.clean(line)])
        theirs = case.their_tokenizer.decode(renumbered(ids), skip_special_tokens=True)
        # <unk> is a special token there, too.
        assert case.tokenizer.decode(ids).split() == theirs.replace("⁇", "").split()


def test_logits_are_those_of_transformers(case):
    generator = torch.Generator().manual_seed(5)
    size = case.ours.vocabulary_size
    sources = torch.randint(UNK + 1, size, (4, 30), generator=generator)
    targets = torch.randint(UNK + 1, size, (4, 25), generator=generator)
    # The second sentence is shorter; padding and the end symbol follow it.
    sources[:, -1] = EOS
    sources[1, 20] = EOS
    sources[1, 21:] = 0
    order = torch.arange(size)
    order[:2] = torch.tensor([1, 0])
    decoder_start = torch.full((4, 1), EOS)
    with torch.no_grad():
        expected = case.theirs(
            input_ids=order[sources],
            attention_mask=(sources != 0).long(),
            decoder_input_ids=torch.cat((decoder_start, targets), dim=1),
        ).logits
        start = torch.full((4, 1), BOS)
        logits = case.ours(sources, torch.cat((start, targets), dim=1))
    assert (logits - expected[..., order]).abs().max() < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 4])
def test_translations_are_those_of_transformers(case, beam):
    lines = [line for line in lines_in_many_scripts(60, seed=6) if len(line) < 40]
    extra = 12
    config = DecodeConfig(
        beam_size=beam, length_penalty=1.0, length_penalty_kind="marian", max_extra_length=extra
    )
    _, target = PAIRS[case.kind]
    language = case.tokenizer.languages[target]
    compared = 0
    for ids in case.encode(lines):
        sources = torch.tensor([[*ids, EOS]])
        longest = len(ids) + 1 + extra
        with torch.inference_mode():
            [tokens] = case.theirs.generate(
                input_ids=torch.tensor([renumbered([*ids, EOS])]),
                num_beams=beam,
                do_sample=False,
                # Set for each model, because its generation_config.json may have another.
                forced_bos_token_id=None if case.kind == "small100" else language,
                decoder_start_token_id=EOS,
                length_penalty=1.0,
                early_stopping="never" if beam > 1 else False,
                max_length=longest + 1,
                # nmt writes no symbols either.
                suppress_tokens=[0, 1, 3],
            ).tolist()
        [[hypothesis, *_]] = beam_search([case.ours], sources, config, [case.target_tag])
        # At the maximum length, transformers leaves out the end symbol, or its log P (mBART).
        if max(len(hypothesis.tokens) + 1, len(tokens) - 1) >= longest:
            continue
        assert renumbered(tokens[1:]) == [*hypothesis.tokens, EOS]
        compared += 1
        # The tag is given, so its log P does not count.
        [scores] = forced_decoding([case.ours], [(ids, hypothesis.tokens)], budget=1000)
        assert sum(scores.log_probabilities) == pytest.approx(hypothesis.log_probability, abs=1e-4)
        if case.target_tag:
            assert scores.log_probabilities[0] == 0
    assert compared > len(lines) / 2


@pytest.mark.slow
def test_certificate_stands_in_the_model_directory(nmt, tmp_path):
    write_folder(tmp_path / "hub", "small100", steps=STEPS)
    done = nmt("import", "hub", "output=model")
    assert done.code == 0
    origin, certificate = done.out.splitlines()
    assert origin == "model: hub, trained by fairseq or transformers"
    assert "the same tokens for 5,000 of 5,000 lines" in certificate
    [logits] = re.findall(r"logits within (\S+);", certificate)
    assert float(logits) < 1e-5
    same = re.findall(r"(\d+) of (\d+) \(", certificate)
    assert [one == all for one, all in same] == [True, True]
    assert int(same[0][0]) > 5
    assert certificate in (tmp_path / "model" / "README.md").read_text()
    # The directory is still whole.
    assert nmt("translate", "model", "target=ru", "Hello.", "engine=torch").code == 0


def test_older_files_give_the_same_model(nmt, tmp_path):
    write_folder(tmp_path / "new", "nllb")
    as_stored_in_2022(tmp_path / "new", tmp_path / "old")
    for name in ("new", "old"):
        assert nmt("import", name, f"output=model-{name}", "verify=false").code == 0
    weights = [tmp_path / f"model-{name}" / "model.safetensors" for name in ("new", "old")]
    assert weights[0].read_bytes() == weights[1].read_bytes()
    tokenizers = [read_tokenizer(path.parent) for path in weights]
    # Their ids differ: today, transformers numbers <mask> before languages.
    assert [*tokenizers[0].languages] == [*tokenizers[1].languages]
    lines = lines_in_many_scripts(2000, seed=7)
    assert tokenizers[0].encode(lines) == tokenizers[1].encode(lines)


@pytest.fixture(scope="module")
def nllb(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("nllb") / "hub"
    write_folder(folder, "nllb")
    return folder


@pytest.fixture
def copy(nllb, tmp_path) -> Path:
    """A copy of the folder, to damage."""
    shutil.copytree(nllb, tmp_path / "hub")
    return tmp_path / "hub"


def with_added_token(folder: Path, content: str, id: int) -> None:
    path = folder / "tokenizer.json"
    tree = json.loads(path.read_text())
    tree["added_tokens"].append({"content": content, "id": id, "special": True})
    path.write_text(json.dumps(tree))


def without_languages(folder: Path) -> None:
    change(folder / "tokenizer.json", added_tokens=[])
    change(folder / "tokenizer_config.json", extra_special_tokens=[])


class Pickled:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("executed",)


def with_pickle(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    torch.save({"model.shared.weight": Pickled()}, folder / "pytorch_model.bin")


def with_index(folder: Path, name: str) -> None:
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"model.shared.weight": name}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


DAMAGE = {
    "layers": (lambda folder: change(folder / "config.json", encoder_layers=4), "is missing"),
    "many layers": (
        lambda folder: change(folder / "config.json", encoder_layers=10**6),
        "encoder_layers",
    ),
    "width": (lambda folder: change(folder / "config.json", d_model=64), "has shape"),
    "unscaled": (
        lambda folder: change(folder / "config.json", scale_embedding=False),
        "only True can be imported",
    ),
    "pickle": (with_pickle, "more than plain tensors"),
    "path": (lambda folder: with_index(folder, "../../secret"), "not a file in the folder"),
    "missing part": (lambda folder: with_index(folder, "part-1"), "not a file in the folder"),
    "no weights": (lambda folder: (folder / "model.safetensors").unlink(), "contains neither"),
    "no vocabulary": (lambda folder: (folder / "tokenizer.json").unlink(), "contains neither"),
    "large id": (lambda folder: with_added_token(folder, "tyv_Cyrl", 10**7), "10000000"),
    "negative id": (lambda folder: with_added_token(folder, "tyv_Cyrl", -1), "-1"),
    "same id": (lambda folder: with_added_token(folder, "tyv_Cyrl", 10), "two entries"),
    "legacy": (
        lambda folder: change(folder / "tokenizer_config.json", legacy_behaviour=True),
        "legacy_behaviour",
    ),
    "vocabulary of another form": (
        lambda folder: change(folder / "tokenizer.json", model={"type": "BPE", "vocab": 3}),
        "cannot read its vocabulary",
    ),
    "no languages": (without_languages, "names no languages"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_and_hostile_folders_are_refused_in_one_line(nmt, copy, name):
    damage, message = DAMAGE[name]
    damage(copy)
    done = nmt("import", "hub", "output=model")
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert done.out == ""
    assert not (copy.parent / "model").exists()


def test_code_that_is_a_path_is_no_language(copy):
    with_added_token(copy, "../../etc", 4205)
    assert "../../etc" not in read_vocabulary(copy, 4206).languages


@pytest.mark.slow
def test_lines_name_their_languages(nmt, nllb, tmp_path):
    assert nmt("import", str(nllb), "output=model", "verify=false").code == 0

    def scored(*words: str) -> str:
        # With scores, because this small model translates into all languages alike.
        done = nmt("translate", "model", "engine=torch", "format=tsv", *words)
        assert done.code == 0
        return done.out

    expected = scored("source=en", "target=de", "Hello.")
    assert scored("<eng_Latn2deu_Latn> Hello.") == expected
    assert scored("source=fr", "target=de", "<en2> Hello.") == expected
    assert scored("source=eng_Latn", "<2German> Hello.") == expected
    assert scored("source=en", "target=fra_Latn", "Hello.") != expected
    assert scored("source=fr", "target=de", "Hello.") != expected


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["Hello."], "line 1: its source language is not known"),
        (["source=en", "Hello."], "line 1: its target language is not known"),
        (["<en2tlh> Hello."], "line 1: target=tlh: "),
        (["source=en", "target=de", "<2xx> Hello."], "line 1: target=xx: "),
        (["source=tlh", "target=de", "Hello."], "source=tlh: "),
    ],
)
def test_missing_languages_are_named(nmt, nllb, words, message):
    assert nmt("import", str(nllb), "output=model", "verify=false").code == 0
    done = nmt("translate", "model", "engine=torch", *words)
    assert done.code == 2
    assert message in done.err


@pytest.mark.slow
def test_a_difference_from_the_original_is_a_warning(nmt, copy):
    """transformers leaves another token out of the attention."""
    change(copy / "config.json", pad_token_id=5)
    done = nmt("import", "hub", "output=model")
    assert done.code == 0
    assert "warning: model: the imported model differs from the original" in done.err


@pytest.mark.slow
def test_small_100_takes_the_target_of_a_tag_with_both_languages(nmt, tmp_path):
    write_folder(tmp_path / "hub", "small100")
    assert nmt("import", "hub", "output=model", "verify=false").code == 0

    def scored(line: str) -> str:
        done = nmt("translate", "model", "engine=torch", "format=tsv", line)
        assert done.code == 0, done.err
        return done.out

    assert scored("<en2de> Hello.") == scored("<2de> Hello.") != scored("<en2fr> Hello.")
    done = nmt("translate", "model", "engine=torch", "<en2tlh> Hello.")
    assert done.code == 2
    assert "<en2tlh>: not a language of the model" in done.err


def test_an_existing_model_is_replaced_only_on_request(nmt, nllb):
    words = ("import", str(nllb), "output=model", "verify=false")
    assert nmt(*words).code == 0
    nmt(*words).refused("output=model: exists; pass another folder, or overwrite=true")
    assert nmt(*words, "overwrite=true").code == 0


@pytest.mark.parametrize("content", [None, "{}"])
def test_the_numbers_of_subwords_are_not_guessed(nmt, tmp_path, content):
    write_folder(tmp_path / "hub", "m2m")
    path = tmp_path / "hub" / "vocab.json"
    if content is None:
        path.unlink()
    else:
        path.write_text(content)
    nmt("import", "hub", "output=model").refused("has no vocab.json, which numbers the subwords")
