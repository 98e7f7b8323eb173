"""Bible translations in USFM 2 and 3 (https://docs.usfm.bible).

Each verse is a sentence, and so is each heading. A verse in several lines of poetry is one sentence
with the markers of the lines in it, unless a line ends with the end of a sentence.
"""

import re
from collections import Counter
from collections.abc import Sequence

from nmt.config import NMTError
from nmt.plugins.documents import Part, Spliced, Text, notice_of
from nmt.plugins.prose.usfm_markers import REFUSED
from nmt.plugins.prose.usfm_reader import Reader

ALIGNED = re.compile(rf"\\{REFUSED}\b")


class Usfm(Text):
    def parts(self, text: str, target: str) -> Sequence[Part]:
        aligned = ALIGNED.search(text)
        if aligned:
            line = text.count("\n", 0, aligned.start()) + 1
            raise NMTError(
                f"line {line}: \\{REFUSED} aligns words with the original language, which a "
                "translation cannot keep; export the text without alignment"
            )
        self.left = Counter[str]()
        reader = Reader(text, self.left)
        parts = reader.read(0, len(text))
        self.notice = notice_of(*self.left.items())
        return Spliced(text, parts).parts
