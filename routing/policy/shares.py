"""From the log-probabilities of an answer to a probability for each choice."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_END_TOKENS = ("<|", "</s>", "<eos>", "<end")


@dataclass(frozen=True)
class Position:
    """One generated token and the tokens that were likeliest in its place, with their log-probabilities."""

    token: str
    alternatives: Mapping[str, float]
    """The generated one among them."""


def choice_shares(choices: Sequence[str], positions: Sequence[Position]) -> dict[str, float] | None:
    """Return each choice's probability given that the answer is one of them; they sum to 1.

    The server reports what the model would have said without the constraint, so most of the mass may lie on tokens
    that no choice begins with: it is left out, and what lies on the choices' own tokens is renormalised at each
    position. A choice whose next token is not listed is at most as likely as the least likely token that is; it counts
    as just that, so that a choice which won among unlikely ones does not look certain. None: the tokens do not spell a
    choice.
    """
    alive = list(choices)
    shares = dict.fromkeys(choices, 0.0)
    mass, spelt = 1.0, ""
    for position in positions:
        if len(alive) == 1:
            break
        weights = _weights(alive, spelt, position)
        total = sum(weights.values())
        if not total > 0:
            return None
        following = [choice for choice in alive if _continues(choice[len(spelt) :], position.token)]
        if not following:
            return None
        for choice in alive:
            if choice not in following:
                shares[choice] = mass * weights[choice] / total
        mass *= sum(weights[choice] for choice in following) / total
        alive = following
        spelt += position.token if any(len(choice) > len(spelt) for choice in following) else ""
    ended = [choice for choice in alive if choice == spelt] or alive
    for choice in ended:
        shares[choice] = mass / len(ended)
    return shares


def _weights(alive: Sequence[str], spelt: str, position: Position) -> dict[str, float]:
    """Probability of each choice's next token; a token that several choices share is split evenly."""
    weights = dict.fromkeys(alive, 0.0)
    for token, logprob in position.alternatives.items():
        fits = [choice for choice in alive if _continues(choice[len(spelt) :], token)]
        for choice in fits:
            weights[choice] += math.exp(logprob) / len(fits)
    bound = math.exp(min(position.alternatives.values()))
    return {choice: weight or bound for choice, weight in weights.items()}


def _continues(rest: str, token: str) -> bool:
    """Tell whether a token goes on with what is left of a choice, or ends it where nothing is left."""
    if rest:
        return bool(token) and rest.startswith(token)
    return not token or token.startswith(_END_TOKENS)
