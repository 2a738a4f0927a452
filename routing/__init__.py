"""The loop's brain: tasks, voters, orchestrator, memory, reward. Knows no GitHub, no Celery, no web, no Docker."""
