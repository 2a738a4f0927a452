"""One module a behaviour. Each handler returns None where it did something, or why it did nothing."""
