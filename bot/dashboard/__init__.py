"""What a team sees of acrouter: pages, a JSON API, CSV, metrics, all from the same numbers."""
