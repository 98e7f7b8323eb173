# ruff: noqa: RUF001 - words in many scripts
"""Words that multiply or shift numbers: million, lakh, 万, half, and a.m."""

import regex

UNITS = {
    3: """thousand thousands tausend mille millier milliers mil mila tusen duizend tys tysiąc*
       tisíc* bin nghìn ngàn
       тыс тысяч* тис тисяч* хиляди χιλ χιλιάδ* ألف ألفا ألفان ألفين
       الفان الفين آلاف الاف هزار ہزار אלף אלפיים אלפי אלפים
       हज़ार हजार হাজার ათ ათას* พัน""",
    4: "หมื่น",
    2: "सौ سو শত",
    5: "lakh lakhs lac लाख لاکھ লাখ லட்சம் แสน",
    6: """million millions millionen mio mln millón millones milhão milhões milion* miljoen miljon*
       milyon triệu млн миллион* мільйон* милион* εκ εκατ εκατομμύρι* مليون مليونا مليونان
       مليونين ملايين میلیون ملین
       מיליון מיליוני מיליונים मिलियन მლნ მილიონ* ล้าน""",
    7: "crore crores करोड़ करोड کروڑ কোটি கோடி",
    9: """billion billions milliard* mrd mld mil_millones miljard* milyar bilhão bilhões tỷ
       млрд миллиард* мільярд* милиард* δισ δισεκατομμύρι* مليار ملياران مليارين مليارات میلیارد ارب
       מיליארד מיליארדי अरब მლრდ მილიარდ* พันล้าน""",
    10: "หมื่นล้าน",
    11: "खरब แสนล้าน",
    12: """trillion trillions billion billions billionen bilión billones trilhão trilhões трлн
       триллион*
       трильйон* τρισ τρισεκατομμύρι* تريليون ترليون تریلیون هزارمیلیارد هزار_میلیارد
       טריליון ტრილიონ* ล้านล้าน""",
}
"""Maps powers of ten to the words for them, in lower case. `*` stands for an ending, `_` for a
blank. A word may have several meanings, such as billion."""
EAST_ASIAN_UNITS = {
    "十": 1,
    "百": 2,
    "千": 3,
    "万": 4,
    "萬": 4,
    "億": 8,
    "亿": 8,
    "兆": 12,
    "京": 16,
    "拾": 1,
    "십": 1,
    "백": 2,
    "천": 3,
    "만": 4,
    "억": 8,
    "조": 12,
    "경": 16,
}
"""Maps the units of Chinese, Japanese and Korean, whose products are added (`1億2000万`), to powers
of ten."""
EAST_ASIAN_DIGITS = {
    "〇": 0,
    "零": 0,
    "一": 1,
    "二": 2,
    "三": 3,
    "四": 4,
    "五": 5,
    "六": 6,
    "七": 7,
    "八": 8,
    "九": 9,
    "壱": 1,
    "弐": 2,
    "参": 3,
    "两": 2,
    "兩": 2,
}
HUNDRED = regex.compile(
    r"(?<![\p{L}\p{M}])(?:"
    r"(?:ein)?hundert|(?:one )?hundred|cent|cien|ciento|cento|cem|honderd|sto|száz"
    r"|сто|εκατό|מאה|مئة|مائة|صد|सौ|سو|ასი|একশ)(?![\p{L}\p{M}])",
    regex.I,
)
"""A word for a hundred. After digits, some of these are other words, such as cent."""
FRACTION = regex.compile(
    r"(?<![\p{L}\p{M}])(?:(?:"
    r"half|quarter|halbe?[mnrs]?|anderthalb|\p{L}+einhalb|viertel|demie?|medi[ao]|mei[ao]|mezz[ao]"
    r"|полтор[аы]|половин\p{L}|четверть|півтор[аи]|чверть"
    r"|μισ\p{L}+|ενάμισι|μιάμιση|\p{L}+ήμισι|τέταρτο|و?نصف|و?ربع|نیم|ו?חצי|ו?רבע"
    r"|डेढ़|ढाई|अढ़ाई|सवा|साढ़े|पौने|पौन|आध[ाेी]|ڈیڑھ|ڈھائی|سوا|ساڑھے|پونے|آدھا"
    r"|দেড়|আড়াই|সাড়ে|সওয়া|পৌনে|ნახევარ\p{L}*"
    r")(?![\p{L}\p{M}])|пол(?:часа|миллио)|пів)"
    r"|半|반|ครึ่ง",
    regex.I,
)
"""A word for a half or a quarter, alone or added to a number: डेढ़ is 1.5, साढ़े तीन is 3.5."""
KOREAN = str.maketrans("일이삼사오육칠팔구십백천만억조", "一二三四五六七八九十百千万億兆")
"""Korean digits and units in words, with their Han characters."""
FEWEST_LETTERS = 4
"""Shorter units are too frequent inside other words."""
HOUR_AFTER_NOON = (
    regex.compile(r"(?:午後|下午|晚上|오후|บ่าย)\s?(\d{1,2})"),
    regex.compile(
        r"(\d{1,2})(?:[:.]\d\d)? ?"
        r"(?:[ap]\.? ?m\b|μ\. ?μ|дня|вечера|вечора|مساء|م\b|ب\.ظ|بعد ?از ?ظهر|אחה)",
        regex.I,
    ),
)
"""An hour on a clock of 12 hours that may be written as 13 to 24."""


def forms_of_units() -> dict[str, list[int]]:
    """The words in UNITS, the longest first, and their powers of ten."""
    powers: dict[str, list[int]] = {}
    for power, words in UNITS.items():
        for word in words.split():
            form = word.replace("_", " ")
            powers.setdefault(form, []).append(power)
    # The alternatives of a pattern are tried in order: "millions" must come before "mil".
    longest_first = sorted(powers, key=len, reverse=True)
    return {form: powers[form] for form in longest_first}


def pattern_of_unit(form: str) -> str:
    """A pattern for a word in UNITS."""
    # Thai words are followed by others without a blank. Elsewhere, a unit is a whole word.
    end = "" if is_thai(form) else r"(?![\p{L}\p{M}])"
    if form.endswith("*"):
        # Endings of cases and numbers, as in миллионами, are short.
        return form.removesuffix("*") + r"[\p{L}\p{M}]{0,4}" + end
    return form + end


def is_thai(form: str) -> bool:
    return regex.match(r"\p{Thai}", form) is not None


def is_long(form: str) -> bool:
    """Whether a unit is long enough to be found at the end of a longer word."""
    return len(form) >= FEWEST_LETTERS or is_thai(form)


FORMS = forms_of_units()
UNIT = "|".join(map(pattern_of_unit, FORMS))
LONG_UNIT = "|".join(pattern_of_unit(form) for form in FORMS if is_long(form))
"""Units that are also found at the end of a longer word, such as zehntausend."""


def powers_of_unit(word: str) -> list[int]:
    """The powers of ten that a word matched by UNIT stands for."""
    word = word.lower()
    # The longest form comes first here, too.
    for form, powers in FORMS.items():
        has_ending = form.endswith("*") and word.startswith(form[:-1])
        if word == form or has_ending:
            return powers
    return []
