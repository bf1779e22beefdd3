"""What params/verifier/ may say."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pipeline.params import (
    DatasetEntry,
    ExperimentEntry,
    GridRunEntry,
    LabelsEntry,
    Positive,
    Probability,
    Strict,
    TheoryEntry,
)
from pipeline.studies.verifier import params_theory

Inside = Annotated[float, Field(gt=0, lt=1)]
Even = Annotated[int, Field(ge=2, le=200, multiple_of=2)]
Cuts = Annotated[list[Positive], Field(min_length=2, max_length=2)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z_]*$")]
Temperature = Annotated[float, Field(ge=0, description="0: the likeliest sign")]
Replicas = Annotated[int, Field(ge=0)]


class Law(Strict):
    """Balanced strings of one length (Definition 3.2.1)."""

    brackets: Even = Field(description="D")
    q: Inside = Field(description="probability of an open where both are possible")
    max_depth: Positive = Field(description="where a closer is forced; D / 2 is no bound")


class StringSet(Strict):
    """One set of strings."""

    p: Inside = Field(description="share of brackets of kind 0: 0.2 as in training, 0.8 out of distribution")
    strings: Positive
    cut: bool = Field(description="to prompts")


class Prompts(Law):
    """Prompts cut from such strings."""

    cut: Cuts = Field(description="brackets of a prompt, N: least, most")

    @model_validator(mode="after")
    def _within(self) -> Self:
        least, most = self.cut
        if not least <= most < self.brackets:
            raise ValueError(f"cut must be two lengths in order below {self.brackets} brackets, got {self.cut}")
        return self


class Strings(Prompts, DatasetEntry):
    """DATA-DYCK, DATA-OOD: whole strings, and prompts cut from such."""

    kind: Literal["strings"]
    sets: dict[Name, StringSet] = Field(min_length=1)


class Mistakes(Prompts, LabelsEntry):
    """DATA-ERR: what models get wrong on prompts out of distribution, and as many strings of the grammar.

    Twice: for verifiers to be trained on, and from further prompts for whatever is measured of them.
    """

    kind: Literal["mistakes"]
    p: Inside = Field(description="share of brackets of kind 0 in prompts")
    mistakes: Positive = Field(description="of each model, for training; published are 441")
    held: Positive = Field(description="of each model, from further prompts")
    most: Positive = Field(description="prompts that are tried at most")
    top_p: Probability


class Corpus(Strict):
    """The law of documents of test cases (`pipeline.languages.test_cases.Corpus`)."""

    cases: Positive = Field(description="K")
    demonstrations: Annotated[int, Field(ge=0)]
    zipf: Annotated[float, Field(ge=0, description="exponent of the law of digits")]
    corruption: Annotated[
        list[Probability], Field(min_length=4, max_length=4, description="of lines with lists of 0, 1, 2, 3 digits")
    ]
    first: Probability = Field(description="share of corruptions that put the value first")
    reserved: Probability = Field(description="share of names with a body of their own")
    append: Probability = Field(description="share of other names whose body is APPEND")
    carried: Probability = Field(description="of lists that are the right-hand side of the line before")
    rambling: Probability = Field(description="of documents that go on behind their cases")


class Cases(DatasetEntry):
    """DATA-CODE by its stand-in SYN-TC: held-out documents, and prompts for names."""

    kind: Literal["cases"]
    corpus: Corpus
    documents: Positive
    names: Positive = Field(description="random names that are tested; reserved ones are all tested beside them")


Dataset = Annotated[Strings | Mistakes | Cases, Field(discriminator="kind")]


class Average(Strict):
    """The moving average of the weights: kept is 1 - max((t+1)^-power, least)."""

    start: Annotated[int, Field(ge=0, description="0-based step of the first such share")]
    before: Inside = Field(description="share that is kept before")
    power: Annotated[float, Field(gt=0)]
    least: Inside


class Decoders(GridRunEntry):
    """Decoders of the Llama shape."""

    weight_decay: Annotated[float, Field(ge=0)]
    warmup: Annotated[int, Field(ge=0)] = Field(description="steps in which the rate rises to its peak")
    layers: Positive
    heads: Positive
    width: Positive
    inner: Positive = Field(description="width of the gated MLP")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.width % (2 * self.heads):
            raise ValueError(f"width {self.width} must be a multiple of twice the heads, {2 * self.heads}")
        if self.optimizer != "adamw" or self.warmup >= self.steps or len(self.lr) > 1:
            raise ValueError(f"expected optimizer adamw, one lr, and a warmup of less than the {self.steps} steps")
        return self


class StringRun(Law, Decoders):
    """MODEL-DYCKLM."""

    task: Literal["strings"]
    p: Inside = Field(description="share of brackets of kind 0 in training strings")
    average: Average


class CaseRun(Decoders):
    """MODEL-CLLAMA by its stand-in: models of documents of test cases."""

    task: Literal["cases"]
    corpus: Corpus


Run = Annotated[StringRun | CaseRun, Field(discriminator="task")]


class StringsCheck(TheoryEntry):
    """Equations 3.3 and 3.4 by enumeration."""

    module: Literal["strings"]
    p: Inside
    q: Inside
    brackets: Annotated[list[Annotated[int, Field(ge=2, le=10, multiple_of=2)]], Field(min_length=1)]


Theory = Annotated[StringsCheck | params_theory.Theory, Field(discriminator="module")]


class Models(ExperimentEntry):
    """E-D0: what the language models learned."""

    module: Literal["models"]
    top_p: Probability = Field(description="with which prompts are completed")


class Classifiers(ExperimentEntry):
    """E-D1 and Figure 3.1: verifiers of hidden states."""

    module: Literal["classifiers"]
    clusters: list[Annotated[int, Field(ge=2)]] = Field(min_length=1, description="k of k-means")
    embeddings: list[Annotated[int, Field(ge=0)]] = Field(min_length=1, description="random states of t-SNE")
    perplexity: Annotated[float, Field(gt=1)]


class Prefixes(ExperimentEntry):
    """Tables 3.1, 3.2 and 3.4: backtracking from prefixes at which models make mistakes."""

    module: Literal["prefixes"]
    top_p: Probability
    forced: list[Positive] = Field(min_length=2, description="strides of a single backtrack, ascending")
    quotas: list[Positive] = Field(min_length=2, description="Q of Algorithm 1, ascending")
    strides: list[Positive] = Field(min_length=2, description="B of Algorithm 1, ascending")


class Unseen(ExperimentEntry):
    """Tables 3.3, 3.5, 3.16 and Figure 3.2: unseen prompts out of distribution."""

    module: Literal["unseen"]
    top_p: list[Probability] = Field(min_length=2, max_length=2, description="the lower first")
    quota: Positive
    stride: Positive
    without: list[Probability] = Field(description="further top_p without a verifier; 0: the likeliest sign alone")
    repeats: Positive = Field(description="completions of each prompt: the source's runs")
    diversity: Annotated[int, Field(ge=2, description="completions of each prompt of Table 3.5")]
    learned: Probability = Field(
        description="share of a verifier's mistakes of a length, from which it is said to have learned from it"
    )

    @model_validator(mode="after")
    def _has_what_is_compared(self) -> Self:
        both = [*self.without, *self.top_p]
        if 0 not in self.without or len(set(both)) < len(both):
            raise ValueError(f"without must have 0 and no top_p twice or of {self.top_p}, got {self.without}")
        return self


Setting = Annotated[
    list[Annotated[float, Field(ge=0)]], Field(min_length=2, max_length=2, description="top_p, temperature")
]


class CaseDecoding(ExperimentEntry):
    """How documents of test cases are completed, and how verifiers learn from them."""

    budget: Positive = Field(description="tokens of a completion at most; 384 in the source")
    repetitions: Positive = Field(description="completions of a prompt in a run")
    runs_compared: Positive = Field(description="runs of the decoders of claims 23 and 26; 5 in the source")
    verifier_repetitions: Positive = Field(description="completions of a prompt from which verifiers learn")
    main: Setting = Field(description="at which ablations are made")
    settings: list[Setting] = Field(min_length=1, description="at which Algorithm 1 is compared")
    thresholds: list[Probability] = Field(min_length=1, max_length=2, description="the careful one first")
    quota: Positive
    stride: Positive
    further: list[Positive] = Field(description="a larger quota and a larger stride, tried one by one; or none")
    top_p: list[Probability] = Field(min_length=1, description="of decoders without a verifier")
    temperatures: list[Temperature] = Field(min_length=2, description="of decoders without a verifier, ascending")

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if len(self.further) not in (0, 2):
            raise ValueError(f"further must be a quota and a stride, or empty, got {self.further}")
        for stride in (self.stride, *self.further[1:]):
            if stride > self.budget:
                raise ValueError(f"stride {stride} is longer than a completion, {self.budget} tokens at most")
        for where in self.settings:
            if where[0] > 1:
                raise ValueError(f"a setting is top_p, from 0 to 1, and a temperature, got {where}")
        if self.main not in self.settings:
            raise ValueError(f"main {self.main} must be among the settings {self.settings}")
        return self


class CaseTrees(Strict):
    """VGB-TC: the trees below prompts whose laws are exact."""

    prompts: Positive
    listed: Annotated[int, Field(ge=1, le=3)] = Field(description="digits of a line's list; H is twice as many and 2")
    digits_drawn: Annotated[int, Field(ge=2, le=10)] = Field(description="actions: the digits from 0")


class TestCases(CaseDecoding):
    """The analogues of Tables 3.6, 3.9 to 3.13, 3.15, 3.17 and Figures 3.3, 3.4 on documents of test cases."""

    module: Literal["cases"]
    runs_others: Positive = Field(description="runs of all other decoders")
    layers: list[Annotated[int, Field(ge=0)]] = Field(description="whose states verifiers read, beside the last")
    depths: list[Annotated[int, Field(ge=2)]] = Field(description="of verifiers, beside linear ones")
    candidates: list[Annotated[int, Field(ge=2)]] = Field(
        min_length=3, max_length=3, description="of block best-of-n, ascending"
    )
    trees: CaseTrees


class Robustness(CaseDecoding):
    """What Algorithm 1 gains on documents of other settings, which were tried before the one that is reported."""

    module: Literal["robustness"]


class Thresholds(CaseDecoding):
    """Table 3.10 by the stand-in for two numbers of test cases in a prompt (claim 25)."""

    module: Literal["thresholds"]

    @model_validator(mode="after")
    def _two(self) -> Self:
        if len(self.thresholds) != 2:
            raise ValueError(f"expected two thresholds, the careful one first, got {self.thresholds}")
        return self


class VgbDyck(ExperimentEntry):
    """VGB-DYCK: exact laws of samplers below prompts."""

    module: Literal["vgb_dyck"]
    prompts: Positive
    horizons: list[Annotated[int, Field(ge=1, le=6)]] = Field(min_length=1, description="brackets that are left, H")


class StringSets(ExperimentEntry):
    """What the sets of strings are like."""

    module: Literal["strings"]
    q: Inside = Field(description="probability of an open, as in the dataset")
    max_depth: Positive = Field(description="the bound on depths, as in the dataset")


class Pretrained(ExperimentEntry):
    """MODEL-CLLAMA itself, where somebody has it."""

    module: Literal["pretrained"]
    folder: str | None = Field(
        description="of a model of the Llama architecture, as Hugging Face keeps it: config.json, weights in "
        "safetensors, tokenizer.json; null: none is there"
    )
    cases: Positive = Field(description="test cases that a prompt asks for")
    names: Positive = Field(description="random names that are tested")
    budget: Positive = Field(description="tokens of a completion at most")
    repetitions: Positive = Field(description="completions of a prompt in a run")
    runs_of_each: Positive = Field(description="runs of each decoder")
    verifier_repetitions: Positive = Field(description="completions of a prompt from which the verifier learns")
    settings: list[Setting] = Field(min_length=1)
    thresholds: list[Probability] = Field(min_length=1)
    quota: Positive
    stride: Positive
    layer: Annotated[int, Field(ge=0, description="whose state the verifier reads; 0: the embeddings")]

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.stride > self.budget:
            raise ValueError(f"stride {self.stride} is longer than a completion, {self.budget} tokens at most")
        for where in self.settings:
            if where[0] > 1:
                raise ValueError(f"a setting is top_p, from 0 to 1, and a temperature, got {where}")
        return self


class Played(ExperimentEntry):
    """What the page needs to play Algorithm 1."""

    module: Literal["played"]
    prompts: Positive = Field(description="unseen ones, and as many that end before a mistake of the model")
    top_p: Probability = Field(description="at first; as quota and stride it can be changed in the page")
    quota: Positive
    stride: Positive


Experiment = Annotated[
    Models
    | Classifiers
    | Prefixes
    | Unseen
    | TestCases
    | Robustness
    | Thresholds
    | VgbDyck
    | Played
    | Pretrained
    | StringSets
    | params_theory.Experiment,
    Field(discriminator="module"),
]


class Training(Strict):
    """How verifiers of hidden states are trained."""

    splits: Positive = Field(description="random splits into samples for training and for validation")
    share: Inside = Field(description="of the samples that is for training: published are 792 of 882")
    epochs: Positive
    batch: Positive
    lr: Annotated[float, Field(gt=0)]
    weight_decay: Annotated[float, Field(ge=0)]
    hidden: Positive = Field(description="width between the layers of one with several")
    threshold: Probability = Field(description="reject below this probability of being right")


class Analysis(Strict):
    """Settings that all experiments share."""

    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    verifier: Training


class Claims(Strict):
    """Settings of claims."""

    least_accuracy: Probability = Field(description="claim 9: of closers, in distribution")
    greedy: Probability = Field(description="claim 22: 0.05 more than one over the repetitions")
