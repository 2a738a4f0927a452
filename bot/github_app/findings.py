"""One thing that a check found."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    level: Literal["ok", "warning", "wrong"]
    what: str
    found: str
    advice: str = ""
