"""The agent: mini-swe-agent's `DefaultAgent` over our sandbox, with money reserved before each call."""

from sandbox.agent.runner import Step, run_agent

__all__ = ["Step", "run_agent"]
