"""The voters that need something of the operator's: a model server, or a trained file. Off unless configured."""

from collections.abc import Mapping
from pathlib import Path

from routing.pool import ModelPool
from routing.types import Encoder, Voter
from routing.voters import FACTORIES, Factory, VoterError
from store.settings import Settings

DEFAULT_WEIGHT = 1.0
"""Of a voter that is configured and has no weight of its own in `voter_weights`."""


def configured(
    settings: Settings, encoder: Encoder, pool: ModelPool
) -> tuple[Mapping[str, Factory], Mapping[str, float]]:
    """Return all voters that these settings make possible, and the weights with those of the configured ones.

    Raises:
        VoterError: a setting is missing or wrong, or a trained file does not fit the encoder.
    """
    factories = dict(FACTORIES)
    if settings.policy_url:
        factories["policy_llm"] = _policy_llm(settings)
    elif settings.policy_model:
        raise VoterError("ACROUTER_POLICY_MODEL is set and ACROUTER_POLICY_URL is not. Give both, or neither.")
    if settings.logreg_file is not None:
        factories["logreg"] = _logreg(settings.logreg_file, encoder, pool)
    extra = {name: DEFAULT_WEIGHT for name in factories if name not in FACTORIES}
    return factories, extra | settings.voter_weights


def _logreg(path: Path, encoder: Encoder, pool: ModelPool) -> Factory:
    from routing.logreg_file import load
    from routing.voters.logreg import LogReg

    model = load(path)
    if model.encoder != encoder.name:
        raise VoterError(
            f"ACROUTER_LOGREG_FILE: {path} was trained with the encoder '{model.encoder}', and ACROUTER_ENCODER is "
            f"'{encoder.name}'. Train it again, or set the encoder back."
        )
    if model.dimensions != encoder.dimensions:
        raise VoterError(
            f"ACROUTER_LOGREG_FILE: {path} was trained on {model.dimensions} dimensions, and '{encoder.name}' gives "
            f"{encoder.dimensions}. Train it again."
        )
    names = {spec.name for spec in pool.models}
    if not names & set(model.models):
        raise VoterError(
            f"ACROUTER_LOGREG_FILE: {path} knows no model of the pool. It knows {', '.join(model.models)}; the pool "
            f"has {', '.join(sorted(names))}. Train it again."
        )
    return lambda weights: LogReg(model, weights)


def _policy_llm(settings: Settings) -> Factory:
    from routing.policy.client import PolicyClient
    from routing.voters.policy_llm import PolicyLlm

    if not settings.policy_url:
        raise VoterError("ACROUTER_POLICY_MODEL is set: name its server with ACROUTER_POLICY_URL, http://HOST:PORT/v1.")
    if not settings.policy_model:
        raise VoterError("ACROUTER_POLICY_URL is set: name the model that it serves with ACROUTER_POLICY_MODEL.")
    key = settings.policy_api_key.get_secret_value() if settings.policy_api_key else ""

    def make(_: object) -> Voter:
        return PolicyLlm(
            PolicyClient(settings.policy_url, settings.policy_model, api_key=key, deadline_s=settings.policy_deadline_s)
        )

    return make
