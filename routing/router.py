"""The router as a library: decide, observe, escalate, or `run` for all of it."""

import threading
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

import numpy as np
import structlog

from routing import ahead
from routing.calibration import Calibration
from routing.contexts import traits
from routing.cost_model import CostModel
from routing.costs import candidates
from routing.dimension import classify, detect_language
from routing.encoders import embedding_text, make_encoder
from routing.encoders.hashing import HashingEncoder
from routing.errors import EncoderError, NoModelLeft, RoutingError
from routing.escalation import Option, outlook, plan
from routing.evidence import check_dimension, completed, precedence, validate
from routing.limits import Limits
from routing.loop import ModelAnswer, RunResult, run
from routing.memory import CAPACITY, VectorMemory
from routing.namings import NamingRecord
from routing.orchestrator import Orchestrator
from routing.pool import ModelPool, ModelSpec, load_pool
from routing.reward import DEFAULT_WEIGHTS as DEFAULT_REWARD
from routing.reward import RewardWeights
from routing.said import OpenDecisions
from routing.types import Encoder, Evidence, RankedModel, RoutingDecision, RoutingTask, Vector, Voter
from routing.vectors import check_length, encoded, is_empty
from routing.voter_record import VoterRecord
from routing.voters import DEFAULT_WEIGHTS, FACTORIES, Factory, make_voters
from routing.voters.optional import configured
from store.settings import Settings

Answer = TypeVar("Answer")

_UNKNOWN_SCORE = 0.5
_log = structlog.get_logger(__name__)


class Router:
    """Chooses models and learns from what they did. Safe to share between threads.

    Everything it knows comes from `observe`; the database's evidence reaches it through `routing.evidence_store`.
    """

    def __init__(
        self,
        pool: ModelPool,
        *,
        encoder: Encoder | None = None,
        voter_weights: Mapping[str, float] = DEFAULT_WEIGHTS,
        reward_weights: RewardWeights = DEFAULT_REWARD,
        memory_capacity: int = CAPACITY,
        max_attempts: int = 3,
        factories: Mapping[str, Factory] = FACTORIES,
        seed: int | None = None,
    ) -> None:
        """Make a router that knows nothing but prices and published scores.

        Args:
            pool: the models.
            encoder: of the memory; `HashingEncoder` by default.
            voter_weights: voters by name; a weight of 0 leaves a voter out.
            reward_weights: what a score and a dollar are worth.
            memory_capacity: entries kept, those of the newest attempts.
            max_attempts: of one task, for its plan.
            factories: makes the voters that `voter_weights` names; add your own here.
            seed: of the exploration, for tests and replays; None: unpredictable.

        Raises:
            RoutingError: `max_attempts` or `memory_capacity` is below 1.
            VoterError: a voter is unknown or its weight is wrong.
        """
        for name, count in (("max_attempts", max_attempts), ("memory_capacity", memory_capacity)):
            if count < 1:
                raise RoutingError(f"{name} is {count}; it must be 1 or more.")
        self.pool = pool
        self.encoder: Encoder = encoder or HashingEncoder()
        self.reward_weights = reward_weights
        self.max_attempts = max_attempts
        self._voters = make_voters(voter_weights, reward_weights, factories)
        self._voter_weights = {name: voter_weights[name] for name in self._voters}
        self._slow_voters = ahead.slow(self._voters.values())
        self._orchestrator = Orchestrator(self._voters, reward_weights, max_attempts)
        self._memory = VectorMemory(self.encoder, memory_capacity)
        self._costs = CostModel()
        self._calibration = Calibration()
        self._record = VoterRecord()
        self._namings = NamingRecord()
        self._open_decisions = OpenDecisions()
        self._rng = np.random.default_rng(seed)
        self._lock = threading.RLock()

    @classmethod
    def from_files(cls, models_file: Path | str, *, encoder: str = "hashing", seed: int | None = None) -> Self:
        """Return a router for the pool of a models.yaml.

        Raises:
            PoolError: the file is wrong.
            EncoderError: the encoder is unknown or cannot be loaded.
        """
        return cls(load_pool(models_file), encoder=make_encoder(encoder), seed=seed)

    @classmethod
    def from_settings(cls, settings: Settings, *, seed: int | None = None) -> Self:
        """Return a router as the settings describe it.

        Raises:
            ConfigurationError: the pool's file or the voters' weights are wrong.
            EncoderError: the encoder is unknown or cannot be loaded.
        """
        pool, encoder = load_pool(settings.models_file), make_encoder(settings.encoder)
        factories, weights = configured(settings, encoder, pool)
        return cls(
            pool,
            encoder=encoder,
            voter_weights=weights,
            factories=factories,
            reward_weights=RewardWeights(settings.reward_score_weight, settings.reward_usd_weight),
            memory_capacity=settings.memory_capacity,
            max_attempts=settings.max_attempts,
            seed=seed,
        )

    def __len__(self) -> int:
        """Return the number of entries in the memory."""
        return len(self._memory)

    def __bool__(self) -> bool:
        """Say that there is one: by its length alone a router that has learnt nothing yet would count as none."""
        return True

    def task(self, key: str, text: str, *, title: str = "", repository: str = "", trigger: str = "") -> RoutingTask:
        """Return a task with its dimension and language found in its text."""
        return RoutingTask(
            key=key,
            text=text,
            dimension=classify(title, text, trigger=trigger),
            repository=repository,
            language=detect_language(text),
            title=title,
            trigger=trigger,
        )

    def embed(self, title: str, text: str) -> Vector | None:
        """Return the unit vector of a task's words, or None where there is nothing to compare.

        Raises:
            EncoderError: the encoder cannot be used, or its vector is none of its dimensions or not a unit vector.
        """
        words = embedding_text(title, text)
        if not words:
            return None
        # What is wrong with a vector must show before a model is paid for, not once its attempt is to be learnt from.
        vector = encoded(self.encoder, words)
        return None if is_empty(vector) else vector

    def decide(
        self,
        task: RoutingTask,
        *,
        exclude: Collection[str] = (),
        allow: Collection[str] | None = None,
        deny: Collection[str] = (),
        pinned: str | None = None,
        budget_usd: float | None = None,
        explore: bool = True,
    ) -> RoutingDecision:
        """Rank the models for a task; the first of the list is the choice.

        Args:
            task: embedded here where it has no embedding.
            exclude: models that were tried already or do not answer.
            allow: the only models that may be used, None for all.
            deny: models that may not be used.
            pinned: the model that a person asked for; it comes first with propensity 1.
            budget_usd: models that are expected to cost more are left out.
            explore: False where exploration is forbidden: no randomness, propensities 0 and 1.

        Raises:
            RoutingError: the budget is not a number, a string stands for a list of models, or the task is none or of
                an unknown dimension.
            NoModelLeft: nothing may be used; the message says for each model why.
            PoolError: `pinned`, `allow` or `deny` names a model that is not in the pool.
            EncoderError: the task's embedding has another shape than the encoder's or is not a unit vector, or the
                encoder cannot be used.
        """
        limits = Limits.of(exclude=exclude, allow=allow, deny=deny, pinned=pinned, budget_usd=budget_usd)
        limits.check(self.pool)
        # Embedding is slow and needs no lock.
        task = self._embedded(task)
        if pinned is None:
            task = self._asked_ahead(task, limits)
        with self._lock:
            everything = candidates(self.pool, self._costs, task)
            left_out = limits.left_out(everything)
            left = everything.without(left_out)
            if pinned in left_out:
                raise NoModelLeft(f"{pinned} was asked for, but may not be used: {left_out[pinned]}.")
            if not left.names:
                whys = "; ".join(f"{name}: {why}" for name, why in left_out.items())
                raise NoModelLeft(f"No model may be used. {whys}.")
            decision = self._orchestrator.decide(
                task,
                self._memory,
                left,
                self._rng,
                weights=self._record.weights(self._voter_weights, task.dimension),
                additions=lambda named: self._namings.additions(
                    {name: self._voter_weights[name] for name in named}, named, task.dimension
                ),
                passes=partial(self._calibration.passes, task),
                explore=explore,
                pinned=pinned,
                budget_usd=budget_usd,
                left_out=left_out,
            )
            self._open_decisions.remember(task.key, decision)
            return decision

    def observe(self, evidence: Evidence) -> Evidence:
        """Learn from an attempt, or from what became of it, and return the evidence with its embedding.

        The same key replaces what was known before; a final score is never replaced by a provisional one, and neither
        repetition nor order changes the result.

        Raises:
            RoutingError: a number is out of range.
            EncoderError: the embedding has another shape than the encoder's.
        """
        validate(evidence)
        # Evidence of the database comes without its text: its title alone would be another vector than the row's.
        if evidence.embedding is None and evidence.text:
            vector = self.embed(evidence.title, evidence.text)
            if vector is not None:
                evidence = replace(evidence, embedding=vector, encoder=self.encoder.name)
        if not evidence.traits and evidence.text:
            evidence = replace(evidence, traits=traits(evidence.text))
        with self._lock:
            known = self._memory.evidence(evidence.key)
            if known is not None:
                evidence = completed(evidence, known)
            evidence = self._with_what_was_said(evidence)
            if known is not None and precedence(known) > precedence(evidence):
                self._take_in(completed(known, evidence))
            self._take_in(evidence)
            return self._with_verifiers_score(evidence)

    def _take_in(self, evidence: Evidence) -> None:
        stood_for = self.pool.stood_for(evidence.model, evidence.made_at)
        if stood_for != evidence.model:
            evidence = replace(evidence, model=stood_for)
        numbers = evidence.bare
        # Nothing is learnt from a vector of another encoder: `routing.reencoding` replaces it in the background.
        learnt = evidence if evidence.encoder == self.encoder.name else numbers
        evicted = self._memory.put(learnt)
        self._tell_voters(learnt.key, lambda voter: voter.learn(learnt))
        self._record.learn(numbers)
        self._namings.learn(numbers)
        self._costs.learn(learnt)
        self._calibration.learn(learnt)
        for key in evicted:
            self.forget(key)

    def _tell_voters(self, key: str, tell: Callable[[Voter], None]) -> None:
        for name, voter in self._voters.items():
            try:
                tell(voter)
            except Exception as error:  # noqa: BLE001  (one broken voter must not keep the others from what was seen)
                _log.warning("voter_failed_to_learn", voter=name, evidence=key, exc_info=error)

    def forget(self, key: str) -> None:
        """Drop everything that was learnt from one key."""
        with self._lock:
            self._memory.remove(key)
            self._costs.forget(key)
            self._tell_voters(key, lambda voter: voter.forget(key))
            self._calibration.forget(key)
            self._record.forget(key)
            self._namings.forget(key)

    def escalate(
        self,
        task: RoutingTask,
        decision: RoutingDecision,
        tried: Mapping[str, float],
        remaining_usd: float | None = None,
    ) -> RankedModel | None:
        """Return the model to try next after failed attempts, or None where stopping has the higher expected reward.

        Args:
            task: the task of the decision.
            decision: as given by `decide`; only models that it ranked are considered.
            tried: score of each attempt so far by model, as the verifier gave it.
            remaining_usd: what may still be spent, None for no limit.

        Nothing is drawn: what is expected of the models is the decision's, or its scenario's where it explored.
        A pinned decision is not escalated: the person asked for that model and no other.
        """
        if decision.pinned:
            return None
        by_name = {line.model: line for line in decision.ranked}
        task = self._embedded(task)
        with self._lock:
            options = {
                name: Option(name, decision.scenario.get(name, line.expected_score), line.expected_cost_usd)
                for name, line in by_name.items()
            }
            left = [option for name, option in options.items() if name not in tried]
            if not left:
                return None
            view = outlook(
                left,
                failed=[self._expected_before(task, name, options) for name in tried],
                best_score=max(tried.values(), default=0.0),
                spread=decision.spread,
                passes=partial(self._calibration.passes, task),
            )
        steps = plan(view, budget_usd=remaining_usd, steps=self.max_attempts - len(tried), weights=self.reward_weights)
        if not steps:
            return None
        step = steps[0]
        return replace(by_name[step.model], expected_score=step.success, expected_cost_usd=step.cost_usd)

    def run(
        self,
        task: RoutingTask | str,
        call_model: Callable[[ModelSpec, RoutingTask], ModelAnswer[Answer]],
        verify: Callable[[RoutingTask, Answer], float],
        *,
        budget_usd: float | None = None,
        good_enough: float = 1.0,
    ) -> RunResult[Answer]:
        """Route a task, call the model, verify its answer and escalate; see `routing.loop.run`."""
        if isinstance(task, str):
            task = self.task(f"task:{uuid.uuid4().hex}", task)
        return run(self, task, call_model, verify, budget_usd=budget_usd, good_enough=good_enough)

    def _asked_ahead(self, task: RoutingTask, limits: Limits) -> RoutingTask:
        """Ask the slow voters: what they need is read within the lock, and nobody else waits for their answers."""
        if not self._slow_voters:
            return task
        with self._lock:
            everything = candidates(self.pool, self._costs, task)
            left = everything.without(limits.left_out(everything))
            calls = ahead.prepare(self._slow_voters, task, self._memory, left) if left.names else {}
        return replace(task, votes_ahead=ahead.ask(calls)) if calls else task

    def _expected_before(self, task: RoutingTask, model: str, options: Mapping[str, Option]) -> Option:
        """Return what was expected of a model that has failed: by this decision, else by an earlier one on the task."""
        if model in options:
            return options[model]
        expected = self._open_decisions.expected_score(task.key, model)
        return Option(model, _UNKNOWN_SCORE if expected is None else expected, 0.0)

    def _with_what_was_said(self, evidence: Evidence) -> Evidence:
        """Return evidence with what the voters had said, where it is known here."""
        views = evidence.views or self._open_decisions.views(evidence.task_key, evidence.model)
        namings = evidence.namings or self._open_decisions.namings(evidence.task_key, evidence.model)
        if (views, namings) == (evidence.views, evidence.namings):
            return evidence
        return replace(evidence, views=views, namings=namings)

    def _with_verifiers_score(self, evidence: Evidence) -> Evidence:
        """Return an outcome with what the verifier had said, as far as it is known by now.

        It is for who keeps the outcome. Learnt with it the outcome would hold on to what came first, and the order of
        two scores of the verifier could be seen.
        """
        if not evidence.final or evidence.verifier_score is not None:
            return evidence
        verified = self._calibration.verifier_score(evidence.key)
        return evidence if verified is None else replace(evidence, verifier_score=verified)

    def _embedded(self, task: RoutingTask) -> RoutingTask:
        if not isinstance(task, RoutingTask):
            raise RoutingError(f"the task is of type {type(task).__name__}; make it with Router.task(key, text).")
        check_dimension(task.dimension, f"task '{task.key}'")
        if not task.traits:
            task = replace(task, traits=traits(task.text))
        if task.embedding is None:
            return replace(task, embedding=self.embed(task.title, task.text))
        if task.embedding.shape != (self.encoder.dimensions,):
            raise EncoderError(
                f"task '{task.key}': its embedding has shape {task.embedding.shape}; '{self.encoder.name}' gives "
                f"{self.encoder.dimensions} dimensions."
            )
        check_length(task.embedding, f"task '{task.key}'")
        return task
