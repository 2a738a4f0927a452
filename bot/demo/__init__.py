"""The demo: the whole loop on one machine, against a local GitHub with scripted models."""
