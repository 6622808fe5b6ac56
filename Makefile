# Every target makes .venv with what it needs; nothing but Python 3 and a package index is assumed.
PYTHON ?= python3
RUN = .venv/bin/python

.PHONY: demo test clean

demo: .venv/.installed
	$(RUN) examples/quickstart.py

test: .venv/.installed-test
	.venv/bin/ruff check .
	OMP_NUM_THREADS=1 $(RUN) -m pytest -n 2

.venv/.installed: setup.cfg pyproject.toml
	test -x $(RUN) || $(PYTHON) -m venv .venv
	$(RUN) -m pip install --quiet --disable-pip-version-check -e .
	touch $@

.venv/.installed-test: .venv/.installed
	$(RUN) -m pip install --quiet --disable-pip-version-check -e '.[test]'
	touch $@

clean:
	rm -rf .venv
