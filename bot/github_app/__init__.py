"""The App itself at GitHub: what it needs, how it is created, and whether it has what it needs."""
