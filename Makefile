# Start with `make demo` and `make test`; `make help` lists all targets. `JOBS=8` runs more tests in parallel.

BIN := .venv/bin
# Tests wait for disks and emulators part of the time, so three processes use two cores better than two.
JOBS := 3
PYTEST = $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --durations 20
# Tests that draw fewer examples on each push.
DRAWN := tests/archive tests/c_analysis tests/executor tests/native tests/project tests/report/test_read.py
# Tests whose commands are forked on each push: the sweep starts a process for each (tests/support/warm.py).
COLD := tests/scons tests/cmake tests/cli tests/jobs tests/usecases tests/requirements tests/examples tests/docs
# Tests that need neither an emulator nor the judges of numbers.
QUICK := tests/core tests/project tests/library tests/c_analysis
LOWEST := build/lowest
# The campaign of `make fuzz`. Over a night: make fuzz INPUTS=1000000 SECONDS=28800 BUILDS=10000 SEED=$(date +%Y%m%d)
INPUTS := 100000
SECONDS := 600
BUILDS := 400
SEED := 0
COVERED := tflite onnx tar metadata graph-json params project elf map npz lock bundle report
# What a release must pass, in a clone of its commit.
CHECKS := bash .ci/run
# Without bytecode files, each of the thousands of processes that the tests start would compile the package again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test test-compiler lint generate new-operator docs lock benchmark figures onnx-tests screenshots sweep fuzz fuzz-coverage faults release clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-15s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install missing programs and create the virtual environment .venv
	@scripts/setup.sh

demo: setup ## build the digits example as Arm firmware, run it on QEMU and print its accuracy
	cd examples/digits && ../../$(BIN)/scons -Q

test: demo ## run the demo and the test suite; tests skip if data outside the repository is missing
	@scripts/setup.sh test
	$(PYTEST) -m "not sweep and not fuzz"

test-compiler: ## run the tests of the native compiler alone
	@scripts/setup.sh test
	$(PYTEST) -m "not sweep and not fuzz" tests/native

lint: ## check style and types
	@scripts/setup.sh test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	MYPY_NUM_WORKERS=2 $(BIN)/mypy

generate: setup ## write every list that follows from code: toolchain files, registrations, reference pages
	@$(BIN)/python scripts/generate.py

new-operator: ## write the files of a new operator and its test, such as make new-operator NAME=Softsign
	@scripts/setup.sh test
	@$(BIN)/python scripts/new_operator.py "NAME=$(NAME)" "KIND=$(KIND)" "FROM=$(FROM)" "CODE=$(CODE)"

docs: ## build the documentation site, build/docs/index.html
	@scripts/setup.sh docs
	$(BIN)/sphinx-build -qW --keep-going -b html -d build/docs-state docs build/docs

lock: setup ## update the lock files of examples/ after a change of their models or of compiler output
	@for example in examples/*/mlfbuild.yml; do $(BIN)/mlfbuild lock -f $$example || exit; done

benchmark: ## measure instructions, flash and RAM of the networks in ../shared and compare with committed figures
	@scripts/setup.sh test
	$(BIN)/python benchmarks/instructions.py --jobs $(JOBS)

figures: ## measure all tables of docs/performance.md and docs/memory.md again and write them
	@scripts/setup.sh test
	$(BIN)/python benchmarks/instructions.py --jobs $(JOBS) --update
	$(BIN)/python benchmarks/executors.py --update
	$(BIN)/python benchmarks/records.py --jobs $(JOBS) --update
	$(BIN)/python benchmarks/against_float.py --jobs $(JOBS) --update
	$(BIN)/python benchmarks/ram.py --jobs $(JOBS) --update
	$(BIN)/python benchmarks/memories.py --jobs $(JOBS) --update
	$(BIN)/python benchmarks/parameters.py --jobs $(JOBS) --update

onnx-tests: ## run ONNX's own tests and compare with the committed outcomes; ONLY=test_add* selects some
	@scripts/setup.sh test
	PYTHONPATH=tests $(BIN)/python -m onnx_tests $(if $(ONLY),'$(ONLY)') --jobs $(JOBS)

screenshots: ## regenerate the pictures of docs/images
	@scripts/setup.sh test
	$(BIN)/python scripts/screenshots.py

sweep: ## run the exhaustive tests, and quick tests with the lowest versions of dependencies
	@scripts/setup.sh test
	for each in "--platform win32" "--python-version 3.11" "--python-version 3.12" "--python-version 3.13" \
	    "--python-version 3.14"; do $(BIN)/mypy $$each || exit; done
	MLFBUILD_COLD=1 $(PYTEST) -m sweep
	MLFBUILD_COLD=1 $(PYTEST) -m "not sweep and not fuzz" --hypothesis-profile sweep $(DRAWN) $(COLD)
	scripts/lowest.sh $(LOWEST)
	$(LOWEST)/bin/python -m pytest -n $(JOBS) -m "not sweep and not fuzz" $(QUICK)

fuzz: ## try 100,000 damaged inputs in ten minutes, and build and run models that still compile
	@scripts/setup.sh test
	PYTHONPATH=tests $(BIN)/python -m fuzz.campaign \
	    --inputs $(INPUTS) --seconds $(SECONDS) --builds $(BUILDS) --seed $(SEED) --jobs $(JOBS)
	$(PYTEST) -m fuzz

fuzz-coverage: ## fuzz each parser for SECONDS, guided by coverage (atheris)
	@scripts/setup.sh test
	$(BIN)/python -m pip install --quiet atheris
	@for subject in $(COVERED); do PYTHONPATH=tests $(BIN)/python -m fuzz.coverage $$subject \
	    -max_total_time=$(SECONDS) -artifact_prefix=build/fuzz/$$subject- build/corpus/$$subject || exit; done

faults: ## kill builds, fill disks, remove tools, fetch from hostile servers; some of it needs root
	@scripts/setup.sh test
	PYTHONPATH=tests $(BIN)/python -m faults

release: ## prepare a release, such as make release VERSION=1.2.3: build, check and tag it, publish nothing
	@scripts/setup.sh test
	$(BIN)/python scripts/release.py '$(VERSION)' '$(CHECKS)'

clean: ## remove build results, but not .venv
	rm -rf build dist examples/*/build examples/*/quantized/build examples/*/.sconsign.dblite
	find . -name .venv -prune -o \( -name __pycache__ -o -name '.*_cache' \) -print0 | xargs -0 rm -rf
