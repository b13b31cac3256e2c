# Everything runs in .venv, which the first command makes and later ones reuse.
PYTHON ?= python3
RUN := .venv/bin/python

# What was moved, interrupted or lost its Python is installed again: without its stamp it is not there.
ifneq ($(wildcard .venv/installed),)
  ifneq ($(shell $(RUN) scripts/install.py --check 2> /dev/null && echo whole),whole)
    $(shell rm -f .venv/installed)
  endif
endif

# A program that is not there is said in one line.
PYTHON_IS_THERE = command -v "$(PYTHON)" > /dev/null || { echo "error: there is no $(PYTHON) here:" \
  "install Python 3.11 or newer, or name another one (make PYTHON=python3.12)" >&2; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help book lab pdf serve check test weekly stable versions notebooks bench lint pins clean

# What is compiled is kept, whatever the machine says: else each of many processes compiles it again.
unexport PYTHONDONTWRITEBYTECODE

# All processors (see conftest.py), and each file in one process: a file makes once what its tests share.
PYTEST := $(RUN) -m pytest --numprocesses logical --dist loadfile --no-loadscope-reorder

help:  ## list these commands
	@sed -n 's/^\([a-z]*\):.*## /  make \1|/p' Makefile | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

book: .venv/installed  ## build the book; every warning is an error
	@rm -rf _build
	@.venv/bin/jupyter-book build -W -n --keep-going --quiet .

lab: .venv/installed-lab  ## open your own copies of the chapters, in JupyterLab
	@$(RUN) scripts/lab.py

pdf: .venv/installed  ## print the whole book to one PDF (needs Chromium)
	@$(RUN) -m scripts.pdf

serve: .venv/installed  ## show the book on localhost and rebuild it when a file changes
	@$(RUN) scripts/serve.py

check: .venv/installed  ## run the quick tests: library, exercises, notebooks, structure
	@$(PYTEST) -m "not (again or pages or machine or weekly or rebuild)"

test: .venv/installed  ## run every test: also the built book, a browser, the installation
	@$(PYTEST)

weekly: .venv/installed-lab  ## run what takes long and seldom finds anything (tests/README.md)
	@$(PYTEST) -m weekly
	@$(PYTEST) chapters --costly inf

stable: .venv/installed  ## run the notebooks on other CPU kernels: the stored outputs must hold
	@for cpu in default avx2; do echo "CPU kernels: $$cpu"; \
	  ATEN_CPU_CAPABILITY=$$cpu MKL_CBWR=COMPATIBLE OPENBLAS_CORETYPE=Haswell \
	  $(RUN) -m pytest --quiet chapters || exit 1; done

versions:  ## run the library's tests on the lowest and newest versions, on each Python
	@$(PYTHON_IS_THERE)
	@"$(PYTHON)" scripts/versions.py

notebooks: .venv/installed  ## run all notebooks and store their outputs
	@$(RUN) -m scripts.counts
	@$(RUN) scripts/notebooks.py

bench: .venv/installed .peers/installed  ## measure beside other libraries; write the page "Measured"
	@$(RUN) -m benchmarks.measure

lint: .venv/installed  ## check style and types
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy

pins:  ## write requirements.txt from requirements.in, in a fresh environment
	@$(PYTHON_IS_THERE)
	@"$(PYTHON)" scripts/install.py --pins

clean:  ## remove the built book and all caches, but not .venv
	@rm -rf _build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name .venv -prune -o -name __pycache__ -type d -exec rm -rf {} +

.venv/installed: requirements.txt pyproject.toml scripts/install.py
	@$(PYTHON_IS_THERE)
	@"$(PYTHON)" scripts/install.py

.venv/installed-lab: .venv/installed requirements-lab.txt
	@$(RUN) scripts/install.py --lab

.peers/installed: .venv/installed requirements-bench.txt
	@$(RUN) scripts/install.py --bench
