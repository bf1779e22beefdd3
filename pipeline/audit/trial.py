"""``make try``: one study at scale smoke, in a folder of its own, so that nothing here changes.

The folder is kept, and a second call continues there.
"""

from __future__ import annotations

import contextlib
import shutil

from ruamel.yaml import YAML

from pipeline import params
from pipeline.audit.rebuild import lay_out
from pipeline.engine import build, graph
from pipeline.params.scales import SCALES
from pipeline.store.paths import REFERENCE

FOLDER = graph.STATE / "try"


def build_once(study: str) -> int:
    """Build ``study`` at the smallest scale in `FOLDER`; return the exit status of the build.

    Raises SandglassError for a study that params.yaml does not list.
    """
    loaded = params.load()
    graph.check_study(study, loaded, "try: ")
    build.say(f"{study} at scale {SCALES[0]}, in {FOLDER}: parameters, records and results here stay as they are")
    lay_out(FOLDER)
    # Results of larger scales would have to be fetched.
    shutil.rmtree(FOLDER / REFERENCE, ignore_errors=True)
    (FOLDER / REFERENCE).mkdir(parents=True)
    header = loaded.raw[params.FILE] | {"scale": SCALES[0], "studies": [study]}
    with (FOLDER / params.FILE).open("w", encoding="utf-8") as file:
        YAML(typ="safe").dump(header, file)
    with contextlib.chdir(FOLDER):
        outcome = build.build()
    if outcome.status:
        build.say(f"files that are named above lie in {FOLDER}")
    else:
        ran = (
            f"{len(outcome.done)} jobs ran, in {build.duration(outcome.seconds)}" if outcome.planned else "done before"
        )
        build.say(f"{ran}; scale {SCALES[0]} judges no claim: look at the pages, {FOLDER / graph.REPORT_PAGE}")
        build.say(f"the study at its own scale: make reproduce STUDY={study}")
    return outcome.status
