"""What the router remembers."""

from datetime import datetime

from sqlalchemy import BigInteger, Column, Index, LargeBinary, Text
from sqlmodel import Field, SQLModel

from store.tables.columns import Json, id_column, moment_column


class MemoryEntry(SQLModel, table=True):
    """What the router knows of one attempt; one row each, its score replaced when an outcome arrives."""

    __table_args__ = (
        Index("ix_memoryentry_revision", "revision"),
        Index("ix_memoryentry_beliefs", "model", "dimension", "final", "score", "cost_usd"),
    )

    id: int | None = id_column()
    key: str = Field(unique=True, max_length=100)
    """`attempt:ID`, or whatever a user of the library names its evidence."""
    task_key: str = Field(max_length=100, index=True)
    repository: str = Field(default="", max_length=300)
    dimension: str = Field(default="", max_length=50)
    language: str = Field(default="", max_length=50)
    title: str = Field(default="", sa_type=Text)
    link: str = Field(default="", max_length=500)
    text: str = Field(default="", sa_type=Text)
    """What was embedded: kept so that another encoder can embed it again."""
    encoder: str = Field(default="", max_length=200)
    embedding: bytes | None = Field(default=None, sa_column=Column(LargeBinary, nullable=True))
    """float32, little endian, normalised."""
    model: str = Field(max_length=200, index=True)
    score: float
    cost_usd: float
    final: bool = False
    """True once an outcome has replaced the verifier's score."""
    verifier_score: float | None = None
    """What the verifier had said; kept beside the outcome, so that it can be held against it."""
    views: dict[str, float] = Field(default_factory=dict, sa_type=Json)
    """What each voter had believed of this model on this task."""
    namings: dict[str, float] = Field(default_factory=dict, sa_type=Json)
    """Of voters without beliefs: the share that each had given this model, over an even split."""
    traits: list[float] = Field(default_factory=list, sa_type=Json)
    """What was counted in the text (`routing.contexts`)."""
    revision: int = Field(default=0, sa_type=BigInteger)
    """Raised by every write; processes catch up by it."""
    created_at: datetime = moment_column()
    """When the attempt was made."""
    updated_at: datetime = moment_column()
    """When its score was known."""
