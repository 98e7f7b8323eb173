# ruff: noqa: RUF001 - letters of other scripts look like Latin ones
"""Amounts of money as languages write them, by Unicode's data (CLDR), such as 10ドル for $10."""

CURRENCIES = {
    "$": ("USD",),
    "€": ("EUR",),
    "£": ("GBP",),
    "¥": ("JPY", "CNY"),
    "₩": ("KRW",),
    "₹": ("INR",),
    "₽": ("RUB",),
    "₴": ("UAH",),
    "₺": ("TRY",),
    "₪": ("ILS",),
    "฿": ("THB",),
}
"""The currencies that a sign may stand for, by their ISO codes. Yen and yuan share theirs."""
OTHER_SIGNS = {
    "$": ("US$", "＄"),
    "£": ("￡",),
    "¥": ("￥", "JP¥", "CN¥"),
    "₩": ("￦",),
}
"""Sign -> other forms of the sign."""
COUNTS = 1, 2, 5
"""Numbers after which the name of a currency differs in some language."""
FURTHER_NAMES = {
    "$": "ドル, 달러, 불, 美金, 美圓, ดอลลาร์, доллар, доллара, долларов, "
    "долар, долара, долари, доларів, "
    "دولار, دولارات, دلار, ڈالر, डॉलर, ডলার, דולר, דולרים, δολάριο, δολάρια, დოლარი",
    "€": "евро, євро, אירו, 歐元",
    "£": "ポンド, 파운드, 英鎊, ปอนด์, фунт, фунта, фунтов, фунти, фунтів, جنيه, پوند, पाउंड, "
    "ליש״ט, לירה, λίρα, λίρες, ფუნტი",
    "¥": "円, 엔, 위안, 元, 圆, 圓, 块, 日圓, เยน, หยวน, иен, иена, иены, юань, юаня, юаней, "
    "ين, يوان, ین, یوآن, येन, युआन, יין, יואן, γεν, γιεν, იენი, იუანი",
    "₩": "ウォン, 韓元, 韩元, 원, вон",
    "₹": "ルピー, 루피, 卢比, 盧比, रुपये, रुपए, रुपया, টাকা, روپے, روپیہ, рупий",
    "₽": "ルーブル, 루블, 卢布, 盧布, руб., рубль, рубля, рублей",
    "₴": "грн, гривня, гривні, гривень",
    "₪": "シェケル, 셰켈, ש״ח, שקל, שקלים",
    "฿": "バーツ, 밧, 泰铢, 泰銖, บาท",
}
"""Names in use besides CLDR's, which often include the country."""


def codes_of_currencies() -> dict[str, str]:
    """Maps the other forms of signs, and the codes of currencies, to the usual signs."""
    usual_signs = dict[str, str]()
    for sign, others in OTHER_SIGNS.items():
        usual_signs |= dict.fromkeys(others, sign)
    for sign, codes in CURRENCIES.items():
        usual_signs |= dict.fromkeys(codes, sign)
    return usual_signs


def names_of_currency(sign: str, language: str) -> list[str]:
    """The names of a currency after numbers, in a language with data in CLDR."""
    from babel.numbers import get_currency_name  # takes 30 ms, which few lines need

    names = list[str]()
    for code in CURRENCIES.get(sign, ()):
        names += [get_currency_name(code, count, language) for count in COUNTS]
    return names
