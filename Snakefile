"""The graph as Snakemake runs it: `snakemake --cores all`. dvc.yaml states it for DVC.

A new study edits nothing here: params.yaml decides which jobs exist. Targets: `snakemake`
(everything), `snakemake dyck` (one study), or any file under data/."""

from pipeline import engines

PARAMS = engines.begin(workflow, config)
made = engines.Made(PARAMS)  # made("train", study): what that step makes, as files

# Code is an input, as single modules: a neighbour's edit must not rerun a step.
# {fields} are those of the job's entry in params.yaml.
CODE = {
    "dataset": """pipeline/streams.py pipeline/tables.py pipeline/languages/{language}.py
        pipeline/studies/{study}/datasets.py schemas/{study}/datasets.py""",
    "train": """pipeline/streams.py pipeline/tables.py pipeline/checkpoints.py pipeline/languages/{language}.py
        pipeline/models/{model}.py pipeline/training/objectives/{objective}.py
        pipeline/training/core.py pipeline/training/packing.py pipeline/training/ensemble.py
        pipeline/studies/{study}/runs.py schemas/{study}/datasets.py schemas/curves.py""",
    "theory": """pipeline/streams.py pipeline/tables.py pipeline/stats.py schemas/theory.py
        pipeline/languages/{language}.py pipeline/studies/{study}/theory/{module}.py""",
    "analyse": """pipeline/streams.py pipeline/tables.py pipeline/checkpoints.py pipeline/stats.py schemas/curves.py
        pipeline/languages/{language}.py pipeline/models/{model}.py
        pipeline/studies/{study}/analysis.py pipeline/studies/{study}/metrics.py
        schemas/{study}/datasets.py schemas/{study}/tables.py""",
    "figures": """pipeline/tables.py pipeline/charts.py pipeline/results.py
        pipeline/studies/{study}/figures.py schemas/{study}/tables.py schemas/theory.py""",
    "claims": """pipeline/tables.py pipeline/results.py pipeline/verdicts.py schemas/claims.py
        pipeline/studies/{study}/claims.py schemas/{study}/tables.py schemas/theory.py""",
    "report": """pipeline/tables.py pipeline/charts.py pipeline/verdicts.py pipeline/report/page.html.j2
        schemas/claims.py schemas/theory.py""",
}
EVERY = "requirements.txt pipeline/scales.py pipeline/steps/%s.py .sandglass/params/%s-{id}.json "
INPUT = {step: (EVERY.replace("%s", step) + CODE[step]).split() for step in CODE}


wildcard_constraints:
    id=made.ids,


# Only for `snakemake --sdm apptainer`; the software is pinned in requirements.txt.
container: "docker://python:3.11"


rule all:
    input:
        made(),


for study, entry in PARAMS.studies.items():

    rule:
        name:
            study
        input:
            made("figures", study) + made("claims", study),

    rule:
        name:
            f"dataset_{study}"
        input:
            lambda w: expand(INPUT["dataset"], id=w.id, **vars(PARAMS.datasets[w.id])),
        output:
            f"data/datasets/{study}/{{id}}.parquet",
        log:
            "logs/dataset-{id}.log",
        shell:
            "python -m pipeline dataset {wildcards.id}"

    rule:
        name:
            f"train_{study}"
        input:
            lambda w: expand(INPUT["train"], id=w.id, **vars(PARAMS.runs[w.id])),
            lambda w: f"data/datasets/{PARAMS.runs[w.id].study}/{PARAMS.runs[w.id].dataset}.parquet",
        output:
            f"data/runs/{study}/{{id}}/model.safetensors",
            f"data/runs/{study}/{{id}}/curves.parquet",
        log:
            "logs/train-{id}.log",
        threads: workflow.cores
        resources:
            gpu=1,
        shell:
            "python -m pipeline train {wildcards.id}"

    rule:
        name:
            f"theory_{study}"
        input:
            lambda w: expand(INPUT["theory"], id=w.id, **vars(PARAMS.theory[w.id])),
        output:
            f"data/theory/{study}/{{id}}.parquet",
        log:
            "logs/theory-{id}.log",
        shell:
            "python -m pipeline theory {wildcards.id}"

    rule:
        name:
            f"analyse_{study}"
        input:
            expand(INPUT["analyse"], id=study, study=study, **vars(entry)),
            made("dataset", study) + made("train", study),
        output:
            made("analyse", study),
        log:
            f"logs/analyse-{study}.log",
        threads: workflow.cores
        shell:
            f"python -m pipeline analyse {study}"

    rule:
        name:
            f"figures_{study}"
        input:
            expand(INPUT["figures"], id=study, study=study),
            made("analyse", study) + made("theory", study),
        output:
            made("figures", study),
        log:
            f"logs/figures-{study}.log",
        shell:
            f"python -m pipeline figures {study}"

    rule:
        name:
            f"claims_{study}"
        input:
            expand(INPUT["claims"], id=study, study=study),
            made("analyse", study) + made("theory", study),
        output:
            made("claims", study),
        log:
            f"logs/claims-{study}.log",
        shell:
            f"python -m pipeline claims {study}"


rule report:
    input:
        expand(INPUT["report"], id="all"),
        made("theory") + made("analyse") + made("figures") + made("claims"),
        engines.references(),
    output:
        "data/report/index.html",
    log:
        "logs/report-all.log",
    shell:
        "python -m pipeline report"
