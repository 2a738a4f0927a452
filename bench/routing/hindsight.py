"""What could be had by somebody who knows all outcomes: the bounds that routers are held against."""

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from bench.routing.stream import USD_WEIGHT, Floats, Stream
from bench.routing.tracks import Track


def oracle(stream: Stream) -> NDArray[np.int64]:
    """Return the model with the best reward on each task, as (T,) indices."""
    chosen: NDArray[np.int64] = stream.rewards.argmax(axis=1)
    return chosen


def stand_ins(stream: Stream) -> NDArray[np.int64]:
    """Return the model with the lowest price that may be used on each task, as (T,) indices."""
    prices = np.array([spec.prior_cost_usd for spec in stream.pool.models])
    found: NDArray[np.int64] = np.where(stream.allowed, prices, np.inf).argmin(axis=1)
    return found


def chain_rewards(stream: Stream, chain: tuple[int, ...], track: Track) -> tuple[Floats, Floats, Floats]:
    """Return (rewards, resolved, usd), each (T,), of trying a chain's models in order until the verifier is content.

    A model that may not be used on a task is passed over there; where none may, the cheapest that may be stands in.
    """
    shows = stream.resolved if track is Track.LABEL else stream.passes
    open_ = np.ones(len(stream), dtype=bool)
    resolved = np.zeros(len(stream))
    usd = np.zeros(len(stream))
    alone = np.flatnonzero(~stream.allowed[:, list(chain)].any(axis=1))
    instead = stand_ins(stream)[alone]
    usd[alone], resolved[alone] = stream.usd[alone, instead], stream.resolved[alone, instead]
    for model in chain:
        tried = open_ & stream.allowed[:, model]
        usd[tried] += stream.usd[tried, model]
        resolved[tried] = stream.resolved[tried, model]
        open_ &= ~tried | (shows[:, model] < 1.0)
    return resolved - USD_WEIGHT * usd, resolved, usd


def best_chain(stream: Stream, track: Track) -> tuple[int, ...]:
    """Return the chain of up to `track.attempts` models with the best total reward in hindsight."""
    chains = (
        chain for length in range(1, track.attempts + 1) for chain in permutations(range(len(stream.models)), length)
    )
    return max(chains, key=lambda chain: float(chain_rewards(stream, chain, track)[0].sum()))
