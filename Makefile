# The two commands of a newcomer are `make demo` and `make test`; `make help` lists all of them. `JOBS=8` runs more tests
# at a time.

BIN := .venv/bin
JOBS := 2
PYTEST = $(BIN)/python -m pytest -n $(JOBS)

.PHONY: help setup demo test lint docs lock benchmark screenshots sweep fuzz clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "%-12s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what is missing and make the virtual environment .venv
	@scripts/setup.sh

demo: setup ## a network from project file to an Arm firmware on QEMU, ending with the accuracy on the device
	cd examples/digits && ../../$(BIN)/scons -Q

test: demo ## the demo and the test suite; tests of data outside the repository skip where it is missing
	@scripts/setup.sh test
	$(PYTEST) -m "not sweep and not fuzz"

lint: ## style and types
	@scripts/setup.sh test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

docs: ## the documentation site, in build/docs/index.html
	@scripts/setup.sh docs
	$(BIN)/sphinx-build -qW --keep-going -b html -d build/docs-state docs build/docs

lock: setup ## the lock files of examples/, after a change of what the compiler makes or of their models
	@for example in examples/*/mlfbuild.yml; do $(BIN)/mlfbuild lock -f $$example || exit; done

benchmark: ## instructions, flash and RAM of the networks in ../shared, beside what is committed
	@scripts/setup.sh test
	$(BIN)/python benchmarks/instructions.py --jobs $(JOBS)

screenshots: ## the pictures of docs/images
	@scripts/setup.sh test
	$(BIN)/python scripts/screenshots.py

sweep: ## the exhaustive tests, which take long
	@scripts/setup.sh test
	$(PYTEST) -m sweep

fuzz: ## damaged archives and models: 100,000 of each, or ten minutes of them
	@scripts/setup.sh test
	$(PYTEST) -m fuzz

clean: ## remove what was built here, but not .venv
	rm -rf build dist examples/*/build examples/*/.sconsign.dblite
	find . -name .venv -prune -o \( -name __pycache__ -o -name '.*_cache' \) -print0 | xargs -0 rm -rf
