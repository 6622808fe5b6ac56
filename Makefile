# Every target makes .venv with what it needs; nothing but Python 3 and a package index is assumed.
PYTHON ?= python3
RUN = .venv/bin/python
INSTALL = $(RUN) -m pip install --quiet --disable-pip-version-check --no-compile

.PHONY: demo test test-app test-oldest docs dist test-sdist clean

demo: .venv/.installed
	$(RUN) -W "ignore:no QP solver" examples/quickstart.py

test: .venv/.installed-test
	.venv/bin/ruff check .
	.venv/bin/mypy
	OMP_NUM_THREADS=1 $(RUN) -m pytest -n 2 --dist worksteal

# The page of `f2ocl app` in Chromium, which has to be there (Debian: apt install chromium).
test-app: .venv/.installed-test
	$(RUN) -m pip install --quiet --disable-pip-version-check -e '.[app]' playwright
	$(RUN) -m pytest tests/app

# The lower bounds of setup.cfg, in a venv of their own.
test-oldest:
	test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test]' -c tests/oldest.txt
	OMP_NUM_THREADS=1 .venv-oldest/bin/python -m pytest -n 2 --dist worksteal $(TESTS)

docs: .venv/.installed
	$(RUN) -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	$(RUN) -m sphinx -W --keep-going -q -b html docs docs/_build
	@echo "docs/_build/index.html"

# The wheel, installed where only its dependencies are, runs the quickstart.
dist: .venv/.installed
	$(RUN) -m pip install --quiet --disable-pip-version-check build twine
	rm -rf dist
	$(RUN) -m build --outdir dist .
	$(RUN) -m twine check --strict dist/*
	rm -rf .venv-dist
	$(PYTHON) -m venv .venv-dist
	echo "$$($(RUN) -c 'import site; print(site.getsitepackages()[0])')" > $$(.venv-dist/bin/python -c 'import site; print(site.getsitepackages()[0])')/libraries.pth
	.venv-dist/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall dist/*.whl
	cd .venv-dist && bin/python ../examples/quickstart.py --train-per-class 20
	cd .venv-dist && bin/f2ocl --help

# The tests that lie in the source distribution, where it is unpacked.
test-sdist: .venv/.installed-test
	rm -rf .sdist
	mkdir .sdist
	tar -xzf dist/*.tar.gz -C .sdist --strip-components 1
	cd .sdist && OMP_NUM_THREADS=1 ../$(RUN) -m pytest -n 2 --dist worksteal $(TESTS)

# --no-compile: Python compiles a module when it is first imported, and most never are.
.venv/.installed: setup.cfg pyproject.toml | .venv/bin/python
	$(INSTALL) -e .
	touch $@

.venv/.installed-test: setup.cfg pyproject.toml | .venv/bin/python
	$(INSTALL) -e '.[test]'
	touch .venv/.installed $@

.venv/bin/python:
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv .venv-oldest .venv-dist .sdist dist docs/_build
