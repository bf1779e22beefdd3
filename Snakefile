"""The graph as Snakemake runs it: `snakemake --cores all`. dvc.yaml states it for DVC.

A new study edits nothing here: params.yaml decides which jobs exist. Targets: `snakemake`
(everything), `snakemake dyck` (one study), or any file under data/."""

from pipeline import engines

PARAMS = engines.begin(workflow, config)
made = engines.Made(
    PARAMS
)  # made("train", study): files of that step; made.code("train", id): its code


wildcard_constraints:
    id=made.ids,


# Only for `snakemake --sdm apptainer`; the software is pinned in requirements.txt.
container: "docker://python:3.11"


rule all:
    input:
        made(),


# In a shell command of this loop an f-string would be read when its job runs, and `study` is the last one by then.
for study in PARAMS.studies:

    rule:
        name:
            study
        input:
            made("figures", study) + made("claims", study),

    rule:
        name:
            f"dataset_{study}"
        input:
            lambda w: made.code("dataset", w.id),
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
            lambda w: made.code("train", w.id),
            lambda w: f"data/datasets/{PARAMS.runs[w.id].study}/{PARAMS.runs[w.id].dataset}.parquet",
        output:
            f"data/runs/{study}/{{id}}/model.safetensors",
            f"data/runs/{study}/{{id}}/curves.parquet",
            f"data/runs/{study}/{{id}}/curves.json",
        log:
            "logs/train-{id}.log",
        threads: max(1, workflow.cores // 2)  # two at a time: one starts or ends while the other works
        resources:
            gpu=1,
        shell:
            "python -m pipeline train {wildcards.id}"

    rule:
        name:
            f"theory_{study}"
        input:
            lambda w: made.code("theory", w.id),
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
            made.code("analyse", study),
            made("dataset", study) + made("train", study),
        output:
            made("analyse", study),
        log:
            f"logs/analyse-{study}.log",
        threads: max(1, workflow.cores // 2)  # the last trainings go on beside it
        params:
            study=study,
        shell:
            "python -m pipeline analyse {params.study}"

    rule:
        name:
            f"figures_{study}"
        input:
            made.code("figures", study),
            made("analyse", study) + made("theory", study),
        output:
            made("figures", study),
        log:
            f"logs/figures-{study}.log",
        params:
            study=study,
        shell:
            "python -m pipeline figures {params.study}"

    rule:
        name:
            f"claims_{study}"
        input:
            made.code("claims", study),
            made("analyse", study) + made("theory", study),
        output:
            made("claims", study),
        log:
            f"logs/claims-{study}.log",
        params:
            study=study,
        shell:
            "python -m pipeline claims {params.study}"


rule report:
    input:
        made.code("report", "all"),
        made("dataset")
        + made("train")
        + made("theory")
        + made("analyse")
        + made("figures")
        + made("claims"),
        engines.references(),
    output:
        "data/report/index.html",
    log:
        "logs/report-all.log",
    shell:
        "python -m pipeline report"
