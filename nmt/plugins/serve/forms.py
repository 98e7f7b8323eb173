"""The forms that clients send, with the types and limits of their fields."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, Field, ValidationError
from starlette.datastructures import UploadFile

from nmt.plugins.serve.failures import Failed

MOST_ALTERNATIVES = 10
MOST_PREFIX_CHARACTERS = 2000


def valid_text(text: str) -> str:
    """The text; raises UnicodeError for lone surrogates, which JSON can contain."""
    return text.encode().decode()


def at_least_zero(count: int) -> int:
    return max(0, count)


Text = Annotated[str, AfterValidator(valid_text)]
Alternatives = Annotated[
    int,
    Field(le=MOST_ALTERNATIVES),
    AfterValidator(at_least_zero),
]
Prefix = Annotated[Text, Field(max_length=MOST_PREFIX_CHARACTERS)]


class TextForm(BaseModel):
    """Texts to translate; as in LibreTranslate, `q` is a text or a list of texts."""

    q: Text | list[Text]

    @property
    def texts(self) -> list[str]:
        return self.q if isinstance(self.q, list) else [self.q]


class TranslateForm(TextForm):
    source: Text
    target: Text
    format: Literal["text", "html"] = "text"
    alternatives: Alternatives = 0
    prefix: Prefix | None = None
    """The words before the replaced word; alternatives have another word after them."""
    rest: Text = ""
    """The translation so far after the prefix; other sentences keep its words."""
    details: bool = False
    """Whether to return each line's alignment and likely failures."""


class SuggestForm(TranslateForm):
    s: Text
    """The suggested translation."""


class FileForm(BaseModel, arbitrary_types_allowed=True):
    file: UploadFile
    source: Text
    target: Text


AnyForm = TypeVar("AnyForm", bound=BaseModel)


def validated(form: type[AnyForm], fields: dict[str, Any]) -> AnyForm:
    """Validate all non-empty fields.

    For the first invalid one, raises Failed with LibreTranslate's wording.
    """
    # An empty field means the default, like a field that is not sent.
    # Clients may send fields for all of their options, even for options without a value.
    given = {name: value for name, value in fields.items() if value not in (None, "", [])}
    try:
        return form.model_validate(given)
    except ValidationError as error:
        # Without the input, because messages must not repeat texts of clients.
        first = error.errors(include_input=False, include_url=False)[0]
        name = first["loc"][0]
        problem = f"{name}: {first['msg']}"
        if first["type"] == "missing":
            problem = f"Invalid request: missing {name} parameter"
        raise Failed(400, problem) from error
