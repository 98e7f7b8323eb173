"""`nmt translate`: a stream of lines to a stream of translations."""

import json
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack

from nmt.config import TranslateConfig
from nmt.translation.devices import DeviceTranslator
from nmt.translation.job import open_job, warn
from nmt.translation.load import load_translator
from nmt.translation.translator import Translation, Translator


def render(number: int, source: str, translations: list[Translation], format: str) -> str:
    """The output for input line `number`, counted from 1: one line, or with tsv one for each translation."""
    if format == "text":
        return translations[0].text + "\n"
    if format == "tsv":
        # A translation holds no tab: white space in it is single blanks.
        return "".join(f"{number}\t{t.score:.4f}\t{t.text}\n" for t in translations)
    records = [{"text": t.text, "score": t.score, "log_probability": t.log_probability} for t in translations]
    for record, translation in zip(records, translations, strict=True):
        record |= vars(translation.details) if translation.details else {}
    line = {"line": number, "source": source, "translations": records}
    if translations[0].copied:
        line["copied"] = translations[0].copied
    return json.dumps(line, ensure_ascii=False) + "\n"


def open_translator(config: TranslateConfig, stack: ExitStack) -> Translator | DeviceTranslator:
    """The translator for one device or several; `stack` ends the processes of several."""
    if config.devices == 1:
        return load_translator(config, warn)
    return stack.enter_context(DeviceTranslator(config, warn))


class Remarks:
    """What is said of lines that were not simply translated: of the first of each kind at once, of all at the end."""

    def __init__(self, counts: Counter[str], notice: Callable[[str], None]) -> None:
        self.counts, self.notice = counts, notice

    def see(self, where: str, translation: Translation) -> None:
        """Look at the translation of a line; `where` is its place in words."""
        found = ", ".join(map(repr, translation.copied))
        copied = f"characters that the model was not trained on, copied as they are: {found}" if found else ""
        for kind, words in (("split", translation.split), ("copied", copied)):
            if words and not self.counts[kind]:
                self.notice(f"{where}: {words}")
            self.counts[kind] += bool(words)

    def tell(self) -> None:
        """Say how many there were, where there was more than one."""
        for kind, words in (
            ("split", "were longer than the lines that the model was trained on, and translated sentence by sentence"),
            ("copied", "held characters that the model was not trained on, which were copied"),
        ):
            if self.counts[kind] > 1:
                self.notice(f"{self.counts[kind]:,} lines {words}")


def translate(config: TranslateConfig) -> None:
    """Translate `config.input` to `config.output`, in order, as lines arrive."""
    with ExitStack() as stack:
        translator = open_translator(config, stack)
        job = open_job(config, {"command": "translate", "format": config.format}, stack)
        remarks = Remarks(job.output.counts, warn)
        for number, source, translations in job.run(lambda lines: translator.stream(lines, config.buffer)):
            remarks.see(f"line {number}", translations[0])
            job.output.write(render(number, source, translations, config.format), number)
    remarks.tell()
