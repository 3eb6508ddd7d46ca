"""Read a page as a browser does, and a name that would do harm in one that does not escape it."""

from html.parser import HTMLParser

HOSTILE = "</script><img src=x onerror=alert(1)>\"'`{{7*7}}<!--\u2028]]>\n&amp;"


class Elements(HTMLParser):
    """The elements of a page with their attributes, and their texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in {"meta", "link", "br", "input"}:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.append((self._open[-1], data))

    @property
    def words(self) -> str:
        shown = (text for tag, text in self.texts if tag not in {"script", "style"})
        return " ".join(" ".join(shown).split())
