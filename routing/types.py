"""The words of the router as frozen dataclasses, and the Protocols at its seams."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]


class Dimension(StrEnum):
    """The ten kinds of coding task of the paper "Agent-as-a-Router" (arXiv 2606.22902)."""

    CODE_GENERATION = "code_generation"
    ALGORITHM = "algorithm"
    BUG_FIXING = "bug_fixing"
    CODE_COMPLETION = "code_completion"
    CODE_REFACTORING = "code_refactoring"
    DATA_SCIENCE = "data_science"
    MULTI_LANGUAGE = "multi_language"
    CODE_UNDERSTANDING = "code_understanding"
    TEST_GENERATION = "test_generation"
    AGENTIC_PROGRAMMING = "agentic_programming"


@dataclass(frozen=True)
class RoutingTask:
    """What the router may know of a task before it is worked on."""

    key: str
    text: str
    dimension: Dimension
    repository: str = ""
    language: str = ""
    title: str = ""
    link: str = ""
    trigger: str = ""
    """Where it comes from, a word of `store.states.Trigger`; empty: unknown."""
    embedding: Vector | None = None
    """Normalised; None until the router embeds `text`."""
    votes_ahead: Mapping[str, "Vote"] = field(default_factory=dict)
    """Set by the router: the votes of slow voters, which are asked outside of its lock."""
    traits: tuple[float, ...] = ()
    """What can be counted in the text (`routing.contexts`); empty until the router counts."""


@dataclass(frozen=True)
class Neighbour:
    """An attempt of the past that resembles the task."""

    key: str
    similarity: float
    model: str
    score: float
    cost_usd: float
    final: bool
    title: str
    link: str
    task_key: str = ""
    repository: str = ""
    """Whose task it was: show its title and link only to people who may see that repository."""


@dataclass(frozen=True)
class Vote:
    """One voter's opinion: a share for each model it has one on. Shares are in [0, 1] and sum to 1."""

    voter: str
    shares: Mapping[str, float]
    """Empty: the voter abstains."""
    confidence: float = 1.0
    """In [0, 1]; multiplies the voter's weight."""
    reason: str = ""
    expected_scores: Mapping[str, float] = field(default_factory=dict)
    """What the voter believes each model's score would be, where it has a belief."""
    neighbours: Sequence[Neighbour] = ()
    spread: float | None = None
    """How much tasks differ in difficulty beside what the voter knows of them (`routing.difficulty`), if it knows."""
    weight: float = 0.0
    """Set by the orchestrator."""
    deviations: Mapping[str, float] = field(default_factory=dict)
    """Standard deviations of the logits of what the voter believes, beside the other models, where it knows how sure it
    is. They are what exploration draws from."""

    @property
    def abstains(self) -> bool:
        return not self.shares


@dataclass(frozen=True)
class RankedModel:
    """One line of a decision's ranked list."""

    model: str
    share: float
    """By the expected reward of the best plan that begins with it (`routing.voters.shares`), not a count of votes; the
    ranked list's shares sum to 1."""
    propensity: float
    """Probability that this model would have been the first of the list."""
    expected_score: float
    expected_cost_usd: float


@dataclass(frozen=True)
class PlannedStep:
    """One step of an escalation plan, given that all steps before it failed."""

    model: str
    success: float
    """Expected score of this step, in [0, 1]."""
    cost_usd: float
    value: float
    """Expected reward of going on with this step and the ones after it; above 0."""


@dataclass(frozen=True)
class RoutingDecision:
    """The orchestrator's answer."""

    ranked: Sequence[RankedModel]
    votes: Sequence[Vote]
    reasons: Sequence[str]
    """In words for people, the most telling first."""
    neighbours: Sequence[Neighbour]
    pinned: bool = False
    views: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """What each voter that did not abstain believes of each model's score, by voter and model."""
    namings: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Of the others: the share that each gives each model, over an even split."""
    spread: float = 1.5
    """Of the task's difficulty: how much a failure will say about the other models (`routing.difficulty`)."""
    scenario: Mapping[str, float] = field(default_factory=dict)
    """Expected scores of the scenario that exploration drew; an escalation of this decision stays within it."""
    plan: Sequence[PlannedStep] = ()
    """What would be tried, in this order, while each step fails; computed again after each failure."""

    @property
    def chosen(self) -> str:
        return self.ranked[0].model

    @property
    def propensity(self) -> float:
        return self.ranked[0].propensity


@dataclass(frozen=True)
class Evidence:
    """What one attempt has shown. Sent again with the same key it replaces what was known before."""

    key: str
    task_key: str
    dimension: Dimension
    model: str
    score: float
    """In [0, 1]: the verifier's at first, the outcome's once `final`."""
    cost_usd: float
    final: bool
    at: datetime
    """When the score was known."""
    attempted_at: datetime | None = None
    """When the attempt was made, long before its outcome; None: at `at`, or when it was known of first."""
    revision: int = 0
    """Of its row in the database, whose newest writing stands; 0: it does not come from there."""
    verifier_score: float | None = None
    """Beside a final score: what the verifier had said, where it is known."""
    views: Mapping[str, float] = field(default_factory=dict)
    """What each voter had believed of this model on this task: its record is kept by it."""
    namings: Mapping[str, float] = field(default_factory=dict)
    """Of voters without beliefs: the share that each had given this model, over an even split."""
    traits: tuple[float, ...] = ()
    """Of the task's text, as in `RoutingTask`."""
    text: str = ""
    repository: str = ""
    language: str = ""
    title: str = ""
    link: str = ""
    embedding: Vector | None = None
    encoder: str = ""

    @property
    def made_at(self) -> datetime:
        """When the attempt was made, as far as it is known: what a task's attempts are ordered by."""
        return self.attempted_at or self.at

    @cached_property
    def bare(self) -> "Evidence":
        """The same without what takes room, its text and its vector. All who keep it share one."""
        if not self.text and self.embedding is None:
            return self
        return replace(self, text="", embedding=None)


class Encoder(Protocol):
    """Turns texts into vectors."""

    name: str
    """Identifies the encoder and its version: vectors of two names are never compared."""
    threshold: float
    """Similarity from which two texts count as alike under this encoder."""

    @property
    def dimensions(self) -> int:
        """Length of a vector."""
        ...

    def encode(self, texts: Sequence[str]) -> Vector:
        """Return a (len(texts), dimensions) float32 array of unit rows."""
        ...


class Memory(Protocol):
    """What a voter may ask of the past."""

    def neighbours(self, embedding: Vector, limit: int = 10, *, without_task: str = "") -> Sequence[Neighbour]:
        """Return the most similar entries above the encoder's threshold, the nearest first, none of the task named."""
        ...


class Voter(Protocol):
    """One opinion among the orchestrator's. Adding one means adding a file and a line of configuration."""

    name: str

    def vote(self, task: RoutingTask, memory: Memory, pool: "Pool") -> Vote:
        """Return shares over models of the pool, or an abstention (no shares) with its reason."""
        ...

    def learn(self, evidence: Evidence) -> None:
        """Take in evidence. The same key again replaces the earlier evidence; order does not matter."""
        ...

    def forget(self, key: str) -> None:
        """Drop the evidence of a key that left the memory; an unknown key is no error."""
        ...


class Pool(Protocol):
    """The models that may be chosen for one decision."""

    @property
    def names(self) -> Sequence[str]: ...

    def expected_cost_usd(self, model: str) -> float:
        """Return what an attempt is expected to cost by price and the tokens seen so far."""
        ...

    def prior_cost_usd(self, model: str) -> float:
        """Return what an attempt was expected to cost by price alone, before any was seen."""
        ...

    @property
    def priors(self) -> Mapping[str, float]:
        """What models are expected to score before any of their attempts was seen (`routing.priors`), by name.

        Those that may not be chosen now are there too: else what is believed would depend on who may be chosen.
        """
        ...

    @property
    def published(self) -> Collection[str]:
        """The names of those of `priors` whose expected score is told by published ones, and not by a price alone."""
        ...
