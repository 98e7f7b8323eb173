"""The forms that clients send, with the types and limits of their fields."""

from typing import Annotated, Any, ClassVar, Literal, TypeVar, cast

from pydantic import AfterValidator, BaseModel, Field, ValidationError
from starlette.datastructures import UploadFile

from nmt.plugins.serve.failures import Failed
from nmt.plugins.serve.fields import TEXTS

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

    @property
    def is_list(self) -> bool:
        """Whether each value of the answer is a list."""
        return isinstance(self.q, list)


class TranslateForm(TextForm):
    key_of_answer: ClassVar[str] = "translatedText"

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


class BatchForm(TranslateForm):
    """Texts with the names of NeMo Curator's translation stage (`backend_type="nmt"`)."""

    key_of_answer: ClassVar[str] = "translations"

    q: Text | list[Text] = Field(alias="texts")
    source: Text = Field(alias="src_lang")
    target: Text = Field(alias="tgt_lang")

    @property
    def is_list(self) -> bool:
        # A form without JSON cannot send a list of a single text.
        return True


class SuggestForm(TranslateForm):
    s: Text | list[Text]
    """The suggested translation, or that of each text in `q`."""

    @property
    def suggestions(self) -> list[str]:
        return self.s if isinstance(self.s, list) else [self.s]


class FileForm(BaseModel, arbitrary_types_allowed=True):
    file: UploadFile
    source: Text
    target: Text
    format: Text = "auto"
    """The format of the file; auto: by its name, and by its content if formats share a suffix."""


AnyForm = TypeVar("AnyForm", bound=BaseModel)


def form_meant(form: type[AnyForm], fields: dict[str, Any]) -> type[AnyForm]:
    """The form, or the one with other names for the same fields that a client has sent."""
    if form is not TranslateForm or "texts" not in fields:
        return form
    if "q" in fields:
        raise Failed(400, "q, texts: send one of them; texts goes with src_lang and tgt_lang")
    return cast(type[AnyForm], BatchForm)


def validated(form: type[AnyForm], fields: dict[str, Any]) -> AnyForm:
    """Validate all non-empty fields.

    For the first invalid one, raises Failed with LibreTranslate's wording.
    """
    # An empty field means the default, like a field that is not sent.
    # Clients may send fields for all of their options, even for options without a value.
    given = {name: value for name, value in fields.items() if value not in (None, "", [])}
    # A batch may be empty, for which a pipeline should not need a special case.
    if fields.get("texts") == []:
        given["texts"] = []
    try:
        return form_meant(form, given).model_validate(given)
    except ValidationError as error:
        # Without the input, because messages must not repeat texts of clients.
        first = error.errors(include_input=False, include_url=False)[0]
        raise Failed(
            400, problem_of_field(str(first["loc"][0]), first["type"], first["msg"])
        ) from error


def problem_of_field(name: str, kind: str, message: str) -> str:
    """Why a field is invalid; `kind` and `message` are pydantic's."""
    if kind == "missing":
        return f"Invalid request: missing {name} parameter"
    # The message would be about the first of two types.
    if name in TEXTS and kind in ("string_type", "list_type"):
        return f"{name}: must be a text or a list of texts"
    if kind == "is_instance_of":
        return f"{name}: must be a file; with curl, write -F {name}=@FILE"
    return f"{name}: {message}"
