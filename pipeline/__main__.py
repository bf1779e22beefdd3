"""The command line: ``python -m pipeline <step> <id>``. Both engines call exactly this."""

from __future__ import annotations

import codecs
import io
import signal
import sys
from pathlib import Path
from typing import Annotated

from pipeline.engine import preload

if __name__ == "__main__":
    preload.ask(sys.argv[1:])  # ends here where a process answers that has loaded the libraries

from pipeline.errors import FULL, NOT_WRITABLE, SandglassError, UnknownNameError, in_words

try:
    import typer
except ModuleNotFoundError as error:
    sys.exit(
        f"sandglass: {sys.executable} has no {error.name}: `. .venv/bin/activate` in a clone of Sandglass, "
        "where `make env` has made the environment"
    )

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Sandglass: reproduce the sandbox studies of how Transformers learn. "
    "`snakemake --cores all` runs every step below in order; by hand they run one at a time.",
    epilog="Exit status: 0 done, and all agrees; 1 a step failed, or something does not agree (one line says what); "
    "2 the command could not be carried out: wrong usage, an unknown name, a damaged file; 3 something could not be "
    "checked, as it is not here or a tool refused (trace, audit); 4 rebuilt, not identical and not different (trace); "
    "130 interrupted.",
)
Key = Annotated[str, typer.Argument(metavar="ID", help="an id of params/<study>/")]

WHAT = "a figure, table, claim, id, study, stage or file (see trace)"
AsJson = Annotated[bool, typer.Option("--json", help="for programs")]


def _step(name: str, key: str) -> None:
    from pipeline.engine.runner import run_step

    try:
        run_step(name, key)
    except UnknownNameError:
        raise
    except SandglassError as error:
        print(f"sandglass: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    except KeyboardInterrupt:
        print(f"sandglass: {name} {key}: interrupted; run the same command again to continue", file=sys.stderr)
        raise typer.Exit(130) from None


@app.command()
def dataset(key: Key) -> None:
    """Generate a dataset and its variants (Parquet)."""
    _step("dataset", key)


@app.command()
def train(
    key: Key,
    export: Annotated[
        Path | None, typer.Option(metavar="DIR", help="write the jobs and a trainer there instead, for another machine")
    ] = None,
    take: Annotated[
        Path | None, typer.Option("--import", metavar="DIR", help="take the weights that another machine trained there")
    ] = None,
) -> None:
    """Train a run: all variants with all their replicas. Resumes where a killed one stopped.

    For a GPU elsewhere: --export DIR, there `python trainer.pyz`, and back here --import DIR, which ends as if the run
    had been trained here.
    """
    from pipeline.engine import build, portable

    if export is not None and take is not None:
        raise SandglassError("train: --export or --import, not both")
    if export is not None:
        members = portable.export(key, export)
        print(f"{export} holds {len(members)} job(s) of {key}; on the other machine: python {portable.TRAINER}")
    elif take is not None:
        members = portable.take(key, take)
        print(f"{len(members)} member(s) of {key} are trained; now they are stored")
        raise typer.Exit(build.one("train", key))
    else:
        _step("train", key)


@app.command(hidden=True)
def worker(device: str, jobs: list[str]) -> None:
    """Train chunks of job files for a step ``train``, which ends this process where it does not end by itself."""
    if device not in ("cpu", "cuda") or not jobs[0].endswith(".safetensors"):
        raise typer.BadParameter("a worker is started by a step train, with a device, job files and chunks")
    from pipeline.engine import preload
    from pipeline.training import core

    preload.keep_large_blocks()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the step, which ends its workers in order
    core.main([device, *jobs])


@app.command()
def labels(key: Key) -> None:
    """Let the models of a run answer, for others to learn from (Parquet)."""
    _step("labels", key)


@app.command()
def theory(key: Key) -> None:
    """Execute a theorem or closed form: one row per check."""
    _step("theory", key)


@app.command()
def analyse(key: Key) -> None:
    """Turn the runs of an experiment into result tables."""
    _step("analyse", key)


@app.command()
def figures(key: Key) -> None:
    """Draw the figures of an experiment."""
    _step("figures", key)


@app.command()
def judge(key: Key) -> None:
    """Judge the claims of a study."""
    _step("claims", key)


@app.command()
def report(
    from_store: Annotated[
        bool, typer.Option("--from-store", help="from what lies here, after `dvc pull --allow-missing`")
    ] = False,
) -> None:
    """Render the report."""
    if not from_store:
        return _step("report", "all")
    from pipeline import params
    from pipeline.report import site

    pages = site.build_from_store(params.load())
    print(f"{pages} pages: open data/report/index.html")


@app.command()
def picture(
    figure: Annotated[Path, typer.Argument(metavar="FIGURE", help="data/figures/…/NAME.vl.json")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="where to write the PNG")],
) -> None:
    """Draw a figure as a PNG: its files are a specification, data and SVG."""
    from pipeline.report import figures

    figures.picture(figure, file)


@app.command()
def check() -> None:
    """Validate the parameter files at every scale and the installed software; write nothing."""
    from pipeline import params
    from pipeline.engine import graph
    from pipeline.engine.software import check_software

    loaded = params.load()
    check_software(Path())
    read = [params.FILE, *(f"{params.FOLDER}/{study}/" for study in loaded.studies)]
    print(f"{', '.join(read)}: valid; scale {loaded.scale}, {len(graph.jobs(loaded))} jobs")


@app.command()
def params(
    study: Annotated[str | None, typer.Argument(metavar="[STUDY]", help="a study of params.yaml")] = None,
    scale: Annotated[
        str | None, typer.Option(help="smoke, quick, long or paper; without it, that of params.yaml")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="bring what is derived from them up to date")] = False,
) -> None:
    """Print all parameters, or a study's, resolved at a scale, as one YAML document."""
    from pipeline.audit import specification

    if write:
        specification.write()
    else:
        sys.stdout.write(specification.document(study, scale))


@app.command()
def readme(write: Annotated[bool, typer.Option("--write", help="bring them up to date")] = False) -> None:
    """Say whether README.md and docs/ tell what parameters and results are today; end with status 1 if not."""
    from pipeline.audit.readme import run

    if not run(written=write):
        raise typer.Exit(1)


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="small letters and digits, for instance copy2")],
) -> None:
    """Make a new study that builds at once: language, dataset, run, theory check, table, figure, claim, page, tests."""
    from pipeline.audit import specification
    from pipeline.scaffold.new import create

    for path in create(name):
        print(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
    specification.write()
    readme(write=True)
    print(f"now: snakemake --cores all {name} (at scale smoke in seconds), and pytest tests/{name}")


@app.command()
def build(
    study: Annotated[str | None, typer.Argument(metavar="[STUDY]", help="build this one, with its page")] = None,
) -> None:
    """Build everything that is not up to date with Snakemake, on one line of progress, and say how it ended.

    Of one study its page is drawn as well. Other studies are left as they lie here; if they are not up to date, the
    report is drawn from what is here and says so.
    """
    from pipeline.audit import summary
    from pipeline.engine import build as engine

    outcome = engine.build(study)
    if not outcome.status:
        outcome = summary.finish(outcome, study)
    raise typer.Exit(outcome.status)


@app.command(name="try")
def try_(study: Annotated[str, typer.Argument(metavar="[STUDY]", help="a study of params.yaml")] = "nce") -> None:
    """Build one study at scale smoke in a folder of its own, in about a minute; nothing here changes."""
    from pipeline.audit.trial import build_once

    raise typer.Exit(build_once(study))


@app.command()
def summary() -> None:
    """Say what is here, what failed, how the claims stand, and what to type next."""
    from pipeline.audit.summary import summarise

    summarise()


@app.command()
def why(
    name: Annotated[str | None, typer.Argument(metavar="[X]", help=WHAT)] = None,
    json: AsJson = False,
    check: Annotated[bool, typer.Option(help="end with status 1 if X is not up to date")] = False,
) -> None:
    """Say why X would be built again: the parameter, file or code that changed, old → new."""
    from pipeline.audit.why import explain

    if not explain(name, as_json=json) and check:
        raise typer.Exit(1)


@app.command(name="list")
def list_(
    study: Annotated[str | None, typer.Argument(metavar="[STUDY]", help="a study of params.yaml")] = None,
    every: Annotated[bool, typer.Option("--all", help="a line for every job")] = False,
    json: AsJson = False,
) -> None:
    """List what exists: fresh, stale, missing, reference sets; disk; what it costs to bring it up to date."""
    from pipeline.audit.listing import show

    show(study, every=every, as_json=json)


@app.command()
def prune(
    delete: Annotated[bool, typer.Option("--yes", "--delete", help="delete; without it, only show")] = False,
    work: Annotated[bool, typer.Option("--work", help="checkpoints of unfinished training too")] = False,
    cache: Annotated[bool, typer.Option("--cache", help="what DVC keeps of older results too")] = False,
    json: AsJson = False,
) -> None:
    """Show the disk that old artifacts and caches use; delete nothing without --yes."""
    from pipeline.audit.upkeep import prune as run

    run(delete=delete, work=work, cache=cache, as_json=json)


@app.command()
def accept(
    reason: Annotated[str, typer.Option(help="why the edit changes no result")],
    name: Annotated[str | None, typer.Argument(metavar="[X]", help=WHAT)] = None,
    every: Annotated[bool, typer.Option("--all", help="for all that was made by the edited code")] = False,
    prove: Annotated[
        bool, typer.Option("--prove", help="run the jobs again in a scratch folder; accept what comes out identical")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only show the edit")] = False,
) -> None:
    """Declare, or prove, that edits of code since X was built change no result of X; logged in accepted.jsonl."""
    from pipeline.audit.accept import accept as run

    if (name is None) != every:
        raise SandglassError("accept: name what the edit does not change, or say --all")
    run(name, reason, dry_run=dry_run, proved=prove)


@app.command()
def reference(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="a study of params.yaml")],
    clone: Annotated[Path, typer.Argument(metavar="CLONE", help="the work tree in which it was built")],
    name: Annotated[
        str | None, typer.Option(metavar="SET", help="of the set, where a study has several; without it STUDY")
    ] = None,
) -> None:
    """Freeze the results of STUDY, built in another clone (scale paper), as data/reference/SET."""
    from pipeline.references.importing import freeze

    folder = freeze(study, clone, name)
    print(f"{folder} is in DVC's cache; now: git add {folder.parent} && dvc push && snakemake --cores all")


@app.command()
def export(
    study: Annotated[str, typer.Argument(metavar="STUDY", help="for instance dyck")],
    name: Annotated[str, typer.Argument(metavar="TABLE", help="a result table, claims, theory, curves, a dataset")],
    experiment: Annotated[
        str | None, typer.Option(metavar="ID", help="its rows alone, where several make the table")
    ] = None,
    reference: Annotated[
        str | None, typer.Option(metavar="SET", help="from a reference set, for instance dyck-part2")
    ] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="where to write; without it, stdout")] = None,
) -> None:
    """Print a table as CSV, or write it to a file (in Python: pipeline.load_table)."""
    from pipeline import access

    text = access.to_csv(access.load_table(study, name, experiment=experiment, reference=reference or False))
    if csv is None:
        sys.stdout.write(text)
    else:
        access.write_text(csv, text)


@app.command()
def claims(
    study: Annotated[str | None, typer.Argument(metavar="[STUDY]", help="a study of params.yaml")] = None,
    named: Annotated[str | None, typer.Option("--study", metavar="STUDY", help="the same as an option")] = None,
    verdict: Annotated[
        str | None, typer.Option(help="holds, undecided, contradicted in part, contradicted, too few models or not run")
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="what is not decided yet, and what would decide it")] = False,
    json: AsJson = False,
) -> None:
    """Show the published claims and how each stands: this build and the reference sets, the best evidence first."""
    from pipeline.audit.claims import show_all, show_open

    if study is not None and named is not None:
        raise typer.BadParameter("name one study, as an argument or with --study")
    if open_ and verdict is not None:
        raise typer.BadParameter("--open or --verdict, not both")
    which = named if study is None else study
    if open_:
        show_open(which, as_json=json)
    else:
        show_all(which, verdict, as_json=json)


@app.command()
def show(
    claim: Annotated[str, typer.Argument(metavar="STUDY:NUMBER", help="for instance dyck:5")], json: AsJson = False
) -> None:
    """Show one claim: what it says, each gate that tests it, what was measured, and what reference sets found."""
    from pipeline.audit.claims import show as run

    run(claim, as_json=json)


@app.command()
def audit(
    recompute: Annotated[
        bool,
        typer.Option(
            "--recompute",
            help="compute again, from the parameters, what has no training behind it: theory, some tables, datasets",
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Check all that is published, without training: md5s, code, parameters; claims and figures made again.

    ✓ agrees; ✗ does not agree, one line for each thing; ⚠ was not proved; ? could not be checked.

    Exit status: 0 all agrees, though something may not be proved; 1 something does not agree; 2 not carried out; 3 what
    was checked agrees, and something could not be checked.
    """
    from pipeline.audit.inspection import run

    raise typer.Exit(run(as_json=json, recompute=recompute))


@app.command()
def trace(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help="figures, tables (fig3; dyck/fig3; dyck/EXPERIMENT/fig3), claims (dyck:9), ids of entries and of "
            "variants, studies, stages, report, files",
        ),
    ],
    verify: Annotated[bool, typer.Option("--verify", help="hash everything on the way again")] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="build the chain again in a scratch workspace and compare")
    ] = False,
    keep_runs: Annotated[
        bool, typer.Option("--keep-runs", help="with --rebuild: take datasets and checkpoints from here")
    ] = False,
    train: Annotated[
        bool, typer.Option("--train", help="with --keep-runs: train what is not here, or not as recorded")
    ] = False,
    workspace: Annotated[
        Path | None, typer.Option(help="with --rebuild: a folder that is kept, and continued next time")
    ] = None,
    code: Annotated[bool, typer.Option("--code", help="list the files of code, with md5s")] = False,
    full: Annotated[bool, typer.Option("--full", help="each job, file and parameter by itself, however many")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object (see pipeline/audit/trace.py)")] = False,
) -> None:
    """Follow results back to parameters and code; verify them; build them again and compare.

    Exit status:

    0  everything matches; identical

    1  something does not match; different

    2  the command could not be carried out (unknown name, a failed step)

    3  nothing is wrong, but something is not here, so it was not checked or not compared

    4  rebuilt: equal within tolerance, or moved inside intervals, as on another processor
    """
    from pipeline.audit.trace import trace

    if (keep_runs or workspace) and not rebuild:
        raise typer.BadParameter("--keep-runs and --workspace go with --rebuild")
    if train and not keep_runs:
        raise typer.BadParameter("--train goes with --keep-runs")
    try:
        status = trace(
            names,
            verified=verify,
            rebuilt=rebuild,
            keep_runs=keep_runs,
            train=train,
            workspace=workspace,
            as_json=as_json,
            code=code,
            full=full,
        )
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    raise typer.Exit(status)


def main() -> None:
    """Run the command line; what the user can act on ends it with one line."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name != "utf-8":
            stream.reconfigure(errors="replace")  # a terminal that knows no ✓ shows something else in its place
    # Where it is installed, pandera imports it to make up data, which no command does: a quarter second a start.
    sys.modules.setdefault("hypothesis", None)  # type: ignore[arg-type]
    try:
        app()
    except SandglassError as error:
        sys.exit(_refuse(str(error)))
    except OSError as error:
        if error.errno not in (*FULL, *NOT_WRITABLE):
            raise
        sys.exit(_refuse(in_words(error)))


def _refuse(text: str) -> int:
    """Say in a line why a command could not be carried out; return its exit status."""
    print(f"sandglass: {text}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    try:
        main()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done and said: what is left is the end of Python
