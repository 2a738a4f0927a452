"""Numbers that come in from outside: one that no row can have is refused before a database chokes on it."""

from typing import Annotated

from pydantic import Field

RowNumber = Annotated[int, Field(ge=0, le=2**63 - 1)]
"""In a path or a query; others get 422."""
