"""What a browser would see of a page: where it leads, what its forms send, and what it would load or run."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

import httpx


@dataclass
class Form:
    """A form with the fields that it would send untouched."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)
    boxes: dict[str, str] = field(default_factory=dict)  # not ticked


class Page(HTMLParser):
    """A page, taken apart."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.links: list[str] = []
        self.forms: list[Form] = []
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self._options: tuple[str, bool] | None = None
        self._area: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.elements.add(tag)
        self.attributes |= given.keys()
        self.addresses += [given[name] for name in ("href", "src", "action", "formaction", "data") if name in given]
        if tag == "a":
            self.links.append(given["href"])
        if tag == "form":
            self.forms.append(Form(given["action"], given["method"]))
        if self.forms and "name" in given and tag in {"input", "textarea"}:
            self._input(given)
            self._area = given["name"] if tag == "textarea" else None
        if tag == "select":
            self._options = given["name"], False
        if tag == "option" and self._options and self.forms:
            name, chosen = self._options
            if "selected" in given or not (chosen or name in self.forms[-1].fields):
                self.forms[-1].fields[name] = given.get("value", "")
                self._options = name, "selected" in given

    def handle_data(self, data: str) -> None:
        if self._area is not None:
            self.forms[-1].fields[self._area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea" and self._area is not None:
            fields = self.forms[-1].fields
            fields[self._area] = fields[self._area].removeprefix("\n")  # the one behind the tag is none of the text
            self._area = None

    def _input(self, given: dict[str, str]) -> None:
        form = self.forms[-1]
        if given.get("type") == "checkbox" and "checked" not in given:
            form.boxes[given["name"]] = given["value"]
        else:
            form.fields[given["name"]] = given.get("value", "")

    def form(self, action: str) -> Form:
        """The one whose action begins so."""
        return next(each for each in self.forms if each.action.startswith(action))


async def send(http: httpx.AsyncClient, form: Form, **fields: str) -> httpx.Response:
    """Sends a form as a browser would, with these fields filled in."""
    headers = {"Origin": str(http.base_url).rstrip("/")}
    return await http.post(form.action, data=form.fields | fields, headers=headers)


class _Visible(HTMLParser):
    """The text of a page without what is folded; the summary of a fold is seen."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._folds = 0
        self._in_summary = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:  # noqa: ARG002
        self._folds += tag == "details"
        self._in_summary = self._in_summary or tag == "summary"

    def handle_endtag(self, tag: str) -> None:
        self._folds -= tag == "details"
        self._in_summary = self._in_summary and tag != "summary"

    def handle_data(self, data: str) -> None:
        if not self._folds or self._in_summary:
            self.texts.append(data)


def visible_text(text: str) -> str:
    """Returns the text that a reader sees of a page before opening any fold."""
    page = _Visible()
    page.feed(text)
    return "".join(page.texts)
