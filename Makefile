# Both targets do all set-up: a machine with Python 3.10 or newer needs nothing else.
#   make demo   install into .venv and convert real models both ways, verified
#   make test   the same with the development tools: ruff, mypy, pytest
#   make bench  measure speed and size beside other tools, into out/bench.json; takes minutes and 5 GB of disk

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test bench clean
.DELETE_ON_ERROR:

demo: .venv/installed
	PATH="$(CURDIR)/$(BIN):$$PATH" examples/command_line.sh
	@printf '\n$$ python examples/library.py\n'
	$(BIN)/python examples/library.py

test: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

bench: .venv/installed
	$(BIN)/python benchmarks/bench.py

clean:
	rm -rf .venv out dist

# The package is installed in place, so that only a change of its metadata asks for another installation.
.venv/installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/installed-dev: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@ .venv/installed

.venv/bin/python:
	$(PYTHON) -m venv .venv
