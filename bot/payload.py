"""Reads fields out of a webhook's body and names the one that is not as GitHub describes it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from bot.errors import PayloadError


@dataclass(frozen=True)
class Payload:
    """A JSON object and where it stands in the body."""

    data: Mapping[str, Any]
    path: str = ""

    def object(self, name: str) -> "Payload":
        return Payload(self._typed(name, dict, "an object"), self._full(name))

    def optional_object(self, name: str) -> "Payload | None":
        return None if self.data.get(name) is None else self.object(name)

    def objects(self, name: str) -> list["Payload"]:
        """Return a list of objects; one that is missing or null is empty."""
        if self.data.get(name) is None:
            return []
        items = self._typed(name, list, "a list")
        for index, item in enumerate(items):
            if not isinstance(item, dict):
                raise PayloadError(f"{self._full(name)}[{index}]: must be an object, is {type(item).__name__}.")
        return [Payload(item, f"{self._full(name)}[{index}]") for index, item in enumerate(items)]

    def text(self, name: str) -> str:
        return clean(self._typed(name, str, "a text"))

    def optional_text(self, name: str) -> str:
        """Return a text that may be missing or null as it is, or empty."""
        return "" if self.data.get(name) is None else self.text(name)

    def texts(self, name: str) -> list[str]:
        """Return a list of texts; one that is missing or null is empty, and what is no text is left out."""
        if self.data.get(name) is None:
            return []
        return [clean(item) for item in self._typed(name, list, "a list") if isinstance(item, str)]

    def number(self, name: str) -> int:
        value = self._typed(name, int, "a whole number")
        if isinstance(value, bool) or not 0 <= value < 2**63:
            raise PayloadError(f"{self._full(name)}: must be a whole number of GitHub's, is {value!r}.")
        return int(value)

    def flag(self, name: str, default: bool = False) -> bool:
        return default if self.data.get(name) is None else bool(self._typed(name, bool, "true or false"))

    def moment(self, name: str) -> datetime:
        """Return a time that GitHub writes as ISO 8601 text, or in pushes as seconds since 1970."""
        value = self.data.get(name)
        try:
            if isinstance(value, int) and not isinstance(value, bool):
                return datetime.fromtimestamp(value, UTC)
            parsed = datetime.fromisoformat(self.text(name))
            return parsed.astimezone(UTC) if parsed.tzinfo else parsed.replace(tzinfo=UTC)
        except (ValueError, OverflowError, OSError) as error:
            raise PayloadError(f"{self._full(name)}: must be a time, is {str(value)[:50]!r}.") from error

    def _typed(self, name: str, kind: type, words: str) -> Any:
        if name not in self.data:
            raise PayloadError(f"{self._full(name)}: is missing.")
        value = self.data[name]
        if not isinstance(value, kind):
            raise PayloadError(f"{self._full(name)}: must be {words}, is {type(value).__name__}.")
        return value

    def _full(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


def clean(text: str) -> str:
    """Return text that every database can keep: no NUL, no lone surrogates (JSON can spell both)."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode("utf-8")
