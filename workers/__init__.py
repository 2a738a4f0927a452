"""The queue: Celery app, thin tasks, the pipeline of one task, budgets, outcomes, the reconciler."""
