"""What is done to trained models before they are measured again: a random parent is pruned to one (DYCK-TH6).

Theorem 2 speaks of any target; here it is a model of the theory's architecture (DYCK-M9) that was trained on Dyck
strings. Its embedding and head are shared by all networks that are compared: the theorem is about the layers
between them (Wen et al. 2023, section 3.2).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray

from pipeline.kit.extremes import largest
from pipeline.kit.streams import one_thread
from pipeline.languages import dyck
from pipeline.models.transformer import theory as theory_transformer
from pipeline.studies.dyck.exact import pruning
from pipeline.studies.dyck.measures import metrics, rows
from pipeline.studies.dyck.measures.model import measure, of_language, padded
from pipeline.studies.dyck.names import PARENT, PROBE, PRUNED, PRUNING_TARGET, TARGET

if TYPE_CHECKING:
    from pipeline.kit.inputs import Inputs

HELD_OUT = "dev_complete"
ROOM = 3  # the parent's embedding over the target's: room for the values (Lemma 9)

Array = NDArray[np.float64]


def analyse(context: Inputs) -> dict[str, list[pl.DataFrame]]:
    """Return the tables of DYCK-TH6 on a trained target."""
    datasets = {key: context.dataset(key) for key in context.datasets()}
    with one_thread():
        parts = [rows.of_run(context, measure(context, run, datasets)) for run in context.runs()]
        return rows.tables_of(context, [*parts, demonstration(context, datasets)])


def demonstration(context: Inputs, datasets: dict[str, pl.DataFrame]) -> rows.Rows:
    """Return rows of ``pruning_demo`` and ``pruning_maps``; none without the trained target or its data."""
    if PRUNING_TARGET not in context.runs():
        return {}
    knobs, ensemble = context.entry, context.model(PRUNING_TARGET)
    entry = context.run_header(PRUNING_TARGET)["entry"]
    own = of_language(datasets, entry["k"], entry["depth"])
    if not {HELD_OUT, PROBE} <= own.keys():
        return {}
    held_out = own[HELD_OUT].sort("seq_id").head(knobs.strings)
    strings = [padded(part) for _, part in held_out.group_by("length", maintain_order=True)]
    probe = padded(own[PROBE].sort("seq_id").head(1))
    target = as_target(ensemble)
    reference = _measure(target, target.layers, strings, probe)
    demo = [_row(TARGET, None, reference, reference) | _size(target.layers)]
    maps = _maps(TARGET, None, reference.patterns, range(len(target.layers)))
    for n in knobs.candidates:
        shape = target.shape(n)
        parent = pruning.Parent(shape, context.seed, ("dyck", "pruning-demo", n))
        pruned = pruning.prune(parent, target.layers)
        networks = {
            PARENT: _measure(target, [parent.layer(index) for index in range(len(parent))], strings, probe),
            PRUNED: _measure(target, pruned.condensed(), strings, probe),
        }
        size = {"n_layers": len(parent), "width": shape.w_large, "weights": shape.weights}
        own_size = {
            PARENT: size | {"kept": shape.weights, "illegal": 0},
            PRUNED: size | {"kept": pruned.kept, "illegal": pruning.illegal(parent, pruned)},
        }
        demo += [_row(name, n, measured, reference) | own_size[name] for name, measured in networks.items()]
        demo[-1]["weight_error"] = pruned.worst
        if n == max(knobs.candidates):
            hosts = range(1, 2 * len(target.layers), 2)
            maps += [row for name in networks for row in _maps(name, n, networks[name].patterns, hosts)]
    return {"pruning_demo": [pl.DataFrame(demo, infer_schema_length=None)], "pruning_maps": maps}


# The trained model as a target


@dataclass(frozen=True)
class Target:
    """A trained model as Theorem 2 has it: ``layers`` without biases, between embedding ``table`` (symbols, m) and
    ``head`` (m, outputs); ``floor`` is C of LN_C."""

    layers: list[dict[str, Array]]
    table: Array
    head: Array
    floor: float

    def shape(self, n: int) -> pruning.Shape:
        """Return the shape of a parent with ``n`` candidates per weight."""
        layer = self.layers[0]
        (m_a, m), w = layer["W_K"].shape, len(layer["W_1"])
        return pruning.Shape(m, m_a, w, len(self.layers), n, ROOM * m)


def as_target(ensemble: theory_transformer.Ensemble) -> Target:
    """Return the first replica of ``ensemble``, its biases carried by one more coordinate that is always 1.

    Attention neither reads nor changes that coordinate: W_V is centred, so LN_C on m + 1 coordinates is LN_C on m
    (Lemma 12). A hidden unit of its own takes it through g.
    """
    params = {name: value[0].double().numpy() for name, value in ensemble.params.items()}
    one = np.ones((1, 1))
    layers = []
    for index in range(ensemble.spec.layers):
        values, keys, queries = (params[f"blocks.{index}.attn.{name}"].T for name in ("W_V", "W_K", "W_Q"))
        layer = {"W_V": np.pad(values - values.mean(0), (0, 1))}
        layer |= {"W_K": np.pad(keys, ((0, 0), (0, 1))), "W_Q": np.pad(queries, ((0, 0), (0, 1)))}
        for i in (0, 1):
            weights, bias = (params[f"blocks.{index}.mlp.{i}.{name}"].T for name in ("W", "b"))
            layer[f"W_{i + 1}"] = np.block([[weights, bias[:, None]], [np.zeros((1, weights.shape[1])), one]])
        layers.append(layer)
    table = ensemble.table.double().numpy()
    head = np.pad(params["head.W"], ((0, 1), (0, 0)))
    return Target(layers, np.pad(table, ((0, 0), (0, 1)), constant_values=1.0), head, ensemble.spec.floor)


# Measuring


@dataclass(frozen=True)
class _Measured:
    """Logits (B, T, O) for strings of each length, accuracy, and maps (N, N) on the probe by layer, rows are
    queries."""

    logits: list[Array]
    accuracy: metrics.Accuracy
    patterns: list[Array]


def _measure(
    target: Target, layers: list[dict[str, Array]], strings: list[NDArray[np.int8]], probe: NDArray[np.int8]
) -> _Measured:
    logits, accuracies = [], []
    for tokens in strings:
        output, _ = pruning.run(layers, _embedded(target, dyck.with_start(tokens), layers), target.floor)
        logits.append(np.einsum("mbt,mo->bto", output[: len(target.head)], target.head))
        before = torch.from_numpy(logits[-1][None, :, :-1])  # position i has read what is before target i
        top = torch.from_numpy(dyck.stack_top(tokens)).long()
        accuracies.append(metrics.accuracy(before, torch.from_numpy(tokens).long(), top))
    _, patterns = pruning.run(layers, _embedded(target, probe, layers), target.floor)
    return _Measured(logits, reduce(metrics.Accuracy.add, accuracies), [part[0].T for part in patterns])


def _embedded(target: Target, tokens: NDArray, layers: list[dict[str, Array]]) -> Array:
    """Return embedded strings of one length, (m of the network, B, T)."""
    return pruning.padded(target.table[tokens].transpose(2, 0, 1), len(layers[0]["W_V"]))


# Rows


def _size(layers: list[dict[str, Array]]) -> dict[str, Any]:
    weights = sum(matrix.size for layer in layers for matrix in layer.values())
    size = {"n_layers": len(layers), "width": len(layers[0]["W_1"]), "weights": weights}
    return size | {"kept": weights, "illegal": 0}


def _row(network: str, n: int | None, measured: _Measured, reference: _Measured) -> dict[str, Any]:
    layers = len(reference.patterns)
    hosts = measured.patterns if len(measured.patterns) == layers else measured.patterns[1 : 2 * layers : 2]
    pairs = zip(hosts, reference.patterns, strict=True)
    shares = {name: getattr(measured.accuracy, name).item() for name in ("acc_close", "acc_all", "acc_thr80")}
    return shares | {
        "run": PRUNING_TARGET,
        "network": network,
        "candidates": n,
        "weight_error": None,
        "logit_error": largest(*(abs(a - b) for a, b in zip(measured.logits, reference.logits, strict=True))),
        "map_distance": float(np.mean([((a - b) ** 2).sum() for a, b in pairs])),
        "n_sequences": sum(map(len, measured.logits)),
        "n_close": measured.accuracy.n_close,
    }


def _maps(network: str, n: int | None, patterns: list[Array], shown: range) -> list[pl.DataFrame]:
    query, key = np.tril_indices(len(patterns[0]))
    return [
        pl.DataFrame(
            {
                "network": network,
                "candidates": n,
                "layer": layer,
                "network_layer": index + 1,
                "query": query,
                "key": key,
                "weight": patterns[index][query, key],
            }
        )
        for layer, index in enumerate(shown, start=1)
    ]
