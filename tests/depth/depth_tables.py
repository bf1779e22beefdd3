"""Result tables of the depth study as a reproduction of everything would have them, small and by formula."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import polars as pl

from pipeline.kit.comparisons import RATIO, SHARE, SHIFT, Comparison, frame, row
from pipeline.kit.intervals import ORDER, Interval
from pipeline.store import tables
from pipeline.studies.depth.comparisons import DECLARED, ENDED, HEADS_ACCURACY, HEADS_P, HEADS_STEPS, RIGHT_PAIR
from pipeline.studies.depth.names import (
    CONTEXT,
    CONTEXTUAL,
    CONTEXTUAL_PUBLISHED,
    FROZEN,
    GENERALIZATION,
    JUDGED,
    MEMORIZATION,
    ONE_LAYER,
    PROBES,
    REASONING,
    SIZES,
    SOFTMAX,
    TWO_LAYERS_HEADS,
)
from schemas.depth.tables import SCHEMAS

STEPS = 1000
K = 2  # examples of the contextual task
LEARNS = {"sc": 1, "ic_qa": 2, "tm": 2, "ic_tm": 3}  # layers that a task takes
CHANCE = {"sc": 0.01, "ic_qa": 0.05, "tm": 0.2, "ic_tm": 0.05, "nested": 0.05}
PAIRS = {"ic_qa": 4, "ic_tm": K, "nested": 2}

# Run, task, heads, experiment, k, hops.
RUNS: list[tuple[str, str, str, str, int, int]] = [
    *((MEMORIZATION[layers], "sc", ", ".join("1" * layers), "exp-1", 0, 0) for layers in (1, 2)),
    *((f"depth-sc-heads{h}", "sc", str(h), "exp-2", 0, 0) for h in (2, 4, 8)),
    *((REASONING[layers], "ic_qa", ", ".join("1" * layers), "exp-1", 4, 0) for layers in (1, 2)),
    *((f"depth-ic-qa-heads{h}{i}", "ic_qa", f"{h}, {i}", "exp-2", 4, 0) for h, i in ((2, 1), (1, 2), (4, 4))),
    *((GENERALIZATION[layers], "tm", ", ".join("1" * layers), "exp-1", 0, 0) for layers in (1, 2)),
    *((f"depth-tm-heads{h}{i}", "tm", f"{h}, {i}", "exp-2", 0, 0) for h, i in ((2, 1), (1, 2), (4, 4))),
    *((CONTEXTUAL[layers], "ic_tm", ", ".join("1" * layers), "exp-1", K, 0) for layers in (1, 2, 3, 4)),
    (ONE_LAYER["ic_qa"], "ic_qa", "1", "control", 4, 0),
    (ONE_LAYER["tm"], "tm", "1", "control", 0, 0),
    (ONE_LAYER["ic_tm"], "ic_tm", "1", "control", K, 0),
    ("depth-ic-tm-l2-adam", "ic_tm", "1, 1", "ablation", K, 0),
    ("depth-ic-tm-l3-adam", "ic_tm", "1, 1, 1", "ablation", K, 0),
    *((CONTEXTUAL_PUBLISHED[layers], "ic_tm", ", ".join("1" * layers), "ablation", K, 0) for layers in (2, 3, 4)),
    (TWO_LAYERS_HEADS, "ic_tm", "1, 6", "ablation", K, 0),
    (SIZES, "sc", "1", "control", 0, 0),
    *((run, "sc", "1", "control", 0, 0) for run in FROZEN.values()),
    (SOFTMAX["ic_qa"], "ic_qa", "1, 1", "ablation", 4, 0),
    (SOFTMAX["tm"], "tm", "1, 1", "ablation", 0, 0),
    ("depth-ic-tm-k2-heads112", "ic_tm", "1, 1, 2", "exp-3", K, 0),
    ("depth-ic-tm-k4-heads111", "ic_tm", "1, 1, 1", "exp-3", 4, 0),
    ("depth-ic-tm-k4-heads1111", "ic_tm", "1, 1, 1, 1", "exp-3", 4, 0),
    ("depth-ic-qa-random", "ic_qa", "1, 1", "exp-5", 4, 0),
    ("depth-tm-random-adam", "tm", "1, 1", "exp-5", 0, 0),
    *((f"depth-nested-l{n}", "nested", ", ".join("1" * n), "exp-6", 6, hops) for n in (2, 3) for hops in (1, 2)),
]


def shape(run: str, task: str, heads: str, experiment: str, k: int, hops: int) -> dict[str, Any]:
    layers = len(heads.split(", "))
    return {
        "run": run,
        "experiment": experiment,
        "task": task,
        "layers": layers,
        "heads": heads,
        "k": k,
        "l": 3 if "tm" in task else 0,
        "hops": hops,
        "sequences": 500 if SIZES in run else 100,
    }


ABOUT = {given[0]: shape(*given) for given in RUNS}


def learned(about: dict[str, Any]) -> bool:
    if about["task"] == "nested":
        return bool(about["layers"] > about["hops"])
    return bool(
        about["layers"] >= LEARNS[about["task"]] and not about["run"].endswith(("random", "random-adam", "frozen"))
    )


def reached(about: dict[str, Any]) -> int | None:
    """Steps to 95%: fewer with more heads on sc and with a fourth layer."""
    if not learned(about):
        return None
    first = int(about["heads"][0]) if about["task"] == "sc" else 1
    return 800 // (first * max(1, about["layers"] - 2))


def models() -> Iterator[dict[str, Any]]:
    for given in RUNS:
        entry = shape(*given)
        for lr in (0.003, 0.01):
            for replica in range(2):  # models of a nested run take the numbers of hops in turn
                number = 2 * replica + entry["hops"] - 1 if entry["hops"] else replica
                yield entry | {"lr": lr, "replica": number, "chosen": lr == 0.01, "split": JUDGED[entry["task"]]}


def level(about: dict[str, Any], context: bool) -> float:
    """Where a model ends that does not learn."""
    chance = 1 / PAIRS[about["task"]] if context else CHANCE[about["task"]]
    return chance if context or about["task"] != "ic_tm" else 1 / K


def curve(about: dict[str, Any], step: int, context: bool = False) -> float:
    low = level(about, context)
    if not learned(about) or not about["chosen"]:
        return low
    middle = 0.8 * (reached(about) or STEPS)
    return low + (1 - low) / (1 + math.exp(-(step - middle) / 40))


def curves() -> pl.DataFrame:
    rows = []
    for model in models():
        splits = [model["split"], *(["unseen_token"] if model["task"] == "tm" else [])]
        for split in splits:
            for step in range(50, STEPS + 1, 50):
                accuracy = curve(model, step) * (
                    0.99 if model["replica"] > 1 or (model["replica"] == 1 and not model["hops"]) else 1
                )
                context = curve(model, step, True) if model["task"] in PAIRS else None
                rows.append(
                    model
                    | {
                        "split": split,
                        "step": step,
                        "loss": -math.log(accuracy),
                        "accuracy": accuracy,
                        "context": context,
                    }
                )
    return pl.DataFrame(rows, infer_schema_length=None)


def summary() -> pl.DataFrame:
    rows = []
    for model in models():
        ours = {name: value for name, value in model.items() if name != "split"}
        rows.append(
            ours
            | {
                "learned": learned(model) and model["chosen"],
                "diverged_at": None,
                "training_loss": -math.log(curve(model, STEPS)),
                "accuracy": curve(model, STEPS),
                "context": curve(model, STEPS, True) if model["task"] in PAIRS else None,
                "accuracy_unseen_repetition": curve(model, STEPS) if model["task"] == "tm" else None,
                "accuracy_unseen_token": curve(model, STEPS) if model["task"] == "tm" else None,
                "steps_to_95": reached(model) if model["chosen"] else None,
                "steps": STEPS,
                "chance": CHANCE[model["task"]],
                "chance_context": 1 / PAIRS[model["task"]] if model["task"] in PAIRS else None,
                "heads_total": model["layers"],
                "heads_dead": 0,
                "zero_share": 0.1,
            }
        )
    return pl.DataFrame(rows, infer_schema_length=None)


def accuracy() -> pl.DataFrame:
    rows = []
    for given in RUNS:
        entry = shape(*given) | {"chosen": True}
        splits = [JUDGED[entry["task"]], *(["unseen_token", "unseen_repetition"] if entry["task"] == "tm" else [])]
        for split in splits:
            for among in ("outputs", *(["context"] if entry["task"] in PAIRS else [])):
                value = curve(entry, STEPS, among == "context")
                chance = level(entry, True) if among == "context" else CHANCE[entry["task"]]
                row = {name: value_ for name, value_ in entry.items() if name != "chosen"}
                rows.append(
                    row
                    | {
                        "lr": 0.01,
                        "split": split,
                        "among": among,
                        "value": value,
                        "lo": value - 0.005,
                        "hi": value,
                        "interval": ORDER,
                        "confidence": 0.95,
                        "least": value - 0.01,
                        "most": value,
                        "n": 2,
                        "n_diverged": 0,
                        "distinct": 50,
                        "solved": 0.99,
                        "n_solved": 2 * (value > 0.99),
                        "share": float(value > 0.99),
                        "share_lo": 0.6 * (value > 0.99),
                        "share_hi": 1.0,
                        "chance": chance,
                    }
                )
    return pl.DataFrame(rows, infer_schema_length=None)


def learning_rates() -> pl.DataFrame:
    rows = []
    for given in RUNS:
        for lr in (0.003, 0.01):
            entry = shape(*given) | {"chosen": lr == 0.01}
            end = curve(entry, STEPS)
            rows.append(
                entry
                | {
                    "lr": lr,
                    "n": 2,
                    "n_diverged": 0,
                    "training_loss": -math.log(end),
                    "accuracy": end,
                    "place": "highest" if lr == 0.01 else "",
                }
            )
    return pl.DataFrame(rows, infer_schema_length=None)


def holding(comparison: Comparison) -> float:
    """A value with which the gate of a comparison holds."""
    if comparison in ENDED.values():
        run, _, among = next(key for key, each in ENDED.items() if each == comparison)
        return curve(ABOUT[run] | {"chosen": True}, STEPS, among == CONTEXT)
    if comparison in HEADS_ACCURACY.values():
        return 0.01
    others = {HEADS_STEPS: -0.9, HEADS_P: 0.001, RIGHT_PAIR: 0.99}
    by_statistic = {SHARE: 1.0, RATIO: 0.5, SHIFT: 0.1}
    return others.get(comparison) or by_statistic[comparison.statistic]


def comparisons(found: Mapping[Comparison, float | Interval] = MappingProxyType({})) -> pl.DataFrame:
    """All comparisons as measured on eight models, with what was ``found``, else with what their gates ask for."""
    rows = []
    for each in DECLARED:
        value = found.get(each, holding(each))
        if not isinstance(value, Interval):
            value = Interval(value, value - 0.001, value + 0.001, ORDER, 8, 6).within(*each.span)
        rows.append(row(each, value, 0.95))
    return tables.conform([frame(rows)], SCHEMAS["comparisons"], scale="quick", params_hash="0" * 32)


def agreement() -> pl.DataFrame:
    rows = []
    for given in RUNS:
        entry = shape(*given)
        if entry["experiment"] not in ("exp-1", "exp-5") or entry["task"] == "sc":
            continue
        for replica in range(2):
            for layer in range(1, entry["layers"] + 1):
                last = layer == entry["layers"]
                cosine = None if layer == 3 or (last and layer != 2 and layer != 1) else 0.9
                rows.append(
                    entry
                    | {
                        "lr": 0.01,
                        "replica": replica,
                        "layer": layer,
                        "head": 0,
                        "last_layer": last,
                        "cosine": cosine,
                        "cosine_start": None if cosine is None else 0.5 / layer,
                        "right_example": 0.99 if last and entry["task"] != "tm" else None,
                        "right_example_all": 0.5 if last and entry["task"] != "tm" else None,
                        "n_sequences": 100,
                    }
                )
    return pl.DataFrame(rows, infer_schema_length=None)


def attention() -> pl.DataFrame:
    """Every query of every probe looks at itself, in training twice as much; the last one also at position 0."""
    rows = []
    for probe, run in PROBES.items():
        T, layers = len(probe), int(run.split("-l")[1][0])
        for source, scale in (("trained", 2.0), ("constructed", 1.0)):
            for layer in range(1, layers + 1):
                if source == "constructed" and layer == 3:
                    continue
                for query in range(T - 1 if layer == layers else 0, T):
                    rows += [
                        {
                            "probe": probe,
                            "run": run,
                            "source": source,
                            "replica": 0 if source == "trained" else None,
                            "learned": True if source == "trained" else None,
                            "layer": layer,
                            "head": 0,
                            "query": query,
                            "key": key,
                            "query_token": probe[query],
                            "key_token": probe[key],
                            "weight": scale * layer * ((key == query) + (key == 0 and query == T - 1)),
                        }
                        for key in range(T)
                    ]
    return pl.DataFrame(rows, infer_schema_length=None)


def examples() -> pl.DataFrame:
    texts = {
        "sc": [("ABCABC=", "class 7"), ("BBCDEA=", "class 3")],
        "ic_qa": [("A=1B=2C=3D=4A=", "1"), ("A=1B=2C=3D=4D=", "4")],
        "tm": [("AAB=", "AAB"), ("ABB=", "ABB")],
        "ic_tm": [("AAB=1ABA=2CCD=", "1"), ("AAA=1ABC=2DEF=", "2")],
        "nested": [("A=BB=CD=ED=", "E"), ("A=BB=CD=EA=", "C")],
    }
    rows = [
        {
            "task": task,
            "number": i,
            "dataset": f"depth-{task.replace('_', '-')}",
            "tokens": [ord(c) % 32 for c in text],
            "text": text,
            "label": i,
            "answer": answer,
            "explanation": f"because of {answer}",
        }
        for task, given in texts.items()
        for i, (text, answer) in enumerate(given)
    ]
    return pl.DataFrame(rows, schema_overrides={"tokens": pl.List(pl.Int16)})


def runs() -> pl.DataFrame:
    columns = {
        "dataset": "depth-x",
        "d1": 20,
        "d2": 20,
        "length": 14,
        "outputs": 41,
        "width": 55,
        "weights": 5000,
        "init": "construction",
        "constructed": "copying",
        "readout": 1.0,
        "later": 0.02,
        "optimizer": "sgd",
        "rates": "0.003, 0.01",
        "trained": "all",
        "attention": "relu",
        "clip": 0.0,
        "steps": STEPS,
        "batch": 64,
        "replicas": 2,
    }
    return pl.DataFrame(
        shape(*given)
        | columns
        | {
            "init": "random" if "random" in given[0] else "construction",
            "optimizer": "adam" if "adam" in given[0] else "sgd",
            "readout": 1.0 if "published" in given[0] else 0.01,
        }
        for given in RUNS
    )


def findings() -> pl.DataFrame:
    return pl.DataFrame({"topic": ["hops"], "leads": [True], "finding": ["Chains are learned for 1 hop at 2 layers."]})


def every() -> dict[str, pl.DataFrame]:
    """All tables, valid."""
    made = {
        "examples": examples(),
        "runs": runs(),
        "curves": curves(),
        "summary": summary(),
        "accuracy": accuracy(),
        "learning_rates": learning_rates(),
        "comparisons": comparisons(),
        "agreement": agreement(),
        "attention": attention(),
        "findings": findings(),
    }
    stamp = {"scale": "quick", "params_hash": "0" * 32}
    return {name: tables.conform([frame], SCHEMAS[name], **stamp) for name, frame in made.items()}
