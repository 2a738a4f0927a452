"""GitHub for the tests: one that nobody here wrote, what it lacks, and GitHub's own description to police both."""
