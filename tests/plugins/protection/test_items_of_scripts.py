"""Items in text of every script: next to letters, particles and prefixes, and with other units."""

import time

import pytest
from babel.units import format_unit

from nmt.items.finder import Finder
from nmt.items.items import Items, item

USUAL = Finder(["usual"])


def items_in(line: str) -> list[str]:
    return [item(line, stretch) for stretch in USUAL.stretches(line)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # Japanese, Chinese and Thai have no blanks between words.
        ("メモリーの55%を使用", ["55%"]),
        ("容量の10%を使用、5 GBの、値は-5 °Cです", ["10%", "5 GB", "-5 °C"]),
        ("5 GB的内存和10%的，5km/h时", ["5 GB", "10%", "5km/h"]),
        ("ขนาด5 GBและ10%ของ ไฟล์setup.pyใน", ["5 GB", "10%", "setup.py"]),
        ("連絡先はuser@example.comです。", ["user@example.com"]),
        ("Ctrl+Sを押して、オプション --forceを", ["Ctrl+S", "--force"]),
        ("設定$HOMEに保存し%1を、変数MAX_SIZEとopen()を", ["$HOME", "%1", "MAX_SIZE", "open()"]),
        (
            "设置4.2.1版，python3.11的，在2024-05-01日12:30时",
            ["4.2.1", "python3.11", "2024-05-01", "12:30"],
        ),
        (":otherが:valueの場合、@countの%nameは", [":other", ":value", "@count", "%name"]),
        ("温度が25℃で10㎡、１０％と10٪", ["25℃", "10㎡", "１０％", "10٪"]),
        (
            "{名前}さん、%(件数)d件、<b>太字</b>と&nbsp;",
            ["{名前}", "%(件数)d", "<b>", "</b>", "&nbsp;"],
        ),
        # Korean particles, also those that depend on what they follow.
        (
            "10%를 5 GB의 --force를 user@example.com으로",
            ["10%", "5 GB", "--force", "user@example.com"],
        ),
        ("%s(으)로 {name}을(를) $1(으)로 $NAME이(가)", ["%s", "{name}", "$1", "$NAME"]),
        (
            "/etc/hosts를 /dev/와 nss_db는 보고서.pdf를",
            ["/etc/hosts", "/dev/", "nss_db", "보고서.pdf"],
        ),
        # Prefixes and suffixes of other languages.
        ("لديه وPython3.11 و$HOME", ["Python3.11", "$HOME"]),
        ("فایل setup.py\u200cرا باز کنید", ["setup.py"]),
        ("ב-5 GB וב-10% ו-https://a.org", ["5 GB", "10%", "https://a.org"]),
        ("https://example.comზე https://example.com-ზე გადადით", ["https://example.com"] * 2),
        ("किताब.pdf खोलें", ["किताब.pdf"]),
        # A slash between words and a sign after a number are no items.
        ("入力/出力 红/绿 はい/No นีला/सफेद कॉलम/पंक्ति คอลัมน์/แถว", []),
        ("作者:John 100%ige 5%ный 太好了!thanks", []),
        # Telephone numbers
        ("電話は03-1234-5678です。", ["03-1234-5678"]),
        ("0120-123-456または(03)1234-5678へ", ["0120-123-456", "(03)1234-5678"]),
        ("전화 010-1234-5678로", ["010-1234-5678"]),
        ("هاتف: +20 2 1234 5678، أو (212) 555-0100.", ["+20 2 1234 5678", "(212) 555-0100"]),
        (
            "+1 (555) 123-4567, +7 (495) 123-45-67; +49-30-1234567.",
            ["+1 (555) 123-4567", "+7 (495) 123-45-67", "+49-30-1234567"],
        ),
        ("212-555-0100, 1-800-555-0199", ["212-555-0100", "1-800-555-0199"]),
        ("2019-2020 1-2-3 978-3-16-148410-0 01-01-2020 31-12-1999 (2019) 2020-2021", []),
        ("C+12345678 +12 34 12-34-56 00-11-22-33-44-55 212-555-0100-2", []),
        ("在/etc/hosts中，~/binを", ["/etc/hosts", "~/bin"]),
    ],
)
def test_items_next_to_letters(line: str, expected: list[str]) -> None:
    assert items_in(line) == expected
    assert Items(line, USUAL.stretches(line)).arrive(line)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # Nor are particles and prefixes, with a hyphen or without one.
        ("כתבו ל-user@example.com", ["user@example.com"]),
        ("פתחו ב-file.txt", ["file.txt"]),
        ("ה-README.md", ["README.md"]),
        ("وREADME.md", ["README.md"]),
        ("ال-README.md", ["README.md"]),
        ("افتح لـfile.txt", ["file.txt"]),
        ("a@b.org-ზე", ["a@b.org"]),
        ("a@b.org-को लिखें", ["a@b.org"]),
        ("a@b.org-এ", ["a@b.org"]),
        ("https://a.org-ზე", ["https://a.org"]),
        ("first-last@ex-ample.org", ["first-last@ex-ample.org"]),
        (
            "https://ru.wikipedia.org/wiki/Санкт-Петербург",
            ["https://ru.wikipedia.org/wiki/Санкт-Петербург"],
        ),
        # Hiragana after a slash are text; other characters may be a path.
        ("https://example.com/を参照", ["https://example.com/"]),
        ("https://example.com/ください。", ["https://example.com/"]),
        ("https://ja.wikipedia.org/wiki/カタカナ", ["https://ja.wikipedia.org/wiki/カタカナ"]),
        ("https://a.com/ひらがな/page.html", ["https://a.com/ひらがな/page.html"]),
        # Text that follows an address is not part of it.
        ("詳細は https://example.com/をご覧ください", ["https://example.com/"]),
        ("请访问https://www.debian.org/了解更多信息", ["https://www.debian.org/"]),
        ("https://a.com和https://b.com", ["https://a.com", "https://b.com"]),
        ("https://example.com을 참조", ["https://example.com"]),
        ("https://example.com을", ["https://example.com"]),
        ("C:\\Users\\xを開く", ["C:\\Users\\x"]),
        ("https://a.com/ko/한국어/문서.html을 보세요", ["https://a.com/ko/한국어/문서.html"]),
        # Letters of an address are.
        ("See https://de.wikipedia.org/wiki/Köln now", ["https://de.wikipedia.org/wiki/Köln"]),
        (
            "See https://ja.wikipedia.org/wiki/日本, https://ja.wikipedia.org/wiki/東京.",
            ["https://ja.wikipedia.org/wiki/日本", "https://ja.wikipedia.org/wiki/東京"],
        ),
        ("https://ja.wikipedia.org/wiki/日本", ["https://ja.wikipedia.org/wiki/日本"]),
        ("詳細は（https://ja.wikipedia.org/wiki/日本）を", ["https://ja.wikipedia.org/wiki/日本"]),
        ("См. https://ru.wikipedia.org/wiki/Москва тут", ["https://ru.wikipedia.org/wiki/Москва"]),
        ("देखें https://hi.wikipedia.org/wiki/हिन्दी यहाँ", ["https://hi.wikipedia.org/wiki/हिन्दी"]),
        ("日本語 https://a.com/?q=日本語&x=1 を見る", ["https://a.com/?q=日本語&x=1"]),
        ("日本語 https://例え.テスト/ をご覧", ["https://例え.テスト/"]),
        # Without blanks or quotes, only Latin file names have a beginning.
        ("このsetup.pyを実行", ["setup.py"]),
        ("ファイル名はa.txtとb.csv、c.tar.gzです", ["a.txt", "b.csv", "c.tar.gz"]),
        ("(このsetup.py)と「日本語readme.txt」", ["setup.py", "日本語readme.txt"]),
        ("打开设置.txt文件", []),
        ("「設定.txt」を開く", ["設定.txt"]),
        ("Open 設定.txt now", ["設定.txt"]),
        ("Откройте отчёт.pdf.", ["отчёт.pdf"]),
        ("~/ダウンロード/a.txtを", ["~/ダウンロード/a.txt"]),
    ],
)
def test_addresses_and_the_text_around_them(line: str, expected: list[str]) -> None:
    assert items_in(line) == expected


@pytest.mark.parametrize(
    ("measure", "translation", "arrives"),
    [
        ("5 km", "5 км пути", True),
        ("5 GB", "до 5 ГБ", True),
        ("5 GB", "до 5 Гб", True),
        ("10%", "10٪ منها", True),
        ("10%", "٪۱۰ آن", True),
        ("10%", "１０％の", True),
        ("10%", "%10'u", True),
        ("10%", "10 процентов", True),
        ("5 kg", "٥ كجم", True),
        ("5 km", "५ कि.मी. दूर", True),
        ("5 km", "५ किमी दूर", True),
        ("5 km", "约5公里处", True),
        ("5 km", "約5キロメートルを", True),
        ("16 bit", "16ビットランタイム", True),
        ("5 GB", "5기가바이트를", True),
        ("5 km", '5 ק"מ', True),
        ("5 km", "5 ק״מ", True),
        ("5 km", "5 χλμ. μακριά", True),
        ("5 km", "5 กม.และ", True),
        ("5 km", "৫ কিমি", True),
        ("25 °C", "25℃です", True),
        ("25℃", "25 °C today", True),
        ("5 MB/s", "5 МБ/с", True),
        ("5 kB", "5 KB", True),
        ("1.5 GB", "1,5 ГБ", True),
        ("1.5 GB", "١٫٥ غيغابايت", True),
        ("1,000 km", "1 000 км", True),
        ("1,000 km", "1000 км", True),
        ("12,500.5 m", "12 500,5 м", True),
        ("100,000 km", "१,००,००० किमी", True),
        ("12:30", "१२:३० बजे", True),
        ("4.2.1", "٤.٢.١", True),
        ("5 kg", "5 килограммов", True),
        ("5 g", "5 граммов", True),
        ("5 kg", "5 كيلوغرامات", True),
        ("5 °C", "٥ درجات مئوية", True),
        ("٥٠ °م", "50 °C", True),
        ("۵۰ °س", "50 °C", True),
        ("100 ml", "١٠٠ مل", True),
        ("50 mph", "50 миль/ч", True),
        ("5 kg", "５ｋｇの", True),
        ("1.5 kg", "１．５公斤", True),
        # Units before the number, or around it.
        ("100 km/h", "時速100キロメートル", True),
        ("100 km/h", "时速100公里", True),
        ("100 km/h", "시속 100킬로미터로", True),
        ("60 mph", "時速60マイル", True),
        ("25 °C", "摂氏25度", True),
        ("25 °C", "섭씨 25도", True),
        ("25 °C", "気温は25度です", True),
        ("30 °C/86 °F", "30°C/86°F", True),
        ("30 °C/86 °F", "摂氏30度（華氏86度）", True),
        ("10%", "ร้อยละ 10", True),
        ("10%", "百分之10", True),
        # Negative numbers.
        ("-10 °C", "－１０℃", True),
        ("-10 °C", "零下10℃", True),
        ("-10 °C", "영하 10도", True),
        ("-10 °C", "摂氏マイナス10度", True),
        # Money.
        ("$10", "10ドル", True),
        ("$10", "10米ドルを", True),
        ("$10", "10美元", True),
        ("$10", "10달러를", True),
        ("$10", "＄10", True),
        ("$10", "10 $", True),
        ("$10", "10 долларов", True),
        ("$10", "10 долларов США", True),
        ("$10", "١٠ دولار", True),
        ("10 USD", "10美元", True),
        ("¥1,500", "1,500円", True),
        ("¥1,500", "￥1,500", True),
        ("¥1,500", "１，５００円", True),
        ("¥10,000", "1万円", True),
        ("$15,000", "1.5万美元", True),
        ("$10,000", "1만 달러", True),
        ("$10,000", "1億ドル", False),
        ("€10", "10ユーロ", True),
        ("€1,000.50", "1.000,50 €", True),
        # Times.
        ("12:30", "12時30分に", True),
        ("12:30", "12시 30분에", True),
        ("12:30", "12点半", True),
        ("12:30", "в 12 ч. 30 мин.", True),
        ("5 kg", "5キロの", True),
        ("12:30", "１２：３０", True),
        ("12:30", "12.30 น.", True),
        ("12:30", "12h30", True),
        ("09:05", "9時5分", True),
        ("12:00", "12時", True),
        # Another number, unit or word.
        ("25 °C", "華氏25度", False),
        ("100 km", "時速100キロメートル", False),
        ("100 km/h", "100キロメートル", False),
        ("30 °C/86 °F", "30°C/87°F", False),
        ("10 °C", "零下10℃", False),
        ("10%", "ร้อยละ 100", False),
        ("$10", "11ドル", False),
        ("$10", "10円", False),
        ("$10", "$100", False),
        ("€10", "10ドル", False),
        ("12:30", "12時35分", False),
        ("12:30", "12時", False),
        ("12:00", "12時30分", False),
        ("12:30", "1.12.30", False),
        ("5 km", "6 км", False),
        ("5 km", "5 кг", False),
        ("5 km", "5 км/ч", False),
        ("5 km", "5 كمبيوتر", False),
        ("5 km", "15 км", False),
        ("5 m", "5 мин", False),
        ("1.125 V", "1125 В", False),
        ("1.5 GB", "15 ГБ", False),
        ("12:30", "१२:३५ बजे", False),
        ("10%", "%10s", False),
    ],
)
def test_forms_of_measurements(measure: str, translation: str, arrives: bool) -> None:
    line = f"It is {measure} here"
    assert Items(line, USUAL.stretches(line)).arrive(translation) == arrives


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("The house was built in the 1990s.", []),
        ("mid-1990s style, the 80s and the '90s", []),
        ("after 30s or 1990 s", ["30s", "1990 s"]),
    ],
)
def test_decades_are_no_seconds(line: str, expected: list[str]) -> None:
    assert items_in(line) == expected


@pytest.mark.parametrize(
    ("line", "translation", "arrives"),
    [
        ("%d of %d files", "%2$d 個中 %1$d 個のファイル", True),
        ("%s has %d files", "%2$d 個 %1$s", True),
        ("%d files in %d folders", "フォルダー%2$d個にファイル%1$d個", True),
        ("%[1]s has %[2]d files", "%s に %d 個", True),
        ("%1$d of %2$d files", "%d / %d", True),
        ("uid=%s, stat(%s)", "stat(%2$s), uid=%1$s", True),
        ("%d of %d files", "%2$d 個中 %2$d 個", False),
        ("%d of %d files", "%2$d 個中 %d 個", False),
        ("%d of %d files", "%3$d 個中 %1$d 個", False),
        ("%s has %d files", "%2$s 個 %1$d", False),
        ("%s has %d files", "%d 個 %s", False),
        ("%2$s in %1$s", "%s in %s", False),
        ("%*d of %d", "%2$*d of %1$d", False),
    ],
)
def test_numbered_directives(line: str, translation: str, arrives: bool) -> None:
    assert Items(line, USUAL.stretches(line)).arrive(translation) == arrives


LANGUAGES = """
ar be bg bn el fa he hi hy ja ka kk km ko lo mr my ru ta th uk ur zh
""".split()  # noqa: SIM905
UNITS = {
    "km": "length-kilometer",
    "cm": "length-centimeter",
    "kg": "mass-kilogram",
    "GB": "digital-gigabyte",
    "MHz": "frequency-megahertz",
    "min": "duration-minute",
    "m²": "area-square-meter",
    "km/h": "speed-kilometer-per-hour",
    "W": "power-watt",
    "%": "concentr-percent",
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_measurement_that_babel_formats_is_the_same(language: str, unit: str) -> None:
    for value in ("7", "1250", "7.5"):
        line = f"It is {value} {unit} here"
        number = float(value)
        name = UNITS[unit]
        text = format_unit(number, name, "short", locale=language, numbering_system="default")
        assert Items(line, USUAL.stretches(line)).arrive(f"({text})"), text


@pytest.mark.parametrize(
    ("line", "translation", "arrives"),
    [
        ("Find crypt() here", "Здесь (вариант crypt())", True),
        ("%1מותאמות%2", "%1custom%2", True),
        ("%1ファイル", "%1 files", True),
        ("%1ファイル", "%12 files", False),
        ("entry ID %d", "エントリID%d", True),
        ("%d KB used", "%dKBを使用", True),
        ("5 of %d", "%dの5", True),
        ("%d KB used", "%dKB benutzt", False),
        ("%d KB", "%d%ファイル", False),
        ("%1 KB", "%12KBの", False),
        ("Read robots.txt here", "robots.txt-Datei", True),
        ("Файлы .ifo, .idx", "Files .ifo/.idx", True),
        ("setup.pyを実行", "Run setup.py now", True),
        ("setup.pyを実行", "Run setup.pyc now", False),
        ("詳細はhttps://a.org/xを", "See https://a.org/xy", False),
    ],
)
def test_where_items_stand_in_translations(line: str, translation: str, arrives: bool) -> None:
    assert Items(line, USUAL.stretches(line)).arrive(translation) == arrives


@pytest.mark.parametrize(
    "part",
    [
        "設定.txt",
        "https://a.com/日本",
        "日本/a.py",
        "5 км ",
        "か%s",
        "/日本",
        "日",
        "$5元",
        "零下",
        "12時",
        "-ა",
    ],
)
def test_the_time_for_other_scripts_is_proportional_to_the_length(part: str) -> None:
    line = part * (24_000 // len(part))
    begin = time.process_time()
    Items(line, USUAL.stretches(line)).arrive(line)
    assert time.process_time() - begin < 6
