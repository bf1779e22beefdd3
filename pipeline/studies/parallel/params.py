"""What params/parallel/ may say."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from pipeline.params import (
    AveragedRunEntry,
    DatasetEntry,
    ExperimentEntry,
    GridRunEntry,
    Id,
    LabelsEntry,
    Positive,
    Probability,
    Strict,
    TheoryEntry,
)
from pipeline.studies.parallel.names import SETS

Inside = Annotated[float, Field(gt=0, lt=1)]
Coupling = Annotated[float, Field(ge=-5, le=20, description="J, each pair counted once")]
Spins = Annotated[int, Field(ge=2, le=10)]
Sizes = Annotated[list[Annotated[int, Field(ge=50)]], Field(min_length=2, description="n, samples of a fit, ascending")]
Repetitions = Annotated[int, Field(ge=2)]
Shape = Annotated[list[Annotated[int, Field(ge=2, le=4)]], Field(min_length=2, max_length=2)]
Decoders = Annotated[list[Shape], Field(min_length=1, description="[N, |Omega|] of each construction")]


def _compliant(value: float) -> float:
    if not value > 0:
        raise ValueError(
            f"{value:g} is not above 0: Propositions 4.1.4 and 4.1.5 need Assumption 4.1.5, which asks for "
            "J0 = J - ||h||_1 > 0 and h_G > 0"
        )
    return value


Compliant = Annotated[float, AfterValidator(_compliant)]


class Sets(Strict):
    """What has sets of masks of four positions."""

    masks: Annotated[
        dict[str, list[list[int]]],
        Field(description="sets of masks of four positions, numbered from 1; the masks of a set are equally likely"),
    ]

    @property
    def sets(self) -> dict[str, list[list[int]]]:
        """Return the sets of masks by their names; keys have hyphens for spaces, so that ``-S`` sets them."""
        return {key.replace("-", " "): blocks for key, blocks in self.masks.items()}

    @model_validator(mode="after")
    def _covers(self) -> Self:
        """Raise ValueError for a set that does not cover all positions, or without one that claims compare."""
        for name, blocks in self.sets.items():
            for block in blocks:
                if not block or len(set(block)) < len(block) or not set(block) <= {1, 2, 3, 4}:
                    raise ValueError(f"masks of {name!r}: {block} has other than different positions from 1 to 4")
            if len({len(block) for block in blocks}) != 1:
                raise ValueError(f"masks of {name!r} have several sizes, {blocks}: expected one")
            if lacking := {1, 2, 3, 4}.difference(*blocks):
                raise ValueError(f"masks of {name!r}, {blocks}, do not cover position {min(lacking)}")
        for name in SETS:
            if name not in self.sets:
                raise ValueError(f"masks lack {name!r}, which claims compare with others")
        return self


def _ascending(name: str, values: list[int] | list[float]) -> None:
    if sorted(set(values)) != values:
        raise ValueError(f"{name} must ascend without repeats, got {values}")


class Draws(DatasetEntry):
    """PAR-D2, PAR-D3: samples of a clique of all spins without fields, with one mask of each size for each."""

    kind: Literal["samples"]
    J: Coupling
    N: Literal[4] = Field(description="spins")
    n: Sizes
    repetitions: Repetitions = Field(description="samples of each size: the published repetitions")

    @model_validator(mode="after")
    def _orders(self) -> Self:
        _ascending("n", self.n)
        return self


class Corpus(DatasetEntry):
    """PAR-D10: the synthetic translation corpus."""

    kind: Literal["synmt"]
    alpha: Probability = Field(description="dial of dependency: how often register and particle are drawn")
    first_register: Probability = Field(description="probability of the first register, where it is drawn")
    stream: Id = Field(description="corpora that name the same stream have the same sources")
    blocks: Annotated[int, Field(ge=1, le=50)] = Field(description="of 24 words, in the lexicon")
    doubles: bool = Field(description="whether a quarter of the words have two tokens each")
    shortest: Annotated[int, Field(ge=2, le=60)] = Field(description="words of a sentence")
    longest: Annotated[int, Field(ge=2, le=60)] = Field(description="words of a sentence")
    train: Annotated[int, Field(ge=50)]
    valid: Annotated[int, Field(ge=1)]
    test: Annotated[int, Field(ge=10)]

    @model_validator(mode="after")
    def _lengths(self) -> Self:
        if self.shortest > self.longest:
            raise ValueError(f"shortest {self.shortest} is more than longest {self.longest}")
        return self


class Answered(Corpus, LabelsEntry):
    """The sources of a corpus with what models translated of them (distillation, section 4.2.3), without the test
    split.

    ``alpha`` is that of the corpus which the models learned.
    """

    kind: Literal["answered"]  # type: ignore[assignment]
    models: Annotated[int, Field(ge=0)] = Field(description="how many of the teacher's models translate")


class TranslatorShape(Strict):
    """The shape of a translator (`pipeline.models.parallel.translator`)."""

    width: Annotated[int, Field(ge=8)]
    heads: Positive
    inner: Annotated[int, Field(ge=8)] = Field(description="width of MLPs")
    encoder: Positive = Field(description="layers")
    decoder: Positive = Field(description="layers")
    buckets: Annotated[int, Field(ge=0)] = Field(description="of relative positions; 0: absolute ones")

    @model_validator(mode="after")
    def _heads(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        return self


class Translation(AveragedRunEntry):
    """PAR-M3, PAR-M4: encoder-decoders that decode in parallel, and their autoregressive twins."""

    model: Literal["parallel/translator"]
    shape: TranslatorShape
    causal: bool = Field(description="true: word by word")
    positional: bool = Field(description="positional attention in the decoder")
    unmask: Probability = Field(description="u, share of tokens that are kept where the decoder starts")
    stages: Annotated[int, Field(ge=1, le=4)] = Field(description="S, passes of training")
    start: Literal["random", "mask"] = Field(description="what stands where a token is hidden")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if len(self.lr) > 1 or self.averages:
            raise ValueError("expected one lr and no averages")
        return self


class SchemeDraws(DatasetEntry, Sets):
    """PAR-D6, PAR-D7: samples of laws of four spins, each with a mask of several sets."""

    kind: Literal["schemes"]
    n: Annotated[int, Field(ge=100, multiple_of=2, description="states of a sample")]
    repetitions: Repetitions = Field(description="samples of each law, with initial weights of their own")
    J_in: Annotated[list[Annotated[float, Field(gt=0, le=3)]], Field(min_length=1, description="within a pair")]
    J_out: Annotated[float, Field(ge=0, le=1, description="between pairs")]
    sigma: Annotated[list[Annotated[float, Field(gt=0, le=3)]], Field(min_length=1, description="of random models")]
    draws: Positive = Field(description="random models of each sigma")


Dataset = Annotated[Draws | SchemeDraws | Corpus | Answered, Field(discriminator="kind")]


class Fits(GridRunEntry):
    """Ising models fitted by gradient descent on full batches: a replica for each sample of the dataset."""

    model: Literal["ising/pairwise"]
    k: Literal[1, 2, 3, 4] = Field(description="positions that are masked")

    @model_validator(mode="after")
    def _full_batches(self) -> Self:
        if self.optimizer != "sgd" or self.batch != 1 or len(self.lr) > 1:
            raise ValueError("expected optimizer sgd, batch 1 (a whole sample) and one lr")
        return self


class MaskedRun(GridRunEntry):
    """Masked Transformers, trained on whole samples: a replica for each law, set of masks of ``k``, and repetition."""

    model: Literal["ising/transformer"]
    k: Literal[1, 2, 4] = Field(description="positions that are masked")
    width: Positive
    layers: Positive
    heads: Positive
    ffn: Positive
    std: Annotated[float, Field(gt=0)] = Field(description="of weights before training")
    snapshots: list[Annotated[int, Field(ge=0)]] = Field(description="steps after which weights are kept")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.batch != 1 or len(self.lr) > 1:
            raise ValueError("expected batch 1 (a whole sample) and one lr")
        if self.width % self.heads:
            raise ValueError(f"heads {self.heads} do not divide the width, {self.width}")
        if max(self.snapshots, default=0) > self.steps:
            raise ValueError(f"snapshots must lie within the steps, {self.steps}")
        return self


Run = Annotated[Fits | MaskedRun | Translation, Field(discriminator="model")]


class EstimationCheck(TheoryEntry):
    """Chapter 5.1 to 5.5 and 5.17: asymptotics of pseudolikelihood on random models."""

    module: Literal["estimation"]
    spins: Annotated[int, Field(ge=3, le=8)]
    draws: Annotated[int, Field(ge=1, description="random models of each sigma")]
    sigma: Annotated[list[Annotated[float, Field(gt=0, le=3)]], Field(min_length=1)]
    adaptive_spins: Annotated[int, Field(ge=2, le=4)]
    adaptive_draws: Annotated[int, Field(ge=1, description="random models with random weights of all masks")]
    points: Annotated[int, Field(ge=1, description="random parameters at which convexity is asked")]


class SamplingCheck(TheoryEntry):
    """Chapter 5.6, 5.7 and 5.13 to 5.16: chains, entropy, what a parallel decoder can be."""

    module: Literal["sampling"]
    spins: Annotated[int, Field(ge=3, le=6)]
    draws: Annotated[int, Field(ge=1, description="random models of each sigma")]
    sigma: Annotated[list[Annotated[float, Field(gt=0, le=3)]], Field(min_length=1)]
    decays: Annotated[int, Field(ge=10, description="random (q, p_0, t, k) whose C_AT is known")]
    starts: Annotated[int, Field(ge=2, description="random laws from which C_AT is searched")]
    decoders: Decoders
    compositions: Positive = Field(description="steps of a map that are composed")


class CliquesCheck(TheoryEntry):
    """Chapter 5.8 to 5.12: modes, algebra of the propositions, finite samples."""

    module: Literal["cliques"]
    models: Annotated[int, Field(ge=2, description="random models under Assumption 4.1.5")]
    sizes: Annotated[list[Annotated[int, Field(ge=3, le=100)]], Field(min_length=1, description="c of Prop. 4.1.5")]
    gaps: Annotated[list[Annotated[float, Field(gt=0, le=10)]], Field(min_length=1, description="J_0")]
    deltas: Annotated[list[Inside], Field(min_length=1)]


Theory = Annotated[EstimationCheck | SamplingCheck | CliquesCheck, Field(discriminator="module")]


class Masking(ExperimentEntry):
    """EXP-1 and EXP-2, Figures 4.1 and 4.2: error against sample size, for each number of masked positions."""

    module: Literal["masking"]
    n: Sizes
    repetitions: Annotated[int, Field(ge=10, multiple_of=10)] = Field(description="samples of each size")
    shown: Repetitions = Field(description="repetitions whose fits the tables list, as many as are published")

    @model_validator(mode="after")
    def _orders(self) -> Self:
        _ascending("n", self.n)
        return self


class Hitting(ExperimentEntry):
    """EXP-3, Figure 4.3: steps to R_1."""

    module: Literal["hitting"]
    N: Spins
    c: Annotated[int, Field(ge=2, le=10, description="spins of the clique")]
    h: Annotated[float, Field(description="field on every spin")]
    J: Annotated[list[Coupling], Field(min_length=2, description="ascending")]
    budget: Annotated[int, Field(ge=1)] = Field(description="steps after which a run is given up")
    shown: Repetitions = Field(description="runs that the tables list, as many as are published")
    runs_gibbs: Repetitions = Field(description="of k-Gibbs, in each cell")
    runs_independent: Repetitions = Field(description="of independent parallel sampling, in each cell")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        _ascending("J", self.J)
        if self.c > self.N:
            raise ValueError(f"a clique of {self.c} does not fit {self.N} spins")
        if max(self.shown, 2) > min(self.runs_gibbs, self.runs_independent):
            raise ValueError(f"shown {self.shown} is more than the runs of a cell")
        return self


class Separation(Strict):
    """One cell of Corollary 4.1.1."""

    delta: Inside
    M: Positive = Field(description="steps of independent parallel sampling")


class PropositionsExperiment(ExperimentEntry):
    """EXP-4: Propositions 4.1.4 and 4.1.5, Corollary 4.1.1."""

    module: Literal["propositions"]
    reach_c: Annotated[list[Annotated[int, Field(ge=2, le=10)]], Field(min_length=1)]
    reach_more: Annotated[list[Annotated[int, Field(ge=0, le=10)]], Field(min_length=1, description="N - c")]
    reach_J0: Annotated[list[Compliant], Field(min_length=1)]
    reach_h_G: Annotated[list[Compliant], Field(min_length=1)]
    reach_delta: Annotated[list[Inside], Field(min_length=1)]
    stuck_c: Annotated[list[Annotated[int, Field(ge=3, le=100)]], Field(min_length=1)]
    stuck_J0: Annotated[list[Compliant], Field(min_length=1)]
    stuck_h_G: Compliant
    stuck_delta: Annotated[list[Inside], Field(min_length=1)]
    separations: Annotated[list[Separation], Field(min_length=1)]
    times: Annotated[list[Positive], Field(min_length=1, description="N over c of a separation")]
    simulated: Annotated[int, Field(ge=0, description="cells of Proposition 4.1.4 that are run as well")]
    trials: Repetitions = Field(description="runs of each such cell")


class Finite(Strict):
    """EXP-7: Theorem 4.1.4 on two spins."""

    truth: Annotated[float, Field(ge=-1, le=1, description="of the one parameter")]
    n: Sizes
    m: Annotated[list[Positive], Field(min_length=1, description="masks of each sample")]
    delta: Inside
    eps: Annotated[float, Field(gt=0)]
    repetitions: Repetitions


class DesignExperiment(ExperimentEntry, Sets):
    """EXP-6 and EXP-7: sets of masks, total correlation, finite samples."""

    module: Literal["design"]
    J_in: Annotated[list[Annotated[float, Field(gt=0, le=3)]], Field(min_length=1, description="within a pair")]
    J_out: Annotated[float, Field(ge=0, le=1, description="between pairs")]
    couplings: Annotated[list[Coupling], Field(min_length=1, description="J of cliques of four, for correlations")]
    decoders: Decoders
    compositions: Positive = Field(description="steps of a map that are composed")
    passes: Annotated[list[Positive], Field(min_length=1, description="of independent parallel sampling, ascending")]
    random: Annotated[int, Field(ge=0, description="random models beside, of each sigma")]
    sigma: Annotated[list[Annotated[float, Field(gt=0, le=3)]], Field(min_length=1)]
    finite: Finite


class TranslationExperiment(ExperimentEntry):
    """EXP-8: parallel decoding against decoding word by word."""

    module: Literal["translation"]
    passes: Annotated[list[Positive], Field(min_length=2, description="T, passes of the decoder, ascending")]
    beam: Annotated[int, Field(ge=2, le=10, description="B_l, lengths that are tried where it is not one")]
    sentences: Annotated[int, Field(ge=10)] = Field(description="of the test split that models translate")
    shown: Positive = Field(description="sentences of which the tables list outputs")

    @model_validator(mode="after")
    def _orders(self) -> Self:
        _ascending("passes", self.passes)
        return self


class AttentionExperiment(ExperimentEntry):
    """EXP-9: what attention says of stuttering."""

    module: Literal["attention"]
    passes: Annotated[list[Positive], Field(min_length=1, description="T, the pass whose attention is read")]
    sentences: Annotated[int, Field(ge=10)] = Field(description="of the test split that models translate")
    shown: Positive = Field(description="sentences whose pairs the tables list")


class UntrainedExperiment(ExperimentEntry):
    """The control of EXP-9: attention of translators that were never trained."""

    module: Literal["untrained"]
    replicas: Repetitions
    shape: TranslatorShape
    passes: Annotated[list[Positive], Field(min_length=1, description="T, the pass whose attention is read")]
    sentences: Annotated[int, Field(ge=10)] = Field(description="of the test split, with true lengths of targets")


class SchemesExperiment(ExperimentEntry):
    """Beyond the source: masked Transformers under several sets of masks."""

    module: Literal["schemes"]


Experiment = Annotated[
    Masking
    | Hitting
    | PropositionsExperiment
    | DesignExperiment
    | SchemesExperiment
    | TranslationExperiment
    | AttentionExperiment
    | UntrainedExperiment,
    Field(discriminator="module"),
]


class Analysis(Strict):
    """Settings that all experiments share."""

    confidence: Annotated[float, Field(gt=0.5, lt=1)]


class Claims(Strict):
    """Settings of claims."""
