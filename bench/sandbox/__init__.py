"""`acrouter bench sandbox`: the sandbox beside mini-swe-agent's DockerEnvironment, and the verifier on real bugs."""

from bench.sandbox.command import run as run
