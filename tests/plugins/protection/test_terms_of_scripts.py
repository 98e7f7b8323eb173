"""Terms in every script: in lines, translations, and searches whose tokens cross words."""

import pytest
import torch

from nmt.config import DecodeConfig, ModelConfig, TokenizerConfig
from nmt.items.finder import Finder
from nmt.model import Transformer
from nmt.plugins.protection.casing import capitalized
from nmt.plugins.protection.glossary import Glossary
from nmt.plugins.protection.term_stage import Terms
from nmt.plugins.protection.terms import judge
from nmt.search import TorchEngine
from nmt.text import TARGET, Tokenizer, train_tokenizer
from nmt.translation import Limits, Segment, Translator


def glossary(term: str, translation: str, **languages: str) -> Glossary:
    return Glossary([(term, translation, False)], **languages)


PARTICLES = "들이 들에게서는 으로서 으로써 한테서 입니까 인데 이에요 에선 에게서 이라도 조차도"


@pytest.mark.parametrize(
    ("term", "line", "found"),
    [
        ("파일", "새 파일을 엽니다", ["파일"]),
        ("파일", "컴파일을 엽니다", []),
        ("Linux", "Linux를 씁니다", ["Linux"]),
        ("설정 파일", "설정 파일에서는", ["설정 파일"]),
        ("ملف", "افتح والملف الجديد", ["ملف"]),
        ("ملف", "مُلَفّ", ["مُلَفّ"]),
        ("ملف", "وَالْمُلَفّ", ["مُلَفّ"]),
        ("ملف", "ملفات", []),
        ("ملف", "افتح ملفًا", ["ملف"]),
        ("ملف", "ملفا جديدا", ["ملف"]),
        ("مكتبة", "افتح مكتبتك", ["مكتبت"]),
        ("مكتبة", "مكتبت", []),
        *(("학생", f"학생{particle}", ["학생"]) for particle in PARTICLES.split()),
        ("서버", "서버로써", ["서버"]),
        ("서버", "서버예요", ["서버"]),
        ("냉장", "냉장고", []),
        ('צה"ל', "צה״ל", ["צה״ל"]),
        ("פרופ'", "פרופ׳ כהן", ["פרופ׳"]),
        ("комп'ютер", "компʼютер", ["компʼютер"]),
        ("комп'ютер", "комп’ютер", ["комп’ютер"]),
        ("don't", "I don’t", ["don’t"]),
        ("फ़ाइल", "फाइल खोलें", ["फाइल"]),
        ("น้ำ", "ดื่มนํ้า", ["นํ้า"]),
        ("กำ", "กํา", ["กํา"]),
        ("الجدول", "انتقل للجدول", ["للجدول"]),
        ("קובץ", "פתח בקובץ", ["קובץ"]),
        ("दिन", "दिनांक और दिन", ["दिन"]),
        ("プリンタ", "プリンターとプリンタ", ["プリンタ"]),
        ("設定ファイル", "この設定ファイルを", ["設定ファイル"]),
        ("ข้อมูล", "ฐานข้อมูลและ", ["ข้อมูล"]),
        ("ΤΕΛΟΣ", "τελος", ["τελος"]),
        ("internet", "İnternet", ["İnternet"]),
        ("პრინტერი", "ᲞᲠᲘᲜᲢᲔᲠᲘ", ["ᲞᲠᲘᲜᲢᲔᲠᲘ"]),
        ("файл", "Файл и файлы", ["Файл"]),
    ],
)
def test_terms_in_lines(term: str, line: str, found: list[str]) -> None:
    assert [line[match.begin : match.end] for match in glossary(term, "x").find(line)] == found


def test_turkish_letters_match_where_the_language_is_known() -> None:
    assert glossary("ısı", "heat", source="tr").find("Isı")
    assert not glossary("ısı", "heat", source="en").find("Isi")
    assert capitalized("internet erişimi", "tr") == "İnternet erişimi"
    assert capitalized("internet", "az_Latn") == "İnternet"
    assert capitalized("internet", "de") == "Internet"
    assert capitalized("პრინტერი", "ka") == "პრინტერი"


@pytest.mark.parametrize(
    ("target", "translation", "used"),
    [
        ("ファイル", "新しいファイルを開きます。", True),
        ("パッケージ", "本パッケージは", True),
        ("プリンタ", "古いプリンターを", False),
        ("数据", "大数据库", True),
        ("Linux 内核", "这个Linux内核", True),
        ("ข้อมูล", "ฐานข้อมูล", True),
        ("파일", "새 파일에서는", True),
        ("파일", "컴파일을", False),
        ("ملف", "افتح الملفّ", True),
        ("ملف", "الملفات", False),
        ("الجدول", "انتقل للجدول", True),
        ("ملف", "افتح ملفًا", True),
        ("ملف", "ملفا جديدا", True),
        ("مكتبة", "مكتبتك", True),
        ("مكتبة", "مكتبته", True),
        ("مكتبة", "مكتبت", False),
        ("مكتبة", "مكتبات", False),
        ("फ़ाइल", "फाइल", True),
        ("फाइल", "फ़ाइल खोलें", True),
        ("ﾃﾞｨｽｸ", "ディスクを", True),
        ("ファイル", "ﾌｧｲﾙを", True),
        ("PDF", "ＰＤＦを", True),
        ("น้ำ", "ดื่มนํ้าเย็น", True),
        ("กำ", "กํา", True),
        ("ก", "กา", False),
        ("เด็ก", "เด็กๆ", True),
        ('צה"ל', "צה״ל", True),
        ("комп'ютер", "компʼютер", True),
        ("학생", "학생들이라도", True),
        ("קובץ", "בקובץ", True),
        ("فایل", "فایل\u200cهای نو", True),
        ("दिन", "दिनांक", False),
        ("დრო", "დრო", True),
        ("Таблица", "новая таблица", True),
        ("таблица", "Таблица", True),
        ("таблица", "таблицы", False),
    ],
)
def test_verdict_and_search_agree(target: str, translation: str, used: bool) -> None:
    terms = glossary("file", target)
    line = "Open the file"
    assert judge(terms.find(line), translation) == [used]
    text = [translation, target, f"{translation} {target}"]
    tokenizer = train_tokenizer([*text, line], TokenizerConfig(kind="bpe", vocabulary_size=360))
    stage = Terms(terms, tokenizer, Finder([]))
    constraints = stage.constraints([Segment(tokenizer.encode([line])[0], line)])
    assert constraints is not None
    [ids] = tokenizer.encode([tokenizer.clean(translation, TARGET)], TARGET)
    assert constraints.are_met(0, ids) == used


def test_a_noun_keeps_its_capital_in_german() -> None:
    matches = glossary("house", "Haus").find("the house")
    assert judge(matches, "das haus", "de") == [False]
    assert judge(matches, "das haus", "nl") == [True]


JAPANESE = ["新しいファイルを開く", "ファイル", "古いファイルを消す", "新しい窓を開く", "古い"]


def japanese_tokenizer() -> Tokenizer:
    """A vocabulary with an entry that covers a term and characters before it."""
    lines = [*JAPANESE * 40, "file", "open the file", "新しいファイル"]
    tokenizer = train_tokenizer(lines, TokenizerConfig(kind="bpe", vocabulary_size=330))
    [ids] = tokenizer.encode(["新しいファイル"], TARGET)
    assert not {"ファイル"} & {*map(str, tokenizer.subwords(ids))}
    return tokenizer


def engine_of(tokenizer: Tokenizer, **search: int) -> TorchEngine:
    torch.manual_seed(2)
    shape = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 16, "heads": 2}
    model = Transformer(ModelConfig(name="tiny", **shape), tokenizer.vocabulary_size)
    return TorchEngine([model], DecodeConfig(**{"beam_size": 4, "max_extra_length": 8, **search}))


def test_a_term_in_other_tokens_is_not_forced_again() -> None:
    """A translation that begins with the term is as likely as without a glossary."""
    tokenizer = japanese_tokenizer()
    stage = Terms(glossary("file", "ファイル"), tokenizer, Finder([]))
    [source] = tokenizer.encode(["open the file"])
    [prefix] = tokenizer.encode(["新しいファイル"], TARGET)
    engine = engine_of(tokenizer)
    [[free, *_]] = engine.search([source], [prefix])
    constraints = stage.constraints([Segment(source, "open the file")])
    [[best, *_]] = engine.search([source], [prefix], constraints)
    assert best.score >= free.score - 1e-4
    assert judge(stage.find("open the file"), tokenizer.decode(best.tokens)) == [True]


@pytest.mark.parametrize("target", ["ファイル", "파일", "ملف", "Дверь", "ข้อมูล"])
@pytest.mark.parametrize("beam", [1, 3])
def test_a_search_finds_translations_with_the_terms(target: str, beam: int) -> None:
    """A line may have a term twice."""
    text = [
        *JAPANESE,
        target,
        f"{target}を",
        "파일을 열다",
        "الملفات",
        "дверь",
        "ฐานข้อมูล",
        "a file or a file",
    ]
    tokenizer = train_tokenizer(text, TokenizerConfig(kind="bpe", vocabulary_size=400))
    stage = Terms(glossary("file", target), tokenizer, Finder([]))
    engine = engine_of(tokenizer, beam_size=beam, max_extra_length=60)
    translator = Translator(engine, tokenizer, Limits(), stages=(stage,))
    [[best]] = translator.translate(["a file or a file"])
    assert judge(stage.find("a file or a file"), best.text) == [True, True]
