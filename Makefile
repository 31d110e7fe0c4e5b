# What a newcomer types.  Works with GNU make 3.81 (macOS) and newer; another Python: make PYTHON=python3.12 test

PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python
PIP = $(RUN) -m pip install --quiet --disable-pip-version-check -c constraints.txt
DEMO_READY = $(VENV)/.ready-demo
TEST_READY = $(VENV)/.ready-test
DOCS_READY = $(VENV)/.ready-docs
# Four processes of tests: on two processors they take two thirds of the time of two, since many tests wait for a process.
PYTEST = $(RUN) -m pytest -n 4 --dist worksteal
unexport PYTHONDONTWRITEBYTECODE  # without byte code every process that a test starts would read all sources anew

.PHONY: help demo test slow robustness formats frameworks notebooks figures docs lint format clean

help:
	@echo "make demo       run three loops on a real local model and compare them (6 to 10 minutes, 1.1 GB once)"
	@echo "make test       run the tests of every day, with the network forbidden (2 to 5 minutes)"
	@echo "make slow       run the tests that are long by nature"
	@echo "make robustness  put the robustness cases to other projects in environments of their own"
	@echo "make notebooks  execute the notebooks on recorded results"
	@echo "make figures    derive every figure of the README from the committed rows again"
	@echo "make docs       build the documentation as a site, into site/; open site/index.html"
	@echo "make lint       format check, linter, types"
	@echo "make format     apply the format"
	@echo "make clean      remove .venv and what tools left (not the models, not runs/)"

demo: $(DEMO_READY)
	@$(VENV)/bin/rlm-loop demo

# TESTS chooses: make TESTS="tests/study tests/repl" test.  Tests of what EXTRAS does not bring are skipped.
TESTS ?=
EXTRAS ?= local,litellm,studies,suites,notebooks,kernel,restricted,localise,mcp,otel
GROUP ?= dev
test: $(TEST_READY)
	@$(VENV)/bin/rlm-loop models pull smollm2-135m
	$(PYTEST) -m "not slow" $(TESTS)

# Tests that are long by nature (many cases, many processes, a whole site); `make test` leaves them out.
slow: $(TEST_READY)
	@$(RUN) -c 'from rlm_loop.tasks.package_bugs import recorded as r; from rlm_loop.tasks.sdists import pull; [pull(p) for p in {b.package for b in r()} if p.name in ("inflection", "xmltodict")]' || echo "their tests will be skipped"
	$(PYTEST) -m slow $(or $(TESTS),$(shell grep -rl 'mark\.slow' tests --include='test_*.py'))

# The robustness cases on other projects' interpreters, each in an environment of its own; writes its column of
# tests/robustness/results.csv.  make PEERS=rlms robustness
PEERS ?= rlms smolagents dspy_local mellea
robustness: $(TEST_READY)
	@set -e; for peer in $(PEERS); do project=$${peer%%_*}; \
	  $(RUN) -m venv .venv-peers/$$project; \
	  .venv-peers/$$project/bin/python -m pip install --quiet -r experiments/peers/constraints/$$project.txt; \
	  .venv-peers/$$project/bin/python tests/robustness/run.py $$peer; done; \
	$(RUN) tests/robustness/run.py

# Against the packages of the tools whose files we read and write, which no test of every day needs.
formats: $(TEST_READY)
	@$(PIP) inspect-ai==0.3.285 lm-eval==0.4.13
	$(PYTEST) tests/formats/test_inspect.py tests/formats/results/test_read_results.py tests/tasks/test_hub.py

# Agents of other projects as arms of a study; a skip is a failure here.
FRAMEWORKS ?= smolagents[openai]==1.26.0 dspy==3.4.1 rlms==0.1.3 mini-swe-agent==2.4.6
frameworks: $(TEST_READY)
	@$(PIP) $(FRAMEWORKS)
	FRAMEWORKS="$(FRAMEWORKS)" $(PYTEST) tests/meter/test_framework_arms.py tests/test_user_scripts.py

notebooks: $(TEST_READY)
	$(RUN) tests/run_notebooks.py notebooks

figures: $(TEST_READY)
	$(RUN) experiments/harness_tax/figures.py
	$(RUN) experiments/answer_contract/headline.py

docs: $(DOCS_READY)
	@NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict --quiet
	@echo "the site is in site/: open site/index.html"

lint: $(TEST_READY)
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/basedpyright

format: $(TEST_READY)
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

clean:
	rm -rf $(VENV) .venv-other .venv-uv .venv-peers .pytest_cache .ruff_cache .hypothesis build dist site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: Python 3.11 or newer is needed, $(PYTHON) is not (or is not there): make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@$(PIP) "pip>=25.1"  # older ones do not know dependency groups

$(DEMO_READY): pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing what the demo needs into $(VENV) ..."
	@$(PIP) -e ".[local,studies,suites]"
	@touch $@

$(TEST_READY): pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing what the tests need into $(VENV) ..."
	@$(PIP) -e ".[$(EXTRAS)]" --group $(GROUP)
	@$(RUN) -m pytest --collect-only -q $(TESTS) >/dev/null 2>&1 || true  # byte code, once and not in each process
	@touch $@ $(DEMO_READY)

$(DOCS_READY): pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing what the documentation needs into $(VENV) ..."
	@$(PIP) -e ".[studies]" --group docs
	@touch $@
