"""Asking a small language model which model of the pool should take a task: question, call, answer."""
