"""Sentences of languages with other scripts, compared with those that readers marked."""

import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from nmt.sentences.splitting import split_sentences

LINES = Path(__file__).with_name("lines")
"""Lines by language; `|` marks the borders of sentences."""


def is_right(line: str, language: str) -> bool:
    """Whether a line is split where it is marked."""
    sentences = split_sentences(line.replace("|", ""), language)
    expected = [sentence.strip() for sentence in line.split("|")]
    return [sentence.strip() for sentence in sentences] == expected


@pytest.mark.parametrize("file", sorted(LINES.iterdir()), ids=lambda file: str(file.stem))
def test_marked_files(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 50
    assert [line for line in lines if not is_right(line, file.stem)] == []


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("km", "នេះជាសៀវភៅ។ |នោះជាប៊ិច។"),
        ("km", "នេះជាសៀវភៅ។|នោះជាប៊ិច។"),
        ("lo", "ນີ້ແມ່ນປຶ້ມ ນັ້ນແມ່ນປາກກາ"),
        ("bo", "བོད་ཡིག་འདི་རེད། |དེ་མ་རེད། |ལེགས་སོ།།"),
        ("my", "ဒါက စာအုပ်ပါ။ |ဟိုဟာက ဘောပင်ပါ။"),
        ("am", "ይህ መጽሐፍ ነው። |ያ እስክሪብቶ ነው።"),
        ("hy", "Սա գիրք է։ |Դա գրիչ է։"),
        ("bn", "এটি একটি বই। |ওটি একটি কলম।"),
        ("ta", "இது ஒரு புத்தகம். |அது ஒரு பேனா."),
        ("ur", "یہ کتاب ہے۔ |وہ قلم ہے۔ |کیا؟"),
        ("ps", "دا کتاب دی. |هغه قلم دی؟"),
        ("sa", "धर्मक्षेत्रे कुरुक्षेत्रे। |सञ्जय॥"),
        ("ne", "यो किताब हो। |त्यो कलम हो।"),
        ("bg", "Виж стр. 5. |Това е книга."),
        ("sr", "Ово је књига. |То је оловка."),
        ("yue", "佢話：「我唔知。你問佢啦。」|跟住就走咗。"),
        ("en", "The tool (it is old. Very old.) works. |It is free."),
        ("xx", "នេះ។ |នោះ។"),
    ],
)
def test_lines_in_other_languages(language: str, line: str) -> None:
    assert is_right(line, language)


@pytest.mark.parametrize(
    ("codes", "line"),
    [
        ("ja jpn ja_JP ja-Jpan jpn_Jpan", "これはapt用です。|aptは「はい。」と答えます。|終わり。"),
        ("zh zh_CN zh-TW zho_Hans cmn cmn_Hans", "他说：“来了。走了。”|然后走。|apt是工具。"),
        ("ko kor ko_KR kor_Hang", "2024. 5. 3. 서울에서 만났다. |끝."),
        ("ru rus ru-RU rus_Cyrl", "См. рис. 3. |А. С. Пушкин и т. д. |Всё."),
        ("uk ukr uk_UA", "Див. рис. 3. |Т. Г. Шевченко та ін. |Усе."),
        ("el ell el-GR", "Τι; |Τίποτα, π.χ. Μαρία."),
        ("hi hin hin_Deva", "डॉ. शर्मा आए। |वे गए।"),
        ("th tha th-TH", "ดร. สมชาย มา แล้วไป"),
        ("de deu de_AT", "Die 5. Klasse las im 19. Jahrhundert z.B. Verse. |Gut."),
    ],
)
def test_all_forms_of_a_language_code_are_accepted(codes: str, line: str) -> None:
    for code in codes.split():
        assert is_right(line, code), code


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("ja", "「行くよ。」|「うん。」|二人は歩き出した。"),
        ("ja", "彼は「はい！」と答え、「いいえ。」とは言わなかった。"),
        ("ja", "詳細は（詳しくは第3章を参照。）ここでは省略する。|次に進む。"),
        ("ja", "v1.2.3をインストールします。|a.txtとb.txtがあります。"),
        ("ja", "本当？！|うそ！？|まさか…"),
        ("zh", "他问：“为什么？”|然后走了。|没人回答。"),
        ("zh", "《论语》说：“学而不思则罔。”|这句话很有名。"),
        ("zh", "苹果公司(Apple Inc.)发布了iOS 17.5。|用户可以升级。"),
        ("ko", "그는 “가자!”라고 외쳤다. |우리는 갔다."),
        ("ko", "네. |맞아요. |왜요?"),
        ("ru", "В г. Санкт-Петербурге живёт 5 млн чел. |Это много."),
        ("ru", "Родился в 1879 г. в г. Ульм, Германия. |Умер в 1955 г."),
        ("ru", "Напечатано 10 тыс. экз. |Тираж распродан."),
        ("ru", "Он написан на C. |А она на Java."),
        ("ru", "Дж. К. Роулинг и J. K. Rowling — одно лицо. |Она писательница."),
        ("ru", "Стоит 5 руб. за шт. и 10 руб. за пару. |Дёшево."),
        ("uk", "Народився 1814 р. на Черкащині. |Помер 1861 р. |Похований у Каневі."),
        ("el", "Ο κ. Γ. Παπανδρέου μίλησε στη Βουλή. |Χειροκρότησαν."),
        ("ar", "قال: «لا.» |ثم خرج."),
        ("fa", "قیمت: ۳٫۵ دلار. |ارزان است."),
        ("hi", "श्री ए. पी. जे. अब्दुल कलाम वैज्ञानिक थे। |वे राष्ट्रपति बने।"),
        ("hi", "यह है. |वह था. |सब ठीक है."),
        ("he", 'מנכ"ל החברה, ד"ר י. לוי, התפטר. |הוא עזב.'),
        ("th", 'เขาพูดว่า "หยุด!" แล้ววิ่งหนี'),
        ("ka", "ნახეთ გვ. 5. |ეს კარგია."),
    ],
)
def test_quotes_abbreviations_and_names(language: str, line: str) -> None:
    assert is_right(line, language)


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("my", "ဦးအောင်၊ ဒေါ်လှ၊ ဦးမြ လာသည်။ |ပြန်သွားသည်။"),
        ("my", "ဒါက စာအုပ်ပါ။ |ဟိုဟာက ဘောပင်ပါ။"),
        ("km", "ខ្ញុំចូលចិត្តចេក។ល។"),
        ("km", "មានចេក ស្វាយ ។ល។ |គាត់ទៅផ្សារ។"),
        ("zh", "我读了《为什么？》这本书。|很好。"),
        ("zh", "歌曲《Why?》发行了。|完。"),
        ("ja", "ドラマ『どうする！』第2話が放送された。|次。"),
        ("ja", "けいおん!!を見た。|面白い。"),
        ("ja", "モーニング娘。のコンサートに行った。|楽しかった。"),
        ("ja", "Yahoo!ニュースを見る。|終わり。"),
        ("ja", "嬉しい。😊|またね。"),
        ("ja", "やった！🎉🎉|行こう。"),
        ("zh", "太好了！👍|走吧。"),
        ("zh", "太好了！👍🏽|走吧。"),
        ("ru", "Привет! 😊 |Как дела?"),
        ("ru", "Привет. 😊 |Как дела?"),
        ("ko", "좋아요! 😊 |안녕."),
        ("zh", '"为什么?"他问。|"不知道。"'),
        ("zh", '"为什么?"他问。|"不知道。"|他走了。'),
        ("zh", "“为什么？”他问。|“不知道。”"),
        ("ja", '"なぜ?"彼は聞いた。|"知らない。"'),
        ("he", 'הוא שאל: "מי שם?" והלך. |סוף.'),
        ("ar", "سأل: «من هناك؟» ثم ذهب. |انتهى."),
        ("fa", "پرسید: «کیست؟» و رفت. |پایان."),
        ("hi", 'उसने पूछा: "कौन है?" और चला गया। |अंत।'),
        ("hi", 'उसने पूछा, "कौन है?" और चला गया। |अंत।'),
        ("bn", 'সে বলল, "কে?" তারপর চলে গেল। |শেষ।'),
        ("ur", 'اس نے پوچھا: "کون ہے؟" اور چلا گیا۔ |ختم۔'),
        ("ka", "მან იკითხა: „ვინ არის?“ და წავიდა. |დასასრული."),
        ("ru", "Это стоит 3 руб. 50 коп. |Дёшево."),
        ("uk", "Це коштує 3 грн. 50 коп. |Дешево."),
        ("ru", "Приехал ген. Иванов. |Все встали."),
        ("ru", "Прошло 10 час. 30 мин. |Он пришёл."),
        ("uk", "Минуло 5 год. 30 хв. |Він прийшов."),
        ("el", "Αρ. πρωτ. 123. |Τέλος."),
        ("ka", "რუსთაველის გამზ. 5. |თბილისი."),
        ("ur", "اے۔ پی۔ جے۔ عبدالکلام آئے۔ |وہ گئے۔"),
        ("ko", "절차는 다음과 같다. |가. 신청서를 낸다. |나. 심사를 받는다."),
        ("ko", "가. 신청서 나. 여권 사본 다. 사진"),
        ("ru", "Он сказал: «Где ты? Я жду. Приходи» и ушёл. |Конец."),
        ("ru", "Он сказал: «Где ты? Я жду. Приходи», — и ушёл. |Конец."),
        ("ru", "«Привет! Как дела?» — спросил он. |Конец."),
        ("zh", "他问“为什么？”，然后走了。"),
        ("zh", "《为什么？》"),
        ("zh", "他读完了《为什么？》。|然后走了。"),
        ("ja", "『進撃の巨人！』|第2話"),
        ("ja", "「行く！」|「うん。」"),
        ("zh", "小李喊：“快跑！”|大家都跑了。"),
        ("ja", "質問は「なぜ？」です。|はい。"),
        ("ja", "今日は寒い！|でも行く。"),
        ("ja", "本当!?と驚いた。"),
        ("ja", "いい？の一言。"),
        ("ja", "嵐!!のファン。"),
        ("ja", "すごい!|ニュースを見る。"),
    ],
)
def test_names_titles_emoji_and_lists(language: str, line: str) -> None:
    assert is_right(line, language)


@given(
    st.text('ab あ漢。」「（）.!? "“”।Яя:', max_size=40),
    st.sampled_from(["ja", "zh", "ru", "ar", "en", "th"]),
)
def test_sentences_contain_the_whole_text(text: str, language: str) -> None:
    sentences = split_sentences(text, language)
    assert "".join(sentences).split() == text.split()
    assert all(sentence.strip() for sentence in sentences)


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["。", "「あ。", "（", '"a. ', "т. ", "А. ", "1. ", "(a) ", ")", "😊", "。😊", '。"']
)
def test_the_time_is_linear_in_the_length(part: str) -> None:
    """A quadratic algorithm would take minutes."""
    begin = time.process_time()
    split_sentences(part * 20_000, "ru")
    split_sentences(part * 20_000, "ja")
    assert time.process_time() - begin < 8
