# ruff: noqa: RUF001 - abbreviations in many scripts
"""Rules for the ends of sentences that sentencex lacks, by language."""

from dataclasses import dataclass
from functools import cache

import regex

from nmt.text import HAN, subtags


@dataclass(frozen=True)
class Rules:
    """The rules of a language.

    Abbreviations are written without their last period; `_` stands for an inner period, a blank or
    both.
    """

    has_case: bool = False
    """Whether sentences begin with capitals."""
    has_periods: bool = True
    """Whether periods end sentences, not only abbreviations."""
    abbreviations: str = ""
    """Abbreviations that never end a sentence."""
    before_numbers: str = ""
    """Abbreviations that do not end a sentence before a number."""
    after_numbers: str = ""
    """Abbreviations that may end a sentence after a number: `2005 г.`, but not `г. Москва`."""
    may_end: str = ""
    """Abbreviations that may end a sentence, although they look like initials or others."""
    initial: str = r"\p{L}\p{M}*"
    """A letter that does not end a sentence if it is a whole word."""
    particles: str = ""
    """A pattern for text that continues a sentence after a quote or brackets."""
    after_exclamation: str = ""
    """A pattern for text that continues a sentence after a question or exclamation mark."""
    after_any_mark: str = "(?!)"
    """A pattern for text that continues a sentence after any mark; the default never matches."""
    conjunctions: str = "(?!)"
    """A pattern for what continues a sentence after a question or exclamation in quotes."""
    reporting: str = ""
    """A pattern for what continues a sentence that begins with a quote; if empty, everything."""
    stops: str = ""
    """Further marks that end a sentence before a blank."""


HAN_OR_KATAKANA = rf"[{HAN}\u30a1-\u30fa]"
LATIN_LETTER = r"[A-Za-z]"
LATIN_ABBREVIATIONS = "Dr Mr Mrs Ms Prof St vs No e_g i_e cf p pp Vol Fig U_S U_K"
"""Abbreviations in Latin script within text of another script."""
CYRILLIC_UNITS = "тыс тис млн млрд руб грн коп чел км м см мм кг г ч мин сек"
RULES = {
    "ja": Rules(
        initial=LATIN_LETTER,
        particles=r"と|って|っ|など|なん|は(?!い)|が|を|に|で|も|の|か(?!れ)|ら|や|へ",
        after_exclamation=rf"と(?![こも])|って|を|[のがはに]{HAN_OR_KATAKANA}",
        # Names such as モーニング娘。
        after_any_mark=rf"を|[のがは]{HAN_OR_KATAKANA}",
        reporting=(
            r"そう(?:言|い)"
            r"|[^。！？「」]{0,20}?(?:言っ|言う|言い|聞い|尋ね|答え|叫|つぶや|呟|話し|述べ|告げ)"
        ),
    ),
    "zh": Rules(
        initial=LATIN_LETTER,
        particles=r"的|等|时|時|之|后|後|和|与|與|及",
        reporting=(
            r"这|這|那"
            r"|[^。！？“”「」没沒都不]{0,12}?(?:说|說|问|問|道|喊|叫|想|回答|答|笑)"
            r"|[^。！？“”「」]{0,12}[，,][“「]"
        ),
    ),
    "ko": Rules(
        # Syllables that number the items of a list.
        initial=rf"(?:[가나다라마바사아자차카타파하]|{LATIN_LETTER})",
        particles=r"이?라고|하고|하며|이?라며|고\s",
        reporting=r"[^.?!\"“”]{0,25}(?:말했|말하|물었|묻|외쳤|대답|속삭|소리|생각)",
    ),
    "th": Rules(has_periods=False),
    "ru": Rules(
        has_case=True,
        abbreviations="""см ср дж напр рис табл гл стр разд илл англ нем фр франц лат греч укр рус
            исп итал яп кит тур араб им ул пр просп пер пл наб д кв корп стр оф проф акад
            доц докт канд чл
            т_е т_к т_н т_о т_ч тел ред изд сост вер гос обл р-н г с в вв п пп гг св ст ч т тт
            кн руб_коп о-в оз гр г-н г-жа г-жи ген адм полк""",
        before_numbers="""руб грн час мин сек с № п пп гл ст стр рис табл д кв ч т
            вып изд тел ок прибл около""",
        may_end="и_т_д и_т_п и_др и_пр н_э",
        after_numbers="г гг в вв с ч т ст п м " + CYRILLIC_UNITS,
    ),
    "uk": Rules(
        has_case=True,
        abbreviations="""див пор дж напр рис табл розд гл стор англ нім фр лат грец рос укр пол
            ісп італ яп кит тур араб ім вул просп пров пл буд кв корп оф проф акад
            доц канд чл
            т_е т_зв т_ч тел ред вид упор вер держ обл р-н м с смт ст п пп р рр св ч т тт кн гр о-в
            оз ген адм полк""",
        before_numbers="""руб грн крб год хв сек с № п пп розд гл ст рис табл буд кв
            ч т вип тел бл близько""",
        may_end="і_т_д й_т_д і_т_п та_ін і_ін т_і т_ін н_е",
        after_numbers="р рр ст ч т п м с " + CYRILLIC_UNITS,
    ),
    "el": Rules(
        has_case=True,
        abbreviations="""π.χ π_χ λ.χ βλ πρβλ δηλ κ κα κκ κος αρ σελ σσ κεφ σχ εικ παρ τηλ δρ αγ
            μτφρ εκδ τ στ οδ λεωφ πλ υπ""",
        before_numbers="αρ πρωτ σελ κεφ σχ παρ τηλ",
        may_end="κ_λπ κλπ κ_ά π.Χ μ.Χ",
        stops=";",
    ),
    "ka": Rules(
        abbreviations="""იხ შდრ მაგ სურ ცხრ გვ თ თავ ქ ქუჩ პროფ აკად დოც დრ ინგლ გერმ ფრ რუს ლათ
            ბერძ ე_ი ე_წ ა_წ ძვ_წ ძვ ტელ მლნ მლრდ ათ ე ა""",
        before_numbers="გვ სურ ცხრ თ ტელ გამზ ქ",
        conjunctions=r"და\s|მაგრამ\s",
        may_end="და_ა_შ და_სხვ",
    ),
    "he": Rules(
        abbreviations="עמ טל רח פרופ מס",
        before_numbers="עמ טל מס",
        conjunctions=r"ו\p{L}",
    ),
    "ar": Rules(
        abbreviations="د أ.د أ م ص ج ت ق.م ب.م تلفون ص.ب رقم",
        before_numbers="ص ج ت",
        conjunctions=r"ثم\s|و\p{L}",
    ),
    "fa": Rules(
        abbreviations="د ص ج ت ر.ک ه.ش ه.ق ق.م ب.م م مهندس تلفن",
        before_numbers="ص ج ت",
        conjunctions=r"(?:و|سپس|بعد)\s",
    ),
    "ur": Rules(
        # Names of Latin letters, but no words such as آئی.
        initial="(?:اے|بی|سی|ڈی|ایف|جی|ایچ|جے|کے|ایل|ایم|این|پی|کیو|آر|ایس|ٹی|یو|وی|ڈبلیو)",
        abbreviations="ڈاکٹر ص ج ق.م",
        conjunctions=r"(?:اور|پھر)\s",
    ),
    "bn": Rules(conjunctions=r"(?:তারপর|এবং|আর|ও)\s"),
    # "Etc." is written between two stops.
    "km": Rules(after_any_mark=r"(?:ល|បេ)\s?។"),
    "hi": Rules(
        # Consonants and names of Latin letters, but no words such as है.
        initial=r"(?:[क-ह]|ए|बी|सी|डी|ई|एफ|एच|जे|के|एल|एम|एन|पी|आर|एस|टी|यू|वी|डब्ल्यू)",
        abbreviations="""डॉ डा श्री पं प्रो पृ रु सं कि.मी कि.ग्रा मि.मी से.मी ई.पू ई_पू दि मो
            वि.सं बी.ए एम.ए जि ता क्र अ""",
        before_numbers="पृ रु सं दि",
        conjunctions=r"(?:और|फिर|तो)\s",
    ),
}
"""Maps languages, as Unicode writes their codes, to their rules."""
ALIASES = {
    "acm": "ar",
    "acq": "ar",
    "aeb": "ar",
    "apc": "ar",
    "ars": "ar",
    "ary": "ar",
    "arz": "ar",
    "yue": "zh",
    "wuu": "zh",
    "be": "ru",
    "bg": "ru",
    "mk": "ru",
    "lo": "th",
}
"""Languages with the rules of a similar one."""
LIST_NUMBER = regex.compile(
    r"[^\p{L}\p{N}]*"
    r"(?:\d+|[가나다라마바사아자차카타파하]|(?![\p{Hangul}\p{Han}])\p{L}\p{M}*)"
    r"[.)\uff0e]"
)
"""The number of a list item. In Korean, only some syllables number items; others are words."""
THOUSANDS = r"(?:тыс\.|тис\.|млн\.?|млрд\.?)"
INTRODUCTION = regex.compile(
    r"(?:В|Во|С|К|До|После|От|Около|У|З|Із|Від|Після|Близько|На|През)\s[\dIVXLC—–-]+\s?\p{L}+\."
)
"""The first words of a sentence, not a whole one: In 1812."""
WITHOUT_CASE = Rules()
CASED_SCRIPTS = frozenset(["Latn", "Cyrl", "Grek", "Armn", ""])


@cache
def rules_of(code: str) -> Rules | None:
    """The rules of a language; None if sentencex's are enough."""
    language, script, _, _ = subtags(code)
    language = ALIASES.get(language, language)
    if language in RULES:
        return RULES[language]
    # sentencex handles scripts with capitals well. The empty name stands for an unknown script.
    return None if script in CASED_SCRIPTS else WITHOUT_CASE
