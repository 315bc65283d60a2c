# Each target first sets up .venv, with uv where it is installed.

.PHONY: demo test check docs pictures bench format clean
.DEFAULT_GOAL := demo

BIN := .venv/bin
READY := .venv/.ready
SERVICES := .venv/.services

demo: $(READY)
	@$(BIN)/python tools/demo.py

test: $(SERVICES)
	@$(BIN)/pytest -n auto --maxschedchunk 2

check: $(READY)
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/python tools/docs.py --check

docs: $(READY)
	@$(BIN)/python tools/docs.py
	@$(BIN)/python tools/console.py
	@$(MAKE) pictures

pictures: $(READY)
	@sh tools/services.sh chromium
	@$(BIN)/python tools/screenshots.py

bench: $(READY)
	@$(BIN)/python -m bench

format: $(READY)
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist

$(READY): pyproject.toml tools/setup.sh
	@sh tools/setup.sh
	@touch $@

# Tried once: what could not be installed is named at the end of every test run.
$(SERVICES): $(READY) tools/services.sh
	@sh tools/services.sh || true
	@touch $@
