"""Step ``report``: the site in ``data/report/``, read from disk and offline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.report import site

if TYPE_CHECKING:
    from pipeline.engine.runner import Job


def run(job: Job) -> None:
    """Make ``data/report/``: pages, stylesheet, scripts, and the figures that they show."""
    assert job.params is not None
    job.say(f"{site.build(job.params, job.out)} pages")
