"""What params/dyck/ may say."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline.params import DatasetEntry, ExperimentEntry, Id, Positive, Probability, RunEntry, Strict, TheoryEntry


class Grammar(Strict):
    """One bounded Dyck language, Dyck_{k,D}."""

    k: Annotated[int, Field(ge=1, le=60, description="bracket types")]
    depth: Annotated[int, Field(ge=1, le=120, description="D, the largest depth")]


class _Sequences(DatasetEntry):
    split: Literal[
        "train_complete",
        "train_prefix",
        "dev_complete",
        "dev_prefix",
        "lengen",
        "probe16",
        "probe19",
        "probe28",
        "copy",
        "dev_copy",
    ] = Field(description="what it is for; a run on 'copy' has its input as its target (DYCK-D7)")
    grammars: Annotated[list[Grammar], Field(min_length=1, description="each with corpora of its own")]

    @model_validator(mode="after")
    def _each_once(self) -> _Sequences:
        if len({(grammar.k, grammar.depth) for grammar in self.grammars}) < len(self.grammars):
            raise ValueError("grammars lists a grammar twice")
        return self


class Complete(_Sequences):
    """DYCK-D2: balanced strings; the chain stops at depth 0 with ``p_stop``, longer than ``max_length`` is rejected."""

    sampler: Literal["complete"]
    q: Annotated[float, Field(gt=0, lt=1, description="probability to open at depths 1..D-1")]
    p_stop: Annotated[float, Field(gt=0, le=1)]
    max_length: Annotated[int, Field(ge=2, le=500)]
    sequences: Positive
    corpora: Positive


class Prefix(_Sequences):
    """DYCK-D1, D3, D5 to D7: prefixes of Dyck_{k,D}, each of a length uniform on [min_length, max_length]."""

    sampler: Literal["prefix"]
    q: Annotated[float, Field(gt=0, lt=1)]
    min_length: Positive
    max_length: Annotated[int, Field(ge=1, le=500)]
    sequences: Positive
    corpora: Positive

    @model_validator(mode="after")
    def _ordered(self) -> Prefix:
        if self.min_length > self.max_length:
            raise ValueError(f"min_length {self.min_length} must not exceed max_length {self.max_length}")
        return self


class Nested(_Sequences):
    """DYCK-D4: for each type, D brackets opened and closed again; 2kD tokens."""

    sampler: Literal["nested"]


Dataset = Annotated[Complete | Prefix | Nested, Field(discriminator="sampler")]


class Run(RunEntry):
    """An ensemble of Transformers trained on one grammar of its dataset: on next tokens or, where the split of that
    is ``copy``, on the tokens it reads."""

    k: Annotated[int, Field(ge=1, le=60, description="bracket types of its grammar")]
    depth: Annotated[int, Field(ge=1, le=120, description="D of its grammar")]
    corpus: Literal["shared", "per_replica"] = Field(description="replica r trains on corpus 0, or on corpus r")
    block: Literal["gpt", "resln", "stripped", "no_skip", "eq6"] = Field(
        description="form of a layer; see models/transformer/decoder.py, of eq6 theory.py"
    )
    layers: Annotated[int, Field(ge=1, le=4)]
    heads: Positive
    width: Positive
    ffn: Annotated[int, Field(ge=0, description="width of the MLP; 0 where the block has none")]
    attention: Literal["learned", "uniform"] = Field(description="uniform: queries are multiplied by 0")
    embedding: Literal["token", "pair", "sum", "angle"] = Field(
        description="frozen inputs: one-hot tokens, or a minimal first layer by eq. (15), (16), (17)"
    )
    position: Literal["none", "linear"]
    t_max: Positive
    loss_positions: Literal["closing", "all"]
    contrastive: Annotated[float, Field(ge=0, description="lambda of eq. (18); 0 = plain cross-entropy")]
    contrastive_prefix: Literal["nested", "release"] | None = Field(
        None, description="the text's p_r, or the prefix of the authors' release; only with contrastive"
    )
    l2: Annotated[float, Field(ge=0)] | None = Field(
        None, description="lambda of the regularised objective; only with objective squared_error"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Run:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} must be a multiple of heads {self.heads}")
        if (self.block == "stripped") != (self.ffn == 0):
            raise ValueError("ffn must be 0 for block 'stripped', which has no MLP, and positive for others")
        if (self.block == "eq6") != (self.model == "transformer/theory"):
            raise ValueError("block 'eq6' is that of model 'transformer/theory', which has no other")
        if self.block == "eq6" and (self.heads, self.position) != (1, "none"):
            raise ValueError("block 'eq6' has one head and position 'none'")
        if (self.contrastive > 0) != (self.contrastive_prefix is not None):
            raise ValueError("contrastive_prefix must be there exactly if contrastive is above 0")
        if (self.objective == "squared_error") != (self.l2 is not None):
            raise ValueError("l2 must be there exactly for objective 'squared_error'")
        if self.contrastive > 0 and self.objective != "next_token":
            raise ValueError("contrastive needs objective 'next_token'")
        if self.contrastive > 0 and self.position != "none":
            raise ValueError("contrastive needs position 'none': the inserted prefix would shift the code")
        return self


class SamplerCheck(TheoryEntry):
    """DYCK-D1: the chain against the exact law, by enumeration and by chi-squared tests."""

    module: Literal["sampler"]
    samples: Annotated[int, Field(ge=1000)]


class RandomAttentionCheck(TheoryEntry):
    """DYCK-A3: variation of random attention against its closed form."""

    module: Literal["random_attention"]
    matrices: Annotated[int, Field(ge=100)]
    repeats: Annotated[int, Field(ge=10, description="estimates from 40 matrices, for their standard deviation")]


class ExactSolverCheck(TheoryEntry):
    """DYCK-TH1, TH9: solvers with random balanced attention against the exact law, and how much their maps vary."""

    module: Literal["exact_solver"]
    solvers: Positive
    length: Annotated[int, Field(ge=20, description="of the strings, in tokens")]
    maps: Annotated[int, Field(ge=2, description="solvers whose attention on D4 is compared")]


class UniformAttentionCheck(TheoryEntry):
    """DYCK-TH2, TH3: two layers with uniform attention, with and without start token."""

    module: Literal["uniform_attention"]
    strings: Positive
    length: Annotated[int, Field(ge=20)]


class PumpingCheck(TheoryEntry):
    """DYCK-TH4: solvers broken by noise, under inserted pairs and at length."""

    module: Literal["pumping"]
    solvers: Positive
    pairs: Annotated[list[Positive], Field(min_length=2, description="inserted into a prefix")]
    strings: Positive
    lengths: Annotated[list[Positive], Field(min_length=2)]


class ApproximateBalanceCheck(TheoryEntry):
    """DYCK-TH5: Lemma 1 on random triples, and on the prefixes of the proof of Theorem 3."""

    module: Literal["approximate_balance"]
    triples: Annotated[int, Field(ge=100)]
    models: Positive
    lengths: Annotated[list[Annotated[int, Field(ge=33)]], Field(min_length=1, description="N > 8 D")]


class ResidualOrderCheck(TheoryEntry):
    """DYCK-TH10: the layers (6) and (52) on two prefixes of growing length."""

    module: Literal["residual_order"]
    lengths: Annotated[list[Positive], Field(min_length=1, description="odd")]

    @model_validator(mode="after")
    def _odd(self) -> ResidualOrderCheck:
        if any(length % 2 == 0 for length in self.lengths):
            raise ValueError("lengths must be odd: an open and pairs")
        return self


Candidates = Annotated[int, Field(ge=4, le=28, description="candidates per weight and sign, n")]


class PruningCheck(TheoryEntry):
    """DYCK-TH6: random parents pruned to random targets."""

    module: Literal["pruning"]
    layers: Annotated[list[Positive], Field(min_length=1, description="of the target")]
    candidates: Annotated[list[Candidates], Field(min_length=2)]
    seeds: Annotated[int, Field(ge=2, description="parents of each size, each with a target of its own")]


class SharedMatrixCheck(TheoryEntry):
    """DYCK-TH7: two targets, one parent, one matrix."""

    module: Literal["shared_matrix"]
    candidates: Candidates


class LemmaCheck(TheoryEntry):
    """DYCK-TH8: the technical lemmas, of C.5.1 or of C.6."""

    module: Literal["approximation_lemmas", "network_lemmas"]
    draws: Annotated[int, Field(ge=100, description="random inputs that every lemma meets")]


Theory = Annotated[
    SamplerCheck
    | RandomAttentionCheck
    | ExactSolverCheck
    | UniformAttentionCheck
    | PumpingCheck
    | ApproximateBalanceCheck
    | ResidualOrderCheck
    | PruningCheck
    | SharedMatrixCheck
    | LemmaCheck,
    Field(discriminator="module"),
]


class PlainExperiment(ExperimentEntry):
    """An experiment without settings of its own."""

    module: Literal["attention", "table1", "balance", "prefix", "copying", "constructions"]


class RepeatingExperiment(ExperimentEntry):
    """What the choices do that the texts leave open, and the factorial of DYCK-A4: models of other experiments are
    measured again beside others."""

    module: Literal["readings", "stack"]
    repeated: list[Id] = Field(
        description="entries of runs that other experiments measure: here only for the comparison"
    )

    @model_validator(mode="after")
    def _repeats_runs(self) -> RepeatingExperiment:
        if not set(self.repeated) <= set(self.runs):
            raise ValueError("repeated must be among runs")
        return self


class HeadsExperiment(ExperimentEntry):
    """DYCK-E11: models trained further without one of their heads."""

    module: Literal["heads"]
    finetune_dataset: Id = Field(description="what they are trained on further, one of datasets")
    finetune_steps: Positive = Field(description="training steps after a head is zeroed")
    finetune_rate: Annotated[float, Field(gt=0, description="their peak learning rate, in those of the run")]


class PruningExperiment(ExperimentEntry):
    """DYCK-TH6 on a trained target."""

    module: Literal["pruning"]
    candidates: Annotated[list[Candidates], Field(min_length=1)] = Field(
        description="candidates per weight: a random parent for each"
    )
    strings: Positive = Field(description="held-out strings on which the networks are compared")


Experiment = Annotated[
    PlainExperiment | RepeatingExperiment | HeadsExperiment | PruningExperiment, Field(discriminator="module")
]


class Analysis(Strict):
    """What all experiments share on the way from runs to tables."""

    min_accuracy: Probability = Field(
        description="a model has learned its task if its accuracy on strings like its training data is at least this"
    )
    confidence: Annotated[float, Field(gt=0.5, lt=1, description="of every interval")]
    stored_maps: Positive = Field(description="maps kept for figures: of the first replicas that count")


class Claims(Strict):
    """How tables become verdicts."""

    variation_tolerance: Annotated[float, Field(gt=0, description="claim 5: ours within this of the published value")]
