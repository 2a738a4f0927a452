"""Untrusted code: images, containers, checkouts, the agent, tests, patches. Knows no GitHub, no Celery, no routing."""
