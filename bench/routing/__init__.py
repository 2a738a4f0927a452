"""`acrouter bench routing`: the shipped router and its peers on published and drawn streams, under the same rules."""

from bench.routing.command import run as run
