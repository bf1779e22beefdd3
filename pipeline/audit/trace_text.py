"""The answer of `trace` for people: a header, a tree, what does not match, and the verdicts."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.tree import Tree

from pipeline.audit import verify
from pipeline.audit.compare import DIFFERENT, IDENTICAL, NOT_COMPARED, WITHIN

SHOWN = 6  # of many names
PIPED_WIDTH = 120
STATE = {verify.MISMATCH: "does not match:", verify.NOT_CHECKED: "not checked:"}
COLOUR = {
    **{verify.MATCH: "green", verify.MISMATCH: "red", verify.NOT_CHECKED: "yellow"},
    **{IDENTICAL: "green", WITHIN: "green", DIFFERENT: "red", NOT_COMPARED: "yellow"},
}

Json = dict[str, Any]


def show(found: Json, *, code: bool) -> None:
    """Print ``found`` (`pipeline.audit.trace.document`); with ``code``, every file of code by name."""
    console = _console()
    _header(console, found)
    drawn: set[str] = set()
    jobs = {job["job"]: job for job in found["jobs"]}
    for name in dict.fromkeys(artifact["job"] for artifact in found["artifacts"] if artifact["job"]):
        if name not in drawn:
            tree = Tree(_title(jobs[name]))
            _branches(tree, jobs[name], jobs, drawn, code=code)
            console.print(tree)
    _checks(console, found)


def show_rebuilt(found: Json) -> None:
    """Print what the rebuild came to."""
    console, rebuilt = _console(), found["rebuilt"]
    console.print(f"\nbuilt again: {_names(rebuilt['made']) or 'nothing'}")
    if rebuilt["kept"]:
        runs = sum(name.startswith("train@") for name in rebuilt["kept"])
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
    if rebuilt["workspace"]:
        console.print(f"workspace: {rebuilt['workspace']}", soft_wrap=True)
    console.print(f"rebuilt: [bold {COLOUR[rebuilt['state']]}]{rebuilt['state']}[/]")


def _console() -> Console:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    return console


# --- header ---------------------------------------------------------------------------------------


def _header(console: Console, found: Json) -> None:
    for name, both in found["shared"].items():
        console.print(
            f"{name!r} is ambiguous, a figure and a table: both follow; {' or '.join(both)} is one of them"
        )
    for artifact in found["artifacts"]:
        made = f"made by {artifact['job']}" if artifact["job"] else "of a reference set"
        console.print(f"[bold]{escape(artifact['path'])}[/]  {_file(artifact)}  {made}", soft_wrap=True)
    commands = {artifact["job"]: artifact["rebuild"] for artifact in reversed(found["artifacts"])}
    for command in filter(None, commands.values()):
        console.print(f"rebuild it alone: {command}", soft_wrap=True)
    for row in found["claims"]:
        interval = "" if row["lo"] is None else f" [{row['lo']:.4g}, {row['hi']:.4g}]"
        value = "not measured" if row["value"] is None else f"{row['value']:.4g}{interval}"
        published = "" if row["published"] is None else f", published {row['published']:.4g}"
        console.print(
            f"  claim {row['claim']}, {escape(row['gate'])}: {escape(row['predicate'])}: {value}{published}: "
            f"[bold]{row['verdict']}[/] ({escape(row['reason'])})",
            soft_wrap=True,
        )
    git = found["git"]
    if git["commit"] is None:
        console.print("no commit: nothing here can be compared with a committed state")
    elif git["edited"]:
        edited = _names(git["edited"])
        console.print(f"commit {git['commit']}; [yellow]edited since, not committed[/]: {escape(edited)}")
    else:
        console.print(f"commit {git['commit']}; its inputs are as committed")


# --- tree -----------------------------------------------------------------------------------------


def _title(job: Json) -> str:
    line = f"[bold]{job['job']}[/]"
    if job["device"]:
        line += f"  on {job['device']}"
    if job["software_overridden"]:
        line += f"  [yellow]other software: {escape(', '.join(job['software_overridden']))}[/]"
    return line if job["recorded"] else f"{line}  [yellow]dvc.lock has no record of it[/]"


def _branches(tree: Tree, job: Json, jobs: dict[str, Json], drawn: set[str], *, code: bool) -> None:
    """What made ``job``, below its title; a job that was drawn already is only named."""
    drawn.add(job["job"])
    tree.add(f"command: {job['command']}")
    _outputs(tree, job)
    _parameters(tree, [job])
    _code(tree, [job], listed=code)
    groups: dict[str, list[Json]] = defaultdict(list)
    for name in job["parents"]:
        groups[name.split("@")[0]].append(jobs[name])
    for step, members in groups.items():
        fresh = [member for member in members if member["job"] not in drawn]
        if len(fresh) < len(members):
            above = _names([member["job"] for member in members if member not in fresh])
            tree.add(f"from {above} (above)")
        if len(fresh) > 1:
            _group(tree, step, fresh, jobs, drawn, code=code)
        else:
            for member in fresh:
                _branches(tree.add(_title(member)), member, jobs, drawn, code=code)


def _group(
    tree: Tree, step: str, members: list[Json], jobs: dict[str, Json], drawn: set[str], *, code: bool
) -> None:
    """Jobs of one step: what they share once, then each with what is its own."""
    branch = tree.add(f"[bold]{len(members)} × {step}[/]")
    branch.add(f"command: python -m pipeline {step} ID")
    shared = _parameters(branch, members)
    _code(branch, members, listed=code)
    for member in members:
        above = [name for name in member["parents"] if name in drawn]
        leaf = branch.add(_title(member) + (f"  from {_names(above)} (above)" if above else ""))
        drawn.add(member["job"])
        _outputs(leaf, member)
        if own := [each for each in member["parameters"] if _key(member, each) not in shared]:
            leaf.add(", ".join(_value(member, each) for each in own))
        for name in member["parents"]:
            if name not in drawn:
                _branches(leaf.add(_title(jobs[name])), jobs[name], jobs, drawn, code=code)


def _outputs(tree: Tree, job: Json) -> None:
    """The files of each folder on one line."""
    folders: dict[Path, list[str]] = defaultdict(list)
    for file in job["outputs"]:
        told = "not in dvc.lock" if file["md5"] is None else f"[cyan]{file['md5'][:8]}[/]"
        size = "" if file["size"] is None else f" {_size(file['size'])}"
        folders[Path(file["path"]).parent].append(f"{escape(Path(file['path']).name)} {told}{size}")
    for folder, files in folders.items():
        tree.add(f"{escape(str(folder))}/: {', '.join(files)}")


def _parameters(tree: Tree, members: list[Json]) -> set[tuple[str, str]]:
    """Add the parameters that all ``members`` have in common; return their names and values."""
    keys = [{_key(member, each) for each in member["parameters"]} for member in members]
    shared = set.intersection(*keys)
    first = [each for each in members[0]["parameters"] if _key(members[0], each) in shared]
    if first:
        label = "parameters" if len(members) == 1 else "parameters in common"
        tree.add(f"{label}: " + ", ".join(_value(members[0], each) for each in first))
    return shared


def _key(job: Json, parameter: Json) -> tuple[str, str]:
    return _own(job, parameter), repr(parameter["written"])


def _own(job: Json, parameter: Json) -> str:
    """The name of a parameter without the part that says whose it is."""
    name, owner = str(parameter["name"]), job["job"].partition("@")[2]
    return name.split(f".{owner}.", 1)[-1] if owner else name


def _value(job: Json, parameter: Json) -> str:
    text = f"{_own(job, parameter)} {_told(parameter['value'])}"
    if parameter["written"] != parameter["value"]:  # in the order of the scales
        text += f" of {'|'.join(_told(each) for each in parameter['written'].values())}"
    return escape(text)


def _told(value: Any) -> str:
    if isinstance(value, list) and len(value) > SHOWN and all(isinstance(each, str) for each in value):
        return f"[{', '.join(value[:SHOWN])} and {len(value) - SHOWN} more]"
    return str(value).replace("'", "")


def _code(tree: Tree, members: list[Json], *, listed: bool) -> None:
    """The files of code, the same for most jobs of a step; those that not all read, with who does."""
    readers: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    for member in members:
        for file in member["code"]:
            readers[str(file["path"]), file["md5"]].append(member["job"])
    branch = tree.add(f"code: {_count(len(readers), 'file')}{'' if listed else ' (list them: --code)'}")
    if listed:
        for (path, md5), jobs in readers.items():
            only = "" if len(jobs) == len(members) else f"  only {_names(jobs)}"
            branch.add(f"{escape(path)}  md5 {md5}{only}")
    for member in members:
        for edit in member["accepted"]:
            paths = ", ".join(str(file.get("path")) for file in edit["files"])
            branch.add(
                f"[yellow]edited after {member['job']} ran, accepted as harmless[/]: {escape(paths)}: "
                f"{escape(str(edit.get('reason')))} ({escape(str(edit.get('author')))})"
            )


# --- verdicts -------------------------------------------------------------------------------------


def _checks(console: Console, found: Json) -> None:
    """What does not match, each thing once with the jobs it concerns; with --verify also the counts."""
    groups: dict[tuple[str, str, str], list[Json]] = defaultdict(list)
    for check in found["checks"]:
        if check["state"] != verify.MATCH:
            groups[check["state"], check["kind"], check["text"]].append(check)
    for (state, kind, text), checks in sorted(groups.items()):
        whats = _names(list(dict.fromkeys(check["what"] for check in checks)), shown=3)
        jobs = _names(list(dict.fromkeys(check["job"] for check in checks if check["job"])), shown=2)
        told = f"{whats}: {text}" + (f"  [{jobs}]" if jobs else "")
        console.print(f"[{COLOUR[state]}]{STATE[state]} {kind}[/]  {escape(told)}", soft_wrap=True)
    if found["verified"]:
        counts = Counter(check["state"] for check in found["checks"])
        told = ", ".join(
            f"{counts[state]} {words}"
            for state, words in (
                (verify.MATCH, "match"),
                (verify.MISMATCH, "do not match"),
                (verify.NOT_CHECKED, "not checked"),
            )
        )
        console.print(f"verified: [bold {COLOUR[found['verified']]}]{found['verified']}[/] ({told})")


def _file(file: Json) -> str:
    if file["md5"] is None:
        return "md5 not in dvc.lock"
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
