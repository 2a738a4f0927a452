# `make demo` and `make test` are the README's two commands: each sets up what it needs first.
.PHONY: demo test check setup setup-dev clean

setup:
	@sh scripts/setup.sh core

setup-dev:
	@sh scripts/setup.sh dev

demo: setup
	@.venv/bin/acrouter demo $(ARGS)

test: setup-dev
	@sh scripts/test.sh $(ARGS)

check: setup-dev
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

clean:
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache
