"""`nmt translate`: a stream of lines to a stream of translations."""

import json
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack

from nmt.config import TranslateConfig
from nmt.translation.devices import DeviceTranslator, on_devices
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
    records = [
        {
            "text": t.text,
            "score": t.score,
            "log_probability": t.log_probability,
            **(vars(t.details) if t.details else {}),
        }
        for t in translations
    ]
    line = {"line": number, "source": source, "translations": records}
    if translations[0].copied:
        line["copied"] = translations[0].copied
    return json.dumps(line, ensure_ascii=False) + "\n"


def open_translator(config: TranslateConfig, stack: ExitStack) -> Translator | DeviceTranslator:
    """The translator for one device or several; `stack` ends the processes of several."""
    if config.devices == 1:
        return load_translator(config, warn)
    return stack.enter_context(on_devices(config, warn))


class Remarks:
    """Notices of lines that were cut or copied from: of the first of each kind at once, of their number at the end."""

    def __init__(self, counts: Counter[str], notice: Callable[[str], None]) -> None:
        self.counts, self.notice = counts, notice

    def add(self, where: str, translation: Translation) -> None:
        """Count a line's translation, `where` it is in words."""
        found = ", ".join(map(repr, translation.copied))
        copied = f"characters that the model was not trained on, copied as they are: {found}" if found else ""
        for kind, words in (("split", translation.split), ("copied", copied)):
            if words and not self.counts[kind]:
                self.notice(f"{where}: {words}")
            self.counts[kind] += bool(words)

    def summarize(self) -> None:
        """Give the number of lines of each kind, where there was more than one."""
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
            remarks.add(f"line {number}", translations[0])
            job.output.write(render(number, source, translations, config.format), number)
    remarks.summarize()
