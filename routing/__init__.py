"""The loop's brain: tasks, voters, orchestrator, memory, reward. Knows no GitHub, no Celery, no web, no Docker.

from routing import Router

router = Router.from_files("models.yaml")
result = router.run("Fix the crash in parse_date() on an empty string", call_model, verify)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from routing.loop import ModelAnswer as ModelAnswer
    from routing.loop import RunResult as RunResult
    from routing.pool import ModelPool as ModelPool
    from routing.pool import ModelSpec as ModelSpec
    from routing.pool import load_pool as load_pool
    from routing.reward import RewardWeights as RewardWeights
    from routing.router import Router as Router
    from routing.types import Dimension as Dimension
    from routing.types import Evidence as Evidence
    from routing.types import RoutingDecision as RoutingDecision
    from routing.types import RoutingTask as RoutingTask

# Loaded when first asked for: `import routing.errors` must not cost the half second of FAISS.
_HOMES = {
    "ModelAnswer": "routing.loop",
    "RunResult": "routing.loop",
    "ModelPool": "routing.pool",
    "ModelSpec": "routing.pool",
    "load_pool": "routing.pool",
    "RewardWeights": "routing.reward",
    "Router": "routing.router",
    "Dimension": "routing.types",
    "Evidence": "routing.types",
    "RoutingDecision": "routing.types",
    "RoutingTask": "routing.types",
}

__all__ = [
    "Dimension",
    "Evidence",
    "ModelAnswer",
    "ModelPool",
    "ModelSpec",
    "RewardWeights",
    "Router",
    "RoutingDecision",
    "RoutingTask",
    "RunResult",
    "load_pool",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'routing' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
