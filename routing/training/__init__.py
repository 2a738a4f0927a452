"""Offline training of the voters that are models: `acrouter train logreg` and `acrouter train policy`."""
