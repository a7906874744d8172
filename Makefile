# Both targets do all set-up: a machine with Python 3.11 or newer needs nothing else.
#   make demo   install into .venv and convert real models both ways, verified
#   make test   the same with the development tools: ruff, mypy, pytest
#   make test-oldest  the tests again, with the oldest versions that pyproject.toml allows, into .venv-oldest
#   make dist   build the source archive and the wheel, and run the tests of the one against the other, elsewhere
#   make docs   build the documentation site into build/site, strictly
#   make bench  measure speed and size beside other tools, into out/bench.json; takes minutes and 5 GB of disk

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test mypy pytest test-oldest dist docs bench clean
.DELETE_ON_ERROR:

demo: .venv/installed
	PATH="$(CURDIR)/$(BIN):$$PATH" examples/command_line.sh
	@printf '\n$$ python examples/library.py\n'
	@$(BIN)/python examples/library.py

test: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	+$(MAKE) --jobs=2 mypy pytest

# Side by side, since mypy keeps one core busy.
mypy pytest: .venv/installed-dev
	$(BIN)/$@

# The package is taken out of the source archive, so that the tests can only find what the wheel has installed.
dist: .venv/installed-release
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	place=$$(mktemp -d) && trap 'rm -rf "$$place"' EXIT && \
	$(PYTHON) -m venv "$$place/venv" && \
	"$$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$$(echo dist/*.whl)[dev]" && \
	mkdir "$$place/source" && tar -xzf dist/*.tar.gz --strip-components=1 -C "$$place/source" && \
	rm -r "$$place/source/reducelower" && \
	cd "$$place/source" && "$$place/venv/bin/pytest"

docs: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

test-oldest: .venv-oldest/installed
	.venv-oldest/bin/pytest

bench: .venv/installed
	$(BIN)/python benchmarks/bench.py

clean:
	rm -rf .venv .venv-oldest out build dist

# The package is installed in place, so that only a change of its metadata asks for another installation. Of what the
# tools bring along most is never imported, so that compiling it beforehand takes longer than it saves.
.venv/installed: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

.venv/installed-dev: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable '.[dev]'
	touch $@ .venv/installed

.venv/installed-release: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	touch $@

.venv-oldest/installed: pyproject.toml tests/oldest_versions.py
	$(PYTHON) -m venv --clear .venv-oldest
	$(PYTHON) tests/oldest_versions.py > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' \
		--constraint .venv-oldest/constraints.txt
	touch $@

.venv/installed-docs: pyproject.toml | .venv/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

.venv/bin/python:
	$(PYTHON) -m venv .venv
