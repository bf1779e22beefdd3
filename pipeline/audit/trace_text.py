"""The answer of `trace` for people: a header, a tree, what does not match, and the verdicts."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from pipeline.audit import verify
from pipeline.audit.claims import published
from pipeline.audit.compare import DIFFERENT, IDENTICAL, INSIDE, NOT_COMPARED, WITHIN
from pipeline.audit.elsewhere import Yardstick
from pipeline.engine.build import duration

SHOWN = 6  # of many names
ALONE = 3  # jobs of one step that are drawn one by one
LONGEST = 180  # characters of parameters, two lines
PIPED_WIDTH = 120
STATE = {verify.MISMATCH: "does not match:", verify.NOT_CHECKED: "not checked:"}
COLOUR = {
    **{verify.MATCH: "green", verify.MISMATCH: "red", verify.NOT_CHECKED: "yellow"},
    **{IDENTICAL: "green", WITHIN: "green", INSIDE: "green", DIFFERENT: "red", NOT_COMPARED: "yellow"},
}

Json = dict[str, Any]


def show(trace: Json, *, code: bool, full: bool = False) -> None:
    """Print ``trace`` (`pipeline.audit.trace.document`); with ``code``, every file of code by name.

    What is many of a kind is one line with their number; with ``full``, each is shown by itself.
    """
    console = _console()
    _header(console, trace, full=full)
    _checks(console, trace)
    jobs = {job["job"]: job for job in trace["jobs"]}
    drawing = _Drawing(jobs, code=code, full=full)
    names = dict.fromkeys(artifact["job"] for artifact in trace["artifacts"] if artifact["job"])
    for tree in drawing.trees([jobs[name] for name in names]):
        console.print(tree)
    if drawing.folded:
        console.print("each by itself, with commands and all parameters: --full")


def show_rebuilt(trace: Json, rounding: Yardstick | None) -> None:
    """Print what the rebuild came to, and what is to be expected where it ran: ``rounding``, if that was measured."""
    console, rebuilt = _console(), trace["rebuilt"]
    console.print(f"\nbuilt again: {_names(rebuilt['made']) or 'nothing'}")
    if rebuilt["kept"]:
        runs = sum(name.startswith("train-") for name in rebuilt["kept"])
        console.print(f"[yellow]taken from here, not made again[/]: {_names(rebuilt['kept'])}")
        if runs:
            console.print(f"[yellow]training was not repeated[/] for {_count(runs, 'run')}")
    for each in rebuilt["comparisons"]:
        line = f"[{COLOUR[each['state']]}]{each['state']}[/]: {escape(each['path'])}"
        if each["text"]:
            line += f" ({escape(each['text'])})"
        console.print(line, soft_wrap=True)
        if each["difference"]:
            console.print(
                f"  largest difference: {each['difference']:.2g} of the value, in {escape(each['column'])}; "
                f"tolerance {each['tolerance']:g}: {each['reason']}",
                soft_wrap=True,
            )
    if folder := rebuilt["workspace"]:
        kept = f"; kept to be looked at, remove it: rm -r {folder}" if rebuilt["temporary"] else ""
        size = _size(rebuilt["workspace_size"])
        console.print(escape(f"workspace: {folder} ({size}{kept})"), soft_wrap=True)
    console.print(f"rebuilt: [bold {COLOUR[rebuilt['state']]}]{rebuilt['state']}[/]")
    console.print(escape(_machines(rebuilt, rounding)), soft_wrap=True)


def _machines(rebuilt: Json, rounding: Yardstick | None) -> str:
    """Return where the record was made, where this was, and what that alone may change."""
    here, there = rebuilt["rebuilt_on"], rebuilt["recorded_on"]
    if there is None:
        return f"rebuilt on {here}; on which machine the record was made is not known"
    if here == there:
        same = "" if rebuilt["state"] == IDENTICAL else ": the same bytes were to be expected"
        return f"the record was made, and this was rebuilt, on {here}{same}"
    text = f"the record was made on {there}; rebuilt on {here}"
    if rebuilt["state"] == IDENTICAL:
        return text
    if rounding is None or not any(name.startswith("train-") for name in rebuilt["made"]):
        return f"{text}: last bits differ between the two"
    return (
        f"{text}: last bits differ between the two, and training lets them grow. Rounding alone moves "
        f"{rounding.moved} of the {rounding.gates} gates of all claims, by up to {rounding.largest:.2g} of a value, "
        f"and turns {_count(len(rounding.turned), 'verdict')}; single models move as far"
    )


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    return console


# --- header ---------------------------------------------------------------------------------------


def _header(console: Console, trace: Json, *, full: bool) -> None:
    for name, meant in trace["shared"].items():
        console.print(
            f"{name!r} stands for {len(meant)} results, which follow; each has a name: {', '.join(meant)}",
            soft_wrap=True,
        )
    shown = trace["artifacts"] if full else trace["artifacts"][:SHOWN]
    for artifact in shown:
        made = f"made by {artifact['job']}" if artifact["job"] else "of a reference set"
        console.print(f"[bold]{escape(artifact['path'])}[/]  {_file(artifact)}  {made}", soft_wrap=True)
    if more := len(trace["artifacts"]) - len(shown):
        console.print(f"and {_count(more, 'file')} more")
    first = {artifact["job"]: artifact for artifact in reversed(trace["artifacts"]) if artifact["job"]}
    alone = list(first.values())[::-1]
    for artifact in alone if full else alone[:ALONE]:
        work = f"{_count(artifact['jobs'], 'job')} if all are stale, about {duration(artifact['seconds'])} of one core"
        console.print(f"rebuild it alone: {artifact['rebuild']}  ({work})", soft_wrap=True)
    for row in trace["claims"]:
        interval = "" if row["lo"] is None else f" [{row['lo']:.4g}, {row['hi']:.4g}]"
        value = "not measured" if row["value"] is None else f"{row['value']:.4g}{interval}"
        source = "" if row["published"] is None else f", published {published(row)}"
        console.print(
            f"  claim {row['claim']}, {escape(row['gate'])}: {escape(row['predicate'])}: {value}{source}: "
            f"[bold]{row['verdict']}[/] ({escape(row['reason'])})",
            soft_wrap=True,
        )
    git = trace["git"]
    if git["commit"] is None:
        console.print("no commit: nothing here can be compared with a committed state")
    elif git["edited"]:
        edited = _names(git["edited"])
        console.print(f"commit {git['commit']}; [yellow]edited since, not committed[/]: {escape(edited)}")
    else:
        console.print(f"commit {git['commit']}; its inputs are as committed")
    if elsewhere := [check["job"] for check in trace["checks"] if check["state"] == verify.ELSEWHERE]:
        console.print(
            f"another build than the committed one: {len(elsewhere)} of {_count(len(trace['jobs']), 'job')} on the way "
            "made other bytes or had other inputs (git diff dvc.lock)",
            soft_wrap=True,
        )


# --- tree -----------------------------------------------------------------------------------------


class _Drawing:
    """The tree of jobs; each is drawn once, and only named where it is met again."""

    def __init__(self, jobs: dict[str, Json], *, code: bool, full: bool) -> None:
        """Take ``jobs``, which are those of the chain, by name."""
        self._jobs, self._code, self._full = jobs, code, full
        self._drawn: set[str] = set()
        self.folded = False  # whether anything was left out that ``full`` would show

    def trees(self, jobs: list[Json]) -> Iterator[Tree]:
        """Yield a tree for each job that was asked for, or one for many of a step."""
        for step, members in _by_step(jobs).items():
            members = [member for member in members if member["job"] not in self._drawn]
            if self._is_many(members):
                yield self._many(Tree(_heading(step, members)), members)
                continue
            for member in members:
                if member["job"] not in self._drawn:
                    yield self._one(Tree(_title(member)), member)

    def _is_many(self, members: list[Json]) -> bool:
        return not self._full and len(members) > ALONE

    def _one(self, tree: Tree, job: Json) -> Tree:
        """Add what made ``job`` below its title."""
        self._drawn.add(job["job"])
        if self._full:
            tree.add(f"command: {job['command']}")
        self._outputs(tree, [job])
        self._parameters(tree, [job])
        self._code_files(tree, [job])
        self._parents(tree, [job])
        return tree

    def _many(self, tree: Tree, members: list[Json]) -> Tree:
        """Add what many jobs of a step have in common; what is their own is left out."""
        self.folded = True
        self._drawn |= {member["job"] for member in members}
        self._outputs(tree, members)
        self._parameters(tree, members)
        self._code_files(tree, members)
        if other := [member["job"] for member in members if member["software_overridden"]]:
            tree.add(f"[yellow]with other software[/]: {_names(other, shown=3)}")
        if unknown := [member["job"] for member in members if not member["recorded"]]:
            tree.add(f"[yellow]dvc.lock has no record of[/] {_names(unknown, shown=3)}")
        self._parents(tree, members)
        return tree

    def _group(self, tree: Tree, step: str, members: list[Json]) -> None:
        """Add jobs of one step: what they share once, then each with what is its own, then what made their inputs.

        With ``full``, what made the inputs of each stands below it.
        """
        branch = tree.add(f"[bold]{len(members)} × {step}[/]")
        if self._full:
            branch.add(f"command: python -m pipeline {step} ID")
        shared = self._parameters(branch, members)
        self._code_files(branch, members)
        for member in members:
            self._drawn.add(member["job"])
            above = [name for name in member["parents"] if name in self._drawn or not self._full]
            leaf = branch.add(_title(member) + (f"  from {_names(above)}" if above else ""))
            self._outputs(leaf, [member])
            own = [each for each in member["parameters"] if _key(member, each) not in shared]
            if texts := self._texts(member, own):
                leaf.add(texts)
            if self._full:
                for name in member["parents"]:
                    if name not in self._drawn:
                        self._one(leaf.add(_title(self._jobs[name])), self._jobs[name])
        if not self._full:
            fresh = dict.fromkeys(name for member in members for name in member["parents"])
            self._below(branch, [self._jobs[name] for name in fresh if name not in self._drawn])

    def _parents(self, tree: Tree, members: list[Json]) -> None:
        """Add the jobs whose results ``members`` read, by step; those that were drawn already are named."""
        names = dict.fromkeys(name for member in members for name in member["parents"])
        for parents in _by_step([self._jobs[name] for name in names]).values():
            if above := [parent["job"] for parent in parents if parent["job"] in self._drawn]:
                tree.add(f"from {_names(above)} (above)")
            self._below(tree, [parent for parent in parents if parent["job"] not in self._drawn])

    def _below(self, tree: Tree, jobs: list[Json]) -> None:
        """Add ``jobs``, none of which is drawn yet, by step."""
        for step, members in _by_step(jobs).items():
            fresh = [member for member in members if member["job"] not in self._drawn]  # by a step before this one
            if self._is_many(fresh):
                self._many(tree.add(_heading(step, fresh)), fresh)
            elif len(fresh) > 1:
                self._group(tree, step, fresh)
            elif fresh:
                self._one(tree.add(_title(fresh[0])), fresh[0])

    def _outputs(self, tree: Tree, members: list[Json]) -> None:
        """Add the files of each folder as one line; of many files, their number and size."""
        files = [file for member in members for file in member["outputs"]]
        known = all(member["recorded"] for member in members)
        if len(members) > 1:
            self.folded = True
            common = os.path.commonpath([Path(file["path"]).parent for file in files])
            tree.add(f"{escape(common)}/: {_amount(files)}")
            return
        folders_of: dict[Path, list[Json]] = defaultdict(list)
        for file in files:
            folders_of[Path(file["path"]).parent].append(file)
        for folder, inside in folders_of.items():
            shown = inside if self._full or len(inside) <= SHOWN else inside[:2]
            text = ", ".join(f"{escape(Path(file['path']).name)} {_recorded(file, known)}" for file in shown)
            if len(shown) < len(inside):
                self.folded = True
                text += f" and {len(inside) - len(shown)} more: {_amount(inside)}"
            tree.add(f"{escape(str(folder))}/: {text}")

    def _parameters(self, tree: Tree, members: list[Json]) -> set[tuple[str, str]]:
        """Add the parameters that all ``members`` have in common; return their names and values."""
        keys = [{_key(member, each) for each in member["parameters"]} for member in members]
        shared = set.intersection(*keys)
        first = [each for each in members[0]["parameters"] if _key(members[0], each) in shared]
        if first:
            label = "parameters" if len(members) == 1 else "parameters in common"
            tree.add(f"{label}: {self._texts(members[0], first)}")
        return shared

    def _texts(self, job: Json, parameters: list[Json]) -> str:
        """Return parameters as text; the values of variants, and what is beyond some lines, only with ``full``."""
        if self._full:
            return escape(", ".join(_value(job, each) for each in parameters))
        names = [_own(job, each).split(".") for each in parameters]
        variants = list(dict.fromkeys(name[1] for name in names if name[0] == "variants" and len(name) > 1))
        plain = [
            each
            for each, name in zip(parameters, names, strict=True)
            if name[0] != "variants" and each["value"] != []  # an experiment without datasets, for instance
        ]
        key = f".{job['job'].partition('-')[2]}"
        plain.sort(key=lambda each: key not in each["name"])  # its own before those of the whole study
        text, left = "", len(plain)
        for each in plain:
            value = _value(job, each)
            if text and len(text) + len(value) > LONGEST:
                break
            text, left = f"{text}, {value}" if text else value, left - 1
        if left:
            text += f" and {left} more"
        if variants:
            text += f"{', ' if text else ''}{_count(len(variants), 'variant')}: {_names(variants, shown=2)}"
        self.folded |= bool(left or variants)
        return escape(text)

    def _code_files(self, tree: Tree, members: list[Json]) -> None:
        """Add the files of code, the same for most jobs of a step; those that not all read, with who does."""
        readers: dict[tuple[str, str | None], list[str]] = defaultdict(list)
        for member in members:
            for file in member["code"]:
                readers[str(file["path"]), file["md5"]].append(member["job"])
        hint = "" if self._code else " (list them: --code)"
        branch = tree.add(f"code: {_count(len(readers), 'file')}{hint}")
        if self._code:
            for (path, md5), jobs in readers.items():
                only = "" if len(jobs) == len(members) else f"  only {_names(jobs)}"
                branch.add(f"{escape(path)}  md5 {md5}{only}")
        for (how, text), jobs in _accepted(members).items():
            branch.add(f"[yellow]edited after {_names(jobs)} ran, {how}[/]: {escape(text)}")


def _by_step(jobs: list[Json]) -> dict[str, list[Json]]:
    groups: dict[str, list[Json]] = defaultdict(list)
    for job in jobs:
        groups[job["job"].split("-")[0]].append(job)
    return groups


def _heading(step: str, members: list[Json]) -> str:
    devices = sorted({member["device"] for member in members if member["device"]})
    place = f"  on {', '.join(devices)}" if devices else ""
    return f"[bold]{len(members)} × {step}[/]: {_names([each['job'] for each in members], shown=4)}{place}"


def _title(job: Json) -> str:
    line = f"[bold]{job['job']}[/]"
    if job["device"]:
        line += f"  on {job['device']}"
    if job["software_overridden"]:
        line += f"  [yellow]other software: {escape(', '.join(job['software_overridden']))}[/]"
    return line if job["recorded"] else f"{line}  [yellow]dvc.lock has no record of it[/]"


def _accepted(members: list[Json]) -> dict[tuple[str, str], list[str]]:
    """Return, by how an edit was accepted and by the edit as text, the jobs into whose records it came."""
    edits: dict[tuple[str, str], list[str]] = defaultdict(list)
    for member in members:
        for edit in member["accepted"]:
            paths = ", ".join(str(file.get("path")) for file in edit["files"])
            how = "proved identical by a rebuild" if edit.get("proof") else "accepted as harmless, unproved"
            edits[how, f"{paths}: {edit.get('reason')} ({edit.get('author')})"].append(member["job"])
    return edits


def _key(job: Json, parameter: Json) -> tuple[str, str]:
    return _own(job, parameter), repr(parameter["written"])


def _own(job: Json, parameter: Json) -> str:
    """Return the name of a parameter without the part that says whose it is."""
    name, owner = str(parameter["name"]).rpartition(":")[2], job["job"].partition("-")[2]
    return name.removeprefix(f"{owner}.")


def _value(job: Json, parameter: Json) -> str:
    text = f"{_own(job, parameter)} {_value_text(parameter['value'])}"
    if parameter["written"] != parameter["value"]:  # in the order of the scales
        text += f" of {_written_text(parameter['written'])}"
    return text


def _written_text(written: Any) -> str:
    """Return what a file says, values by scale as ``10|20|30``, also where they stand in a list."""
    if isinstance(written, dict):
        return "|".join(_value_text(each) for each in written.values())
    if isinstance(written, list):
        return f"[{', '.join(map(_written_text, written))}]"
    return _value_text(written)


def _value_text(value: Any) -> str:
    if isinstance(value, list) and len(value) > SHOWN and all(isinstance(each, str) for each in value):
        return f"[{', '.join(value[:SHOWN])} and {len(value) - SHOWN} more]"
    return str(value).replace("'", "")


def _recorded(file: Json, known: bool) -> str:
    md5 = _unknown(known) if file["md5"] is None else f"[cyan]{file['md5'][:8]}[/]"
    return md5 if file["size"] is None else f"{md5} {_size(file['size'])}"


def _unknown(recorded: bool) -> str:
    """Return why the md5 of a file is not known: dvc.lock has that of its folder, or nothing."""
    return "unknown here, as its folder was not pushed" if recorded else "not in dvc.lock"


def _amount(files: list[Json]) -> str:
    known = [file["size"] for file in files if file["size"] is not None]
    size = f", {_size(sum(known))}" if known and len(known) == len(files) else ""
    return f"{_count(len(files), 'file')}{size}"


# --- verdicts -------------------------------------------------------------------------------------


def _checks(console: Console, trace: Json) -> None:
    """Print what does not match, each thing once with the jobs it concerns; with --verify also the counts."""
    groups: dict[tuple[str, str, str], list[Json]] = defaultdict(list)
    for check in trace["checks"]:
        if check["state"] in STATE:
            groups[check["state"], check["kind"], check["text"]].append(check)
    for (state, kind, text), checks in sorted(groups.items()):
        whats = _names(list(dict.fromkeys(check["what"] for check in checks)), shown=3)
        jobs = _names(list(dict.fromkeys(check["job"] for check in checks if check["job"])), shown=2)
        sentence = f"{whats}: {text}" + (f"  [{jobs}]" if jobs else "")
        console.print(f"[{COLOUR[state]}]{STATE[state]} {kind}[/]  {escape(sentence)}", soft_wrap=True)
    if trace["verified"]:
        counts = Counter(check["state"] for check in trace["checks"])
        sentence = ", ".join(
            f"{counts[state]} {words}"
            for state, words in (
                (verify.MATCH, "match"),
                (verify.MISMATCH, "do not match"),
                (verify.NOT_CHECKED, "not checked"),
            )
        )
        # A clone has no checkpoints: that they are not here says nothing against what is.
        word = "in part" if trace["verified"] == verify.NOT_CHECKED else trace["verified"]
        console.print(f"verified: [bold {COLOUR[trace['verified']]}]{word}[/] ({sentence})")


def _file(file: Json) -> str:
    if file["md5"] is None:
        return f"md5 {_unknown(file['recorded'])}"
    return f"md5 {file['md5']}" + ("" if file["size"] is None else f"  {_size(file['size'])}")


def _size(count: int) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000  # type: ignore[assignment]
    return f"{count:.3g} GB"


def _names(names: list[str], shown: int = SHOWN) -> str:
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
