"""The translation of lines, with a real tokenizer and a random model."""

import random
import threading
from dataclasses import replace
from itertools import chain, islice

import pytest
import torch

from nmt.config import EOS, DecodeConfig, ModelConfig, TokenizerConfig
from nmt.model import Transformer
from nmt.search import TorchEngine, batches_by_length, beam_search
from nmt.text import Tokenizer, clean, train_tokenizer
from nmt.translation import RefusedLine, Translation, Translator, lines_of, score_pairs
from nmt.translation.joining import text
from nmt.translation.limits import Limits


def random_lines(count: int, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    syllables = ["ba", "dem", "ki", "lo", "nu", "schi", "ße", "tra"]
    words = []
    for _ in range(30):
        words.append("".join(draw.choices(syllables, k=draw.randint(1, 3))))
    lines = []
    for _ in range(count):
        lines.append(" ".join(draw.choices(words, k=draw.randint(1, 8))))
    return lines


LINES = random_lines(24)


@pytest.fixture(scope="module", params=["bpe", "wordpiece"])
def tokenizer(request) -> Tokenizer:
    return train_tokenizer(
        random_lines(60), TokenizerConfig(kind=request.param, vocabulary_size=600)
    )


def random_model(tokenizer: Tokenizer, **settings) -> Transformer:
    """Its attention is strong enough that each word of a line changes the translation."""
    torch.manual_seed(3)
    settings = {
        "encoder_layers": 1,
        "decoder_layers": 1,
        "d_model": 16,
        "d_ff": 16,
        "heads": 2,
        **settings,
    }
    model = Transformer(ModelConfig(name="tiny", **settings), tokenizer.vocabulary_size).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "attention" in name:
                parameter.mul_(3)
    return model


@pytest.fixture(scope="module")
def model(tokenizer) -> Transformer:
    return random_model(tokenizer)


def translator(model: Transformer, tokenizer: Tokenizer, **settings) -> Translator:
    defaults = {"beam_size": 2, "max_extra_length": 3}
    config = DecodeConfig(**(defaults | settings))
    return Translator(TorchEngine([model], config), tokenizer)


def assert_same(actual: list[list[Translation]], expected: list[list[Translation]]) -> None:
    """Compare the texts and scores of the translations of each line."""
    for ours, theirs in zip(actual, expected, strict=True):
        assert [translation.text for translation in ours] == [
            translation.text for translation in theirs
        ]
        scores = [translation.score for translation in theirs]
        assert [translation.score for translation in ours] == pytest.approx(scores, abs=1e-4)


def test_batches_are_full_sorted_and_of_few_shapes():
    draw = random.Random(4)
    for _ in range(50):
        lengths = [draw.randint(1, 30) for _ in range(draw.randint(0, 80))]
        budget = draw.randint(1, 100)
        batches = list(batches_by_length(lengths, budget))
        indices = [*chain.from_iterable(batches)]
        assert sorted(indices) == [*range(len(lengths))]
        ordered = [lengths[index] for index in indices]
        assert ordered == sorted(lengths, reverse=True)
        for batch in batches[:-1]:
            most = budget // lengths[batch[0]]
            size = max(most, 1) if most <= 16 else most // 8 * 8
            assert len(batch) == size


def test_a_translation_is_the_decoded_result_of_beam_search(model, tokenizer):
    line = LINES[0]
    config = DecodeConfig(beam_size=3, n_best=3, max_extra_length=3)
    ids = tokenizer.encode([line])[0]
    [hypotheses] = beam_search([model], torch.tensor([[*ids, EOS]]), config)
    [translations] = Translator(TorchEngine([model], config), tokenizer).translate([line])
    for translation, hypothesis in zip(translations, hypotheses, strict=True):
        assert translation.text == clean(tokenizer.decode(hypothesis.tokens))
        assert translation.score == hypothesis.score
        assert translation.log_probability == hypothesis.log_probability


@pytest.mark.parametrize("batch_tokens", [1, 60])
def test_order_and_batching_do_not_change_a_translation(
    model, tokenizer, batch_tokens, monkeypatch
):
    default = translator(model, tokenizer)
    alone = [default.translate([line])[0] for line in LINES]
    assert len({translations[0].text for translations in alone}) > len(LINES) // 2
    in_batches = translator(model, tokenizer, batch_tokens=batch_tokens)
    assert_same(in_batches.translate(LINES), alone)
    order = random.Random(batch_tokens).sample(range(len(LINES)), len(LINES))
    shuffled = in_batches.translate([LINES[index] for index in order])
    assert_same(shuffled, [alone[index] for index in order])
    monkeypatch.setattr("nmt.translation.translator.AHEAD", 5)
    assert_same(replace(default, ahead=True).translate(LINES), alone)


def test_lines_are_normalized_like_training_text(model, tokenizer):
    lines = ["\ufb01ne  \uff57ords\u00a0here ", "fine words here"]
    typed, cleaned = translator(model, tokenizer).translate(lines)
    assert_same([typed], [cleaned])


@pytest.mark.parametrize("separator", ["\n", "\r\n", "\x0b", "\x85", "\u2028", "\t"])
def test_decoded_line_breaks_become_blanks(tokenizer, separator):
    assert text(tokenizer, tokenizer.encode([f"ba{separator}lo"])[0]) == "ba lo"


@pytest.mark.parametrize("buffer", [1, 8])
def test_a_stream_reads_at_most_two_buffers_ahead(model, tokenizer, buffer):
    read = 0

    def endless():
        nonlocal read
        while True:
            read += 1
            yield ""

    ahead = []
    stream = translator(model, tokenizer).stream(endless(), buffer)
    for written in range(40):
        next(stream)
        ahead.append(read - written)
    # The reader may hold one more line that does not fit into its queue.
    assert max(ahead) <= 2 * buffer + 1


def test_a_stream_yields_a_translation_before_the_next_line_arrives(model, tokenizer):
    seen = threading.Event()

    def conversation():
        yield LINES[0]
        if not seen.wait(timeout=20):
            raise TimeoutError("no output while the input waited for it")
        yield LINES[1]

    stream = translator(model, tokenizer).stream(conversation(), 100)
    first = next(stream)
    seen.set()
    assert_same([first, *stream], translator(model, tokenizer).translate(LINES[:2]))


@pytest.mark.parametrize("good", [0, 5])
def test_an_error_of_the_input_is_raised_after_the_lines_before_it(model, tokenizer, good):
    def breaking():
        yield from LINES[:good]
        raise ValueError("the disk is gone")

    stream = translator(model, tokenizer).stream(breaking(), 3)
    before = [next(stream) for _ in range(good)]
    with pytest.raises(ValueError, match="the disk is gone"):
        next(stream)
    assert_same(before, translator(model, tokenizer).translate(LINES[:good]))


@pytest.fixture(scope="module")
def tagged() -> Tokenizer:
    return train_tokenizer(random_lines(60), TokenizerConfig("bpe", 600), tags=["<2de>", "<2fr>"])


@pytest.fixture(scope="module")
def mixed(tagged) -> tuple[Translator, list[str], list[int]]:
    """A translator with few positions, lines, and the indices of those that it refuses."""
    model = random_model(tagged, positions="learned", max_positions=12)
    engine = TorchEngine([model], DecodeConfig(beam_size=2))
    ours = Translator(engine, tagged, Limits(positions=11), "<2de> ")
    lines = [
        "<2xx> ba lo",  # an unknown tag
        LINES[0][:12],
        LINES[1][:12],
        LINES[2][:12],
        "ba ki lo nu " * 10,  # too long
        "",
        "<2fr> " + "lo " * 40,  # too long
        "<2fr> nu",
    ]
    return ours, lines, [0, 4, 6]


def test_refused_lines_do_not_affect_other_lines(mixed):
    ours, lines, refused = mixed
    outcomes = ours.translate_each(lines)
    for index, (line, outcome) in enumerate(zip(lines, outcomes, strict=True)):
        if index in refused:
            assert isinstance(outcome, RefusedLine)
            with pytest.raises(RefusedLine) as alone:
                ours.translate([line])
            assert alone.value.problem == outcome.problem
        else:
            assert_same([outcome], ours.translate([line]))
    assert ours.translate_each([]) == []


def test_score_pairs(mixed, tagged):
    ours = mixed[0]
    pairs = [("ba lo", "ki"), ("<2fr> nu", "ba ki")]
    sources = tagged.encode(["<2de> ba lo", "<2fr> nu"])  # the first one gets the source prefix
    targets = tagged.encode(["ki", "ba ki"])
    forced = ours.engine.token_scores(list(zip(sources, targets, strict=True)))
    for score, ids, scores in zip(score_pairs(ours, pairs), targets, forced, strict=True):
        assert score.tokens == tagged.subwords(ids)
        assert score.token_log_probabilities == pytest.approx(scores.log_probabilities, abs=1e-5)
        assert score.log_probability == sum(score.token_log_probabilities)


def test_score_pairs_names_the_first_refused_source(mixed):
    ours = mixed[0]
    with pytest.raises(RefusedLine, match=r"^line 3: <2xx>"):
        score_pairs(ours, [("ba lo", "ki"), ("<2fr> nu", "ba ki"), ("<2xx> ba", "ba")])


def test_the_first_refused_line_is_raised(mixed):
    ours, lines, _ = mixed
    with pytest.raises(RefusedLine, match=r"^line 4: .*max_positions=12"):
        ours.translate([*lines[1:], lines[0]])
    stream = lines_of(map(ours.translate_each, [lines[1:3], lines[3:], lines[:1]]))
    assert_same(list(islice(stream, 3)), ours.translate(lines[1:4]))
    with pytest.raises(RefusedLine, match=r"^line 4: "):
        next(stream)


def test_a_line_without_finite_scores_is_refused(tokenizer):
    model = random_model(tokenizer, tied_embeddings=False)
    line = "nu ☃"
    last_id = tokenizer.encode([tokenizer.clean(line)])[0][-1]
    with torch.no_grad():
        model.source_embedding.weight[last_id] = torch.nan
    rows = translator(model, tokenizer).translate_each([LINES[0], line, LINES[1]])
    assert [isinstance(row, RefusedLine) for row in rows] == [False, True, False]
    with pytest.raises(RefusedLine, match=r"^line 2: no translation: "):
        list(lines_of([rows]))
