"""The graph as Snakemake runs it: `snakemake --cores all`. dvc.yaml states it for DVC.

A new study edits nothing here: the parameter files decide which jobs exist, and each job is a rule of its own, so that
it names its files one by one. Targets: `snakemake` (everything), `snakemake dyck` (one study), or any file under data/.
"""

from pipeline.engine import snakemake as engine

PARAMS = engine.begin(workflow, config)
jobs = engine.Jobs(
    PARAMS
)  # jobs("train"): of each, its name, input, output, log and command


# Only for `snakemake --sdm apptainer`; the software is pinned in requirements.txt.
container: "docker://python:3.11"


rule all:
    input:
        jobs("report")[0].output,


for study in PARAMS.studies:

    rule:
        name:
            study
        input:
            jobs.made(study),


# What generates, computes, analyses, draws or judges: a list column, a formula, a table, a chart, a verdict.
for step in ("dataset", "theory", "figures", "claims", "report"):
    for job in jobs(step):

        rule:
            name:
                job.name
            input:
                job.input,
            output:
                job.output,
            log:
                job.log,
            priority: job.priority
            params:
                command=job.command,
            shell:
                "{params.command}"


for job in jobs("train") + jobs("labels"):

    rule:
        name:
            job.name
        input:
            job.input,
        output:
            job.output,
        log:
            job.log,
        priority: job.priority
        threads: max(1, workflow.cores // 2)  # two at a time: one starts or ends while the other works
        resources:
            gpu=1,
        params:
            command=job.command,
        shell:
            "{params.command}"


for job in jobs("analyse"):

    rule:
        name:
            job.name
        input:
            job.input,
        output:
            job.output,
        log:
            job.log,
        priority: job.priority
        threads: max(1, workflow.cores // 2)  # the last trainings go on beside it
        params:
            command=job.command,
        shell:
            "{params.command}"
