# Two commands: `make reproduce` and `make test`. Everything they need comes from PyPI by name.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# What reads and audits results needs no torch: a clone without an environment gets a small one.
READER := $(if $(wildcard $(VENV)/.stamp),$(VENV),.venv-audit)
RIGHT_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Sandglass needs Python 3.11 or newer")'
export PATH := $(CURDIR)/$(BIN):$(PATH)
.PHONY: help env reproduce try look test lint site audit bench kill soak cluster rounding advisories clean
.DEFAULT_GOAL := help

help:  ## what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

env: $(VENV)/.stamp  ## the pinned environment, in .venv

# Scripts of an environment name the folder that it was made in: in one that was moved it is set up anew.
$(shell for each in $(VENV) .venv-audit; do \
	made=$$(cat $$each/.stamp 2>/dev/null); [ "$${made:-$$PWD}" = "$$PWD" ] || rm -f $$each/.stamp; done)

$(VENV)/.stamp: requirements.txt requirements-dev.txt constraints.txt pyproject.toml
	$(RIGHT_PYTHON)
	@echo "setting up $(VENV), once: fetching and installing the pinned packages (2 GB on disk) takes two to three minutes"
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r requirements.txt
	@echo "the libraries of the pipeline are installed; now what tests and linters need"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m pipeline params --write > /dev/null  # schemas for editors, which git does not keep
	@echo "$(VENV) is ready"
	@pwd > $@

.venv-audit/.stamp: requirements-audit.txt constraints.txt
	$(RIGHT_PYTHON)
	@echo "setting up .venv-audit, once: fetching and installing what an audit needs takes half a minute"
	$(PYTHON) -m venv --clear .venv-audit
	.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r requirements-audit.txt
	@pwd > $@

reproduce: env  ## rebuild every result at the scale of params.yaml, record it with DVC, summarise
	@python -m pipeline build $(STUDY)

try: env  ## a first look: one study at the smallest scale, in a folder of its own, in about a minute; STUDY=nce
	@python -m pipeline try $(STUDY)

lint: env  ## formatters, linters and types
	ruff format --check .
	ruff check .
	mypy
	snakefmt --check Snakefile
	snakemake --lint

look: $(READER)/.stamp  ## the site, drawn from the results that the repository holds: two minutes, no torch
	@dvc pull --quiet --allow-missing
	@python -m pipeline report --from-store

test: env lint  ## environment, linters, tests; STUDY=dyck: those of one study; SLOW=1: those that take long as well
	PYTHONDONTWRITEBYTECODE= pytest -n 4 --dist loadgroup --no-loadscope-reorder \
		$(if $(STUDY),--study $(STUDY)) $(if $(SLOW),,-m "not slow")

look site audit: export PATH := $(CURDIR)/$(READER)/bin:$(PATH)

site: $(READER)/.stamp  ## the report as one archive that opens from disk: sandglass-site.zip
	@test -f data/report/index.html || python -m pipeline report --from-store
	python -m zipfile -c sandglass-site.zip data/report/

audit: $(READER)/.stamp  ## fetch what is published and check it, without training anything
	@# DVC does not say what stops it when it is told to be quiet about results that are never published.
	@dvc pull --quiet --allow-missing || { echo "dvc pull stopped: \`dvc pull --allow-missing\` says why; where tables or figures here are recorded nowhere, \`--force\` replaces them" >&2; exit 1; }
	@python -m pipeline audit

bench: env  ## speed beside the plainest way to do the same; writes benchmarks/RESULTS.md
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r requirements-bench.txt
	python benchmarks/bench.py

kill: env  ## SIGKILL at random moments, fifty times: does the next run end the same? writes benchmarks/KILL.md
	python benchmarks/kill.py

soak: env  ## both engines under random use, kills, flipped bytes, broken parameters; sequences=100; writes benchmarks/SOAK.md
	python benchmarks/soak.py $(foreach part,sequences kills flips parameters,$(if $($(part)),--$(part) $($(part))))

cluster: env  ## studies built by SLURM on this machine, and what goes wrong there; writes benchmarks/CLUSTER.md
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -r requirements-slurm.txt
	python benchmarks/cluster.py

rounding: env  ## what rounding alone does to the claims: all trainings again from other last bits; writes profiles/rounding.json
	python benchmarks/rounding.py

# Every pin is asked about by itself, and --strict fails for one that the service does not know. A service that answers
# and knows of nothing would pass as "no known vulnerabilities": it is asked first about a version that has some.
AUDIT := pip-audit --no-deps --disable-pip --progress-spinner off
advisories: env  ## known vulnerabilities of the pinned packages; asks the advisory service of pip-audit
	@echo 'jinja2==2.4.1' > $(VENV)/known.txt; $(AUDIT) -r $(VENV)/known.txt 2>&1 | grep -q '^jinja2' || { \
		echo "advisories: the service does not answer, or knows of no vulnerability of jinja2 2.4.1: nothing was asked" >&2; exit 1; }
	$(AUDIT) --strict $(addprefix -r ,$(wildcard requirements*.txt) constraints.txt)

clean:  ## forget the environment and resumable work; results and DVC's cache stay
	rm -rf $(VENV) .venv-audit .work .snakemake .sandglass logs
