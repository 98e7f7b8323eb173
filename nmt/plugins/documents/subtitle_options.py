"""The options of the formats with subtitles."""

from dataclasses import dataclass

from nmt.config import number
from nmt.plugins.documents.document import Text


@dataclass
class SubtitlesConfig:
    """Limits for translated subtitles."""

    max_line: int | None = number(None, 10, 1000)
    """Columns per line of a subtitle; longer lines are wrapped again, into no more lines than the
    source has; a wide character, such as 字, counts as 2 columns; null: place line breaks between
    the words where the source has them."""
    max_cps: float | None = number(None, 1, 1000)
    """Report subtitles with more characters per second than this; null: no report."""


NO_LIMITS = SubtitlesConfig()


class SubtitleText(Text):
    """A text file of subtitles, with options for their lines."""

    convert = "convert it, for example with `iconv -f windows-1252 -t utf-8 old.srt > new.srt`"

    def __init__(
        self,
        content: bytes,
        source: str = "",
        target: str = "",
        options: SubtitlesConfig = NO_LIMITS,
    ) -> None:
        self.source = source
        self.options = options
        super().__init__(content, source, target)
