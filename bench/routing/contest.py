"""Who plays on a stream, and the runs of a contest, spread over processes."""

import contextlib
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bench.routing import peers
from bench.routing.hindsight import best_chain
from bench.routing.player import Acrouter, routing_tasks
from bench.routing.stream import Stream, orders
from bench.routing.tracks import Played, Player, Track, play
from routing.types import RoutingTask
from routing.voters import DEFAULT_WEIGHTS

ROUTER = "acrouter"
RELEASED = -1
"""The permutation that is none: the released order. Those below it are the same order with another seed."""

Maker = Callable[["Arena", Track, int], Player]


@dataclass(frozen=True)
class Arena:
    """A stream with what all its players share."""

    stream: Stream
    tasks: Sequence[RoutingTask]
    encoded: NDArray[np.float32]
    x: NDArray[np.float64]

    @classmethod
    def of(cls, stream: Stream) -> "Arena":
        encoded = peers.vectors(stream)
        return cls(stream, routing_tasks(stream, encoded), encoded, peers.features(stream, encoded))


@dataclass(frozen=True)
class Run:
    """One run of one player."""

    stream: str
    player: str
    track: Track
    delay: int
    permutation: int


@dataclass(frozen=True)
class Contest:
    """Arenas and players by name, and how many permutations a run gets."""

    arenas: Mapping[str, Arena]
    players: Mapping[str, Mapping[str, Maker]]
    """By the arena's name, then the player's."""
    orders: Mapping[str, Sequence[NDArray[np.int64]]] = field(default_factory=dict)

    def run(self, run: Run) -> Played:
        arena = self.arenas[run.stream]
        order = (
            np.arange(len(arena.stream)) if run.permutation <= RELEASED else self.orders[run.stream][run.permutation]
        )
        player = self.players[run.stream][run.player](arena, run.track, abs(run.permutation - RELEASED))
        return play(arena.stream, order, player, run.track, run.delay)


def contest(arenas: Mapping[str, Arena], permutations: int) -> Contest:
    """Return the contest of all players that each arena allows."""
    return Contest(
        arenas,
        {name: makers(arena) for name, arena in arenas.items()},
        {name: orders(arena.stream, permutations) for name, arena in arenas.items()},
    )


def makers(arena: Arena) -> dict[str, Maker]:
    """Return the router under test, its ablations and the peers, by name."""
    stream = arena.stream
    found: dict[str, Maker] = {ROUTER: lambda a, track, seed: Acrouter(a.stream, a.tasks, track, seed)}
    found["ablation.no_exploration"] = lambda a, track, seed: Acrouter(a.stream, a.tasks, track, seed, explore=False)
    for name in DEFAULT_WEIGHTS:
        alone = {name: 1.0}
        others = {other: weight for other, weight in DEFAULT_WEIGHTS.items() if other != name}
        found[f"ablation.only_{name}"] = _with_voters(alone)
        found[f"ablation.without_{name}"] = _with_voters(others)
    found["peer.random"] = lambda a, _, seed: peers.Random(a.stream, seed)
    found["peer.oracle"] = lambda a, _, __: peers.oracle_player(a.stream)
    found["peer.epsilon_greedy"] = lambda a, _, seed: peers.EpsilonGreedy(a.stream, seed)
    found["peer.linucb"] = lambda a, _, seed: peers.LinUcb(a.stream, seed, a.x)
    found["peer.lints"] = lambda a, _, seed: peers.LinTs(a.stream, seed, a.x)
    found["peer.knn"] = lambda a, _, seed: peers.Knn(a.stream, seed, a.encoded)
    found["peer.best_chain"] = lambda a, track, _: peers.Chain(a.stream, best_chain(a.stream, track))
    if set(PUBLISHED_CHAIN) <= set(stream.models):
        found["peer.acrouter_chain"] = _chain(tuple(stream.models.index(model) for model in PUBLISHED_CHAIN))
    for position, model in enumerate(stream.models):
        if stream.allowed[:, position].all():
            found[f"peer.always_{model}"] = _chain((position,))
    for name, chosen in stream.votes.items():
        found[f"peer.published_{name}"] = _fixed(chosen)
    if stream.votes:
        found["peer.exp4"] = lambda a, _, seed: peers.Exp4(a.stream, seed, a.stream.votes)
        found["peer.hedge"] = lambda a, _, seed: peers.Hedge(a.stream, seed, a.stream.votes)
    return found


PUBLISHED_CHAIN = ("gpt-5.4", "claude-sonnet-4-6")
"""What ACRouter's release does on the OOD tasks: of all chains this one alone has its published figures there (73.30%,
CumReg 15.9; $86.63, published as $86.72)."""

ORDER_FREE = ("peer.oracle", "peer.best_chain", "peer.acrouter_chain", "peer.always_", "peer.published_")
"""Players that neither learn nor draw: one run tells all."""


def run_all(
    contest: Contest, runs: Sequence[Run], processes: int, ended: Callable[[Run], None] = lambda _: None
) -> dict[Run, Played]:
    """Play every run, call `ended` after each, and return what each brought."""
    global _CONTEST  # noqa: PLW0603  (what a forked process inherits instead of a copy for each run)
    _CONTEST = contest
    played = {}
    for run, result in zip(runs, _results(contest, runs, processes), strict=True):
        played[run] = result
        ended(run)
    return played


def _results(contest: Contest, runs: Sequence[Run], processes: int) -> Iterator[Played]:
    if processes == 1:
        yield from map(contest.run, runs)
        return
    with multiprocessing.get_context("fork").Pool(processes, _one_thread) as pool:
        yield from pool.imap(_run, runs)


def _one_thread() -> None:
    """Leave the other cores to the other processes: BLAS would take all of them for each product of matrices."""
    with contextlib.suppress(ImportError):  # without it all is the same, and slower
        import threadpoolctl

        threadpoolctl.threadpool_limits(1)


_CONTEST: Contest | None = None


def _run(run: Run) -> Played:
    assert _CONTEST is not None
    return _CONTEST.run(run)


def _with_voters(weights: Mapping[str, float]) -> Maker:
    return lambda a, track, seed: Acrouter(a.stream, a.tasks, track, seed, voter_weights=weights)


def _chain(models: tuple[int, ...]) -> Maker:
    return lambda a, _, __: peers.Chain(a.stream, models)


def _fixed(chosen: NDArray[np.int64]) -> Maker:
    return lambda _, __, ___: peers.Fixed(chosen)
