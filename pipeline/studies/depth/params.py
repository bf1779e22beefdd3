"""What params/depth/ may say."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from pipeline.params import DatasetEntry, ExperimentEntry, GridRunEntry, Positive, Probability, Strict, TheoryEntry

Tokens = Annotated[int, Field(ge=2, le=2000)]
Length = Annotated[int, Field(ge=2, le=6, description="tokens of a template, l")]
Context = Annotated[int, Field(ge=1, le=16, description="pairs or examples of a context, k")]


class Classification(DatasetEntry):
    """DEP-D1: sequences to be memorized, a corpus for each number of them."""

    task: Literal["sc"]
    d1: Tokens
    l: Annotated[int, Field(ge=1, le=20, description="tokens of a sequence")]
    sizes: list[Positive] = Field(min_length=1, description="sequences of each corpus, N")


class _Fresh(DatasetEntry):
    train: Positive = Field(description="training sequences: at least steps times batch of its runs")
    held: Positive = Field(description="sequences of every split for evaluation")


class QuestionAnswering(_Fresh):
    """DEP-D2: k pairs of question and answer, then a question."""

    task: Literal["ic_qa"]
    k: Context
    d1: Tokens
    d2: Tokens

    @model_validator(mode="after")
    def _enough(self) -> QuestionAnswering:
        if self.k > min(self.d1, self.d2):
            raise ValueError(f"k {self.k} must not exceed d1 {self.d1} and d2 {self.d2}: nothing repeats")
        return self


class TemplateMatching(_Fresh):
    """DEP-D3: which template has the sequence? The last ``unseen`` of the d1 tokens never occur in training."""

    task: Literal["tm"]
    l: Length
    d1: Tokens
    unseen: Positive

    @model_validator(mode="after")
    def _enough(self) -> TemplateMatching:
        if self.unseen < self.l or self.d1 - self.unseen < max(5, self.l):
            raise ValueError(f"at l {self.l}, unseen must be at least l, and 5 and l tokens of d1 {self.d1} be left")
        return self


class Contextual(_Fresh):
    """DEP-D4: k examples of templates with their answers, then a query of one of these templates."""

    task: Literal["ic_tm"]
    k: Context
    l: Length
    d1: Tokens
    d2: Tokens

    @model_validator(mode="after")
    def _enough(self) -> Contextual:
        if self.k > self.d2 or self.l > self.d1:
            raise ValueError(f"k {self.k} must not exceed d2 {self.d2}, nor l {self.l} d1 {self.d1}")
        return self


class Nested(_Fresh):
    """DEP-D5: chains of lookups, a corpus for each number of hops to the end of the chain."""

    task: Literal["nested"]
    hops: list[Positive] = Field(min_length=1)
    links: Positive = Field(description="pairs of a chain")
    chains: Positive
    d1: Tokens

    @model_validator(mode="after")
    def _enough(self) -> Nested:
        if max(self.hops) > self.links:
            raise ValueError(f"hops {self.hops} must not exceed links {self.links}")
        if self.d1 < self.chains * (self.links + 1):
            raise ValueError(f"d1 {self.d1} must be at least {self.chains * (self.links + 1)}: no token repeats")
        return self


Dataset = Annotated[
    Classification | QuestionAnswering | TemplateMatching | Contextual | Nested, Field(discriminator="task")
]


class Run(GridRunEntry):
    """An ensemble of attention-only Transformers over a grid of learning rates; one layer per entry of ``heads``."""

    experiment: Literal["exp-1", "exp-2", "exp-3", "exp-5", "exp-6", "control", "ablation"] = Field(
        description="what it is for; runs of exp-1 are the reference of exp-2 and exp-3"
    )
    heads: list[Positive] = Field(min_length=1, max_length=6, description="of each layer")
    attention: Literal["relu", "softmax"]
    width: Positive = Field(description="d'")
    trained: Literal["all", "classifier"] = Field(
        description="with 'classifier' attention stays as it starts (W and V frozen)"
    )
    init: Literal["memorization", "construction", "random"] = Field(
        description="W uniform in [0, 1) (DEP-R1 for sc); from a construction (DEP-R1 else); everything normal (DEP-R2)"
    )
    readout: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="upper end of the classifier's initial weights; not with init 'random'"
    )
    constructed: Annotated[list[Literal["parsing", "copying"]], Field(min_length=1)] | None = Field(
        None, description="patterns that the first layers start from; only with init 'construction'"
    )
    later: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="upper end of W in the other layers; only with init 'construction'"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Run:
        if (self.init == "random") == (self.readout is not None):
            raise ValueError("readout must be there exactly if init is not 'random'")
        if not ((self.init == "construction") == (self.constructed is not None) == (self.later is not None)):
            raise ValueError("constructed and later must be there exactly for init 'construction'")
        if self.constructed is not None and len(self.constructed) > len(self.heads):
            raise ValueError(f"constructed names {len(self.constructed)} layers, heads has {len(self.heads)}")
        return self


# Theory (chapter section 5)

Templates = Annotated[list[Annotated[int, Field(ge=2, le=6)]], Field(min_length=1, description="l")]
Inputs = Annotated[int, Field(ge=10, description="random inputs of every construction")]
Alphabet = Annotated[int, Field(ge=10, description="question tokens, and answers, of random inputs")]


class OneLayerCheck(TheoryEntry):
    """DEP-T7, T1: gadgets, and one layer that memorizes."""

    module: Literal["one_layer"]
    inputs: Inputs
    tokens: Alphabet
    sequences: Annotated[int, Field(ge=20, description="sequences to memorize, and a tenth of them")]


class ImpossibilityCheck(TheoryEntry):
    """DEP-T2, T4, T8: random models of one layer."""

    module: Literal["impossibility"]
    models: Annotated[int, Field(ge=2, description="random models for each number of heads")]
    heads: Annotated[list[Positive], Field(min_length=1)]
    lengths: Annotated[list[Annotated[int, Field(ge=2, le=4)]], Field(min_length=1, description="of templates")]
    tokens: Annotated[int, Field(ge=4, le=5, description="over which templates are filled in every way")]


class ReasoningCheck(TheoryEntry):
    """DEP-T3, T9: copy and match, once and several times."""

    module: Literal["reasoning"]
    inputs: Inputs
    tokens: Alphabet
    examples: Annotated[list[Annotated[int, Field(ge=1, le=10)]], Field(min_length=1, description="k")]
    hops: Annotated[list[Annotated[int, Field(ge=1, le=4)]], Field(min_length=1)]


class GeneralizationCheck(TheoryEntry):
    """DEP-T5: parse and map."""

    module: Literal["generalization"]
    inputs: Inputs
    tokens: Alphabet
    lengths: Templates


class ContextualCheck(TheoryEntry):
    """DEP-T6: parse, copy and match."""

    module: Literal["contextual"]
    inputs: Inputs
    tokens: Alphabet
    lengths: Templates
    examples: Annotated[int, Field(ge=2, le=10, description="k, at most; contexts of 2 as well")]


Theory = Annotated[
    OneLayerCheck | ImpossibilityCheck | ReasoningCheck | GeneralizationCheck | ContextualCheck,
    Field(discriminator="module"),
]


# Experiments (chapter section 4)


class Examples(ExperimentEntry):
    """DEP-F1: what the tasks look like."""

    module: Literal["examples"]
    shown: Positive = Field(description="sequences of each task")


class Attention(ExperimentEntry):
    """EXP-4: attention maps."""

    module: Literal["attention"]
    stored: Positive = Field(description="models of a run whose maps are kept for figures")


class Trained(ExperimentEntry):
    """EXP-1 to 3, 5 and 6: how training ends."""

    module: Literal["layers", "heads", "contextual", "random_start", "nested"]


Experiment = Annotated[Examples | Attention | Trained, Field(discriminator="module")]


class Analysis(Strict):
    """How runs become tables, in every experiment."""

    threshold: Probability = Field(
        description="accuracy whose first step is reported (steps_to_95); in context from there a model has learned"
    )
    solved: Probability = Field(description="final accuracy from which a model has learned any other task")
    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    probes: Positive = Field(description="test sequences on which attention is compared with the construction")


class Claims(Strict):
    """How tables become verdicts."""

    close: Annotated[float, Field(gt=0, lt=1, description="claim 6: how far heads may move the final accuracy")]
