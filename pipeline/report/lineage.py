"""The lineage of a job as a drawing: what it was made from, and what is made from it."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.engine import graph
from pipeline.params import Params

_COLUMN = {"dataset": 0, "theory": 1, "train": 1, "labels": 1, "analyse": 2, "figures": 3, "claims": 3}
_LABEL = {"analyse": "tables of {}", "figures": "figures of {}", "claims": "claims of {}"}
_LONGEST = 34  # characters of a label
LETTER, PADDING, ROW, GAP, HEIGHT = 7.25, 9.0, 26, 56, 20  # pixels


@dataclass(frozen=True)
class Node:
    """A job as a box: its upper left corner and size in pixels."""

    job: graph.Job
    label: str
    x: float
    y: float
    width: float
    own: bool


@dataclass(frozen=True)
class Drawing:
    """Boxes and the curves between them."""

    nodes: list[Node]
    edges: list[str]
    width: float
    height: float


class Lineage:
    """Parents and children of every job but the report, which reads everything."""

    def __init__(self, params: Params) -> None:
        jobs = [job for job in graph.jobs(params) if job.step != "report"]
        self.parents = {job: graph.parents(job, params) for job in jobs}
        self.children: dict[graph.Job, list[graph.Job]] = {job: [] for job in jobs}
        for job, parents in self.parents.items():
            for parent in parents:
                self.children[parent].append(job)

    def draw(self, job: graph.Job) -> Drawing:
        """Draw ``job``, all that it descends from and all that descends from it, a column for each kind of step."""
        shown = {job} | _closure(job, self.parents) | _closure(job, self.children)
        columns: dict[tuple[int, int], list[graph.Job]] = {}
        for each in self.parents:  # in the order of the graph
            if each in shown:
                columns.setdefault((_COLUMN[each.step], self._lesson(each)), []).append(each)
        tallest = max(map(len, columns.values()))
        nodes, x = {}, 1.0
        for _, column in sorted(columns.items()):
            labels = [_label(each) for each in column]
            width = max(map(len, labels)) * LETTER + 2 * PADDING
            top = (tallest - len(column)) * ROW / 2 + 2
            for i, (each, label) in enumerate(zip(column, labels, strict=True)):
                nodes[each] = Node(each, label, x, top + i * ROW, width, each == job)
            x += width + GAP
        edges = [
            _curve(nodes[parent], nodes[child]) for child in nodes for parent in self.parents[child] if parent in nodes
        ]
        return Drawing(list(nodes.values()), edges, x - GAP + 1, tallest * ROW)

    def _lesson(self, job: graph.Job) -> int:
        """Return how many trainings and answers of models lie one after another before ``job``, itself a training or
        answers; 0 of other jobs."""
        if job.step not in ("train", "labels"):
            return 0
        before = [parent for parent in self.parents[job] if parent.step in ("train", "labels")]
        return 1 + max(map(self._lesson, before)) if before else 0


def _closure(job: graph.Job, step: dict[graph.Job, list[graph.Job]]) -> set[graph.Job]:
    jobs: set[graph.Job] = set()
    new = set(step[job])
    while new:
        jobs |= new
        new = {far for near in new for far in step[near]} - jobs
    return jobs


def _label(job: graph.Job) -> str:
    text = _LABEL.get(job.step, "{}").format(job.id)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _curve(first: Node, second: Node) -> str:
    """Return an SVG path from the right side of one box to the left side of another."""
    x0, y0 = first.x + first.width, first.y + HEIGHT / 2
    x1, y1 = second.x, second.y + HEIGHT / 2
    middle = (x0 + x1) / 2 if x1 - x0 < 2 * GAP else x1 - GAP / 2
    return f"M{x0:g},{y0:g}C{middle:g},{y0:g} {middle:g},{y1:g} {x1:g},{y1:g}"
