"""What params/topic/ may say."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pipeline.params import (
    AveragedRunEntry,
    DatasetEntry,
    ExperimentEntry,
    GridRunEntry,
    Positive,
    Probability,
    Strict,
    TheoryEntry,
)

CellName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]


class Disjoint(DatasetEntry):
    """Documents of disjoint topics: mixtures of latent Dirichlet allocation, or the theory's exact topics."""

    kind: Literal["disjoint"]
    topics: Annotated[int, Field(ge=2, le=24, description="T")]
    words: Annotated[int, Field(ge=2, le=24, description="words of a topic, v")]
    alpha: Annotated[float, Field(gt=0)] | None = Field(None, description="of the Dirichlet law of shares of topics")
    chosen: Positive | None = Field(None, description="topics of a document, tau, in equal shares")
    shortest: Annotated[int, Field(ge=1, description="tokens of the shortest document")]
    longest: Annotated[int, Field(ge=1, le=255, description="tokens of the longest document")]
    train: Positive = Field(description="documents to train on")
    dev: Positive = Field(description="held-out documents")
    p_mask: Annotated[float, Field(gt=0, lt=1, description="probability that a position is masked, p_m")]
    p_keep: Annotated[float, Field(ge=0, lt=1, description="that a masked position stays as it is, p_c")]
    p_random: Annotated[float, Field(ge=0, lt=1, description="that a masked position shows a random id, p_r")]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.alpha is None) == (self.chosen is None):
            raise ValueError("exactly one of alpha (mixtures) and chosen (exact topics) says what documents are")
        if self.chosen is not None and self.chosen >= self.topics:
            raise ValueError(f"chosen {self.chosen} must be less than the topics, {self.topics}")
        if self.shortest > self.longest:
            raise ValueError(f"shortest {self.shortest} must be at most longest, {self.longest}")
        if self.p_keep + self.p_random >= 1:
            raise ValueError("p_keep + p_random must be less than 1: some positions show the mask")
        if self.topics * self.words + 3 > 255:
            raise ValueError(f"{self.topics} topics of {self.words} words: ids must fit into a byte")
        return self


class StandIn(DatasetEntry):
    """A corpus that stands in for natural language: its documents, or its words."""

    content: Literal["texts", "words"] = Field(description="what the dataset holds")
    stop_words: Positive = Field(description="words that no topic keeps")
    shortest: Positive = Field(description="words of the shortest document")
    longest: Annotated[int, Field(ge=1, le=253, description="words of the longest document")]
    dev: Positive = Field(description="held-out documents")
    p_mask: Annotated[float, Field(gt=0, lt=1, description="probability that a word is masked")]
    p_keep: Annotated[float, Field(ge=0, lt=1, description="that a masked word stays as it is")]
    p_random: Annotated[float, Field(ge=0, lt=1, description="that a masked word shows a random one")]

    @model_validator(mode="after")
    def _masks(self) -> Self:
        if self.shortest > self.longest:
            raise ValueError(f"shortest {self.shortest} must be at most longest, {self.longest}")
        if self.p_keep + self.p_random >= 1:
            raise ValueError("p_keep + p_random must be less than 1: some words show the mask")
        return self


class Overlapping(StandIn):
    """Documents of topics that share words, and have stop words (chapter, S1)."""

    kind: Literal["overlapping"]
    topics: Annotated[int, Field(ge=2)]
    words: Annotated[int, Field(ge=2, le=30000, description="that topics make, all together")]
    shape: Annotated[float, Field(gt=0, description="of the gamma law of words in topics")]
    exponent: Annotated[float, Field(gt=0, description="by which words of a topic become rarer with their rank")]
    stop_share: Annotated[float, Field(gt=0, lt=1, description="share of stop words among all")]
    alpha_shortest: Annotated[
        float, Field(gt=0, description="of the Dirichlet law of shares of topics, shortest documents")
    ]
    alpha_longest: Annotated[float, Field(gt=0, description="the same, longest documents")]
    train: Positive = Field(description="documents to train on")


class Reference(StandIn):
    """Paragraphs of the Python language reference (chapter, S2)."""

    kind: Literal["reference"]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="of the text, JSON in UTF-8")]
    fewest: Positive = Field(description="times that a word occurs, or it is left out")
    paragraphs: Positive = Field(description="that are taken, of those that there are")

    @model_validator(mode="after")
    def _held_out(self) -> Self:
        if self.dev >= self.paragraphs:
            raise ValueError(f"dev {self.dev} must be less than paragraphs, {self.paragraphs}")
        return self


Dataset = Annotated[Disjoint | Overlapping | Reference, Field(discriminator="kind")]


class Cell(Strict):
    """What models of one run differ in, beside learning rate and seed."""

    loss: Literal["ce", "sq_sum", "sq_mean"] = Field(
        description="cross-entropy, or squared distance: summed over outputs or averaged"
    )
    l2: Annotated[float, Field(ge=0, description="weight of the sum of squares of all trained numbers")]


class OneLayer(GridRunEntry):
    """Transformers of one layer that read what documents count: ``replicas`` for each cell and learning rate."""

    kind: Literal["one-layer"]
    masking: Literal["thesis", "released"] = Field(
        description="released: masked positions are no keys, random ids may be special, documents have two ends"
    )
    cells: dict[CellName, Cell] = Field(min_length=1)
    embedding: Literal["one_hot", "trained", "normalised"]
    width: Positive | None = Field(None, description="of trained embeddings; none: as many as ids")
    attention: Literal["trained", "uniform"]
    values: Literal["trained", "frozen", "identity"]
    frozen_values: Literal["block", "diagonal"] | Annotated[float, Field(gt=0)] | None = Field(
        None, description="theorem 2.1.2, definition 2.1.2, or so many times the identity on words"
    )
    bias: Literal["trained", "frozen", "none"] = Field(description="of the head; frozen: that of theorem 2.1.1")
    std: Annotated[float, Field(gt=0, description="standard deviation of initial matrices")]
    std_embedding: Annotated[float, Field(gt=0)] | None = Field(
        None, description="of initial embeddings, or of the type of normalised ones; none: that of the other matrices"
    )
    online: Positive = Field(description="held-out documents that the curves are measured on")
    snapshots: list[Annotated[int, Field(ge=0)]] = Field(description="steps after which weights are kept")

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.values == "frozen") != (self.frozen_values is not None):
            raise ValueError("frozen_values says what is frozen exactly where values is 'frozen'")
        if (self.embedding == "normalised") != (self.model == "topic/normalised"):
            raise ValueError("embeddings are normalised exactly in the model topic/normalised")
        if self.embedding == "normalised" and (self.values != "trained" or self.bias != "none" or self.width):
            raise ValueError(
                "with normalised embeddings values are trained, without a bias of the head, as wide as ids"
            )
        if self.embedding == "one_hot":
            if self.bias != "none" or self.values == "identity":
                raise ValueError("one-hot embeddings have no bias of the head, and values that are no identity")
            if self.width is not None or self.std_embedding is not None:
                raise ValueError("width and std_embedding are of trained embeddings")
        elif self.values == "frozen":
            raise ValueError("values are frozen beside one-hot embeddings alone")
        if self.attention == "uniform" and self.values != "trained" and self.embedding == "one_hot":
            raise ValueError("nothing is trained")
        if max(self.snapshots, default=0) > self.steps:
            raise ValueError(f"snapshots must lie within the steps, {self.steps}")
        return self


class Reader(OneLayer):
    """The same, of a corpus that stands in for natural language: masks are keys, special ids as well."""

    kind: Literal["reader"]  # type: ignore[assignment]

    @model_validator(mode="after")
    def _of_text(self) -> Self:
        if self.masking != "thesis" or self.values != "trained" or self.attention != "trained":
            raise ValueError("readers of text have the masking of the thesis, and train values and attention")
        return self


class Encoder(AveragedRunEntry):
    """Encoders of BERT's form, trained on masked words: ``replicas`` for each learning rate."""

    kind: Literal["encoder"]
    width: Positive
    layers: Annotated[int, Field(ge=1, le=24)]
    heads: Positive
    ffn: Positive = Field(description="width of the MLP")
    ln_eps: Annotated[float, Field(gt=0, description="of normalisations")]
    std: Annotated[float, Field(gt=0, description="standard deviation of initial weights")]
    std_attention: Annotated[float, Field(gt=0, description="of those of queries, keys and values")]
    p_mask: Annotated[float, Field(gt=0, lt=1, description="probability that a word is masked, at every step anew")]
    p_keep: Annotated[float, Field(ge=0, lt=1, description="that a masked word stays as it is")]
    p_random: Annotated[float, Field(ge=0, lt=1, description="that a masked word shows a random one")]
    online: Positive = Field(description="held-out documents that the curves are measured on")
    snapshots: list[Annotated[int, Field(ge=0)]] = Field(description="steps after which weights are kept")

    @model_validator(mode="after")
    def _of_form(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is no multiple of the heads, {self.heads}")
        if max(self.snapshots, default=0) > self.steps:
            raise ValueError(f"snapshots must lie within the steps, {self.steps}")
        return self


Run = Annotated[OneLayer | Reader | Encoder, Field(discriminator="kind")]


Size = Annotated[
    list[Positive],
    Field(min_length=3, max_length=3, description="topics T, words of a topic v, topics of a document tau"),
]
Sizes = Annotated[list[Size], Field(min_length=1)]
Tolerance = Annotated[float, Field(gt=0)]


class MaskedDocuments(TheoryEntry):
    """What all theory checks name: a masking."""

    p_mask: Annotated[float, Field(gt=0, lt=1, description="probability that a position is masked, p_m")]
    p_keep: Annotated[float, Field(ge=0, lt=1, description="that a masked position stays as it is, p_c")]
    p_random: Annotated[float, Field(ge=0, lt=1, description="that a masked position shows a random id, p_r")]


class MaskedShares(MaskedDocuments):
    """TH6: shares of words behind the masking."""

    module: Literal["masking"]
    sizes: Sizes
    tokens: Positive = Field(description="of the document that is masked at random")
    errors: Annotated[float, Field(gt=0, description="standard errors that its shares may be off")]


class OptimalSet(MaskedDocuments):
    """TH2: the set of optimal linear maps."""

    module: Literal["optimal_set"]
    sizes: Sizes
    members: Positive = Field(description="random optima of each size")
    delta: Annotated[float, Field(gt=0, description="by which a block sum is perturbed")]
    tolerance: Tolerance = Field(description="of predictions")
    looser: Tolerance = Field(description="of solutions of least squares")


class Vanishing(MaskedDocuments):
    """TH3: the limit of a vanishing penalty."""

    module: Literal["vanishing"]
    sizes: Sizes
    penalties: Annotated[list[Tolerance], Field(min_length=2, description="lambda, ascending")]
    coarse: Tolerance = Field(description="a penalty that is not small")
    slope: Tolerance = Field(description="that the slope in the penalty may be off 1")
    descent: Tolerance = Field(description="the penalty of gradient descent")
    steps: Positive = Field(description="of gradient descent")
    reached: Tolerance = Field(description="of what gradient descent reaches")
    tolerance: Tolerance = Field(description="of closed forms")


class Attention(MaskedDocuments):
    """TH4 and TH5: optimal attention over frozen values."""

    module: Literal["attention"]
    settings: Annotated[
        list[Annotated[list[Positive], Field(min_length=2, max_length=2)]],
        Field(min_length=1, description="T and tau at which optima are found"),
    ]
    v: Annotated[list[Annotated[int, Field(ge=10)]], Field(min_length=1, description="words of a topic")]
    maskings: list[Annotated[list[Probability], Field(min_length=2, max_length=2)]] = Field(
        description="other p_m, and p_c = p_r, at which the intervals are tried"
    )
    enumerated: Sizes = Field(description="at which losses are enumerated")
    points: Annotated[
        list[Annotated[list[Tolerance], Field(min_length=2, max_length=2)]],
        Field(min_length=2, description="alpha and beta at which they are"),
    ]
    tolerance: Tolerance


class FreeAttention(MaskedDocuments):
    """The family of attention patterns against logits without constraint."""

    module: Literal["free_attention"]
    sizes: Sizes
    starts: Positive
    steps: Positive = Field(description="of L-BFGS, at most")
    tolerance: Tolerance = Field(description="that free logits may be worse")
    equal: Tolerance = Field(description="relative distance of losses that count as the same")


class Case(Strict):
    """One training of embeddings."""

    topics: Positive
    v: Positive
    tau: Positive
    width: Positive = Field(description="of embeddings, d")
    scale: Annotated[float, Field(gt=0, description="standard deviation of initial embeddings")]


class Embeddings(MaskedDocuments):
    """TH1: optimal embeddings."""

    module: Literal["embeddings"]
    cases: Annotated[list[Case], Field(min_length=1)]
    steps: Positive = Field(description="of L-BFGS, at most")
    tolerance: Tolerance = Field(description="of the loss above its least")
    looser: Tolerance = Field(description="of the properties of the theorem")


class Misprints(MaskedDocuments):
    """What is printed wrongly in the proofs, and what holds."""

    module: Literal["misprints"]
    sizes: Sizes
    draws: Positive = Field(description="random score matrices")
    maskings: list[Annotated[list[Probability], Field(min_length=2, max_length=2)]] = Field(
        description="other p_m, and p_c = p_r"
    )


class Gradients(MaskedDocuments):
    """TH7: how gradients shrink with the weights."""

    module: Literal["gradients"]
    topics: Annotated[int, Field(ge=2)]
    words: Annotated[int, Field(ge=2)]
    chosen: Positive = Field(description="topics of a document without end, tau")
    documents: Positive = Field(description="of the batch")
    alpha: Annotated[float, Field(gt=0, description="of the Dirichlet law of its shares of topics")]
    shortest: Positive = Field(description="tokens of its shortest document")
    longest: Positive = Field(description="tokens of its longest document")
    starts: Positive = Field(description="random weights")
    sizes: Annotated[list[Annotated[float, Field(gt=0)]], Field(min_length=2, description="eps")]


class Floors(MaskedDocuments):
    """Least losses on mixtures of topics."""

    module: Literal["floors"]
    topics: Annotated[int, Field(ge=2)]
    v: Positive
    alpha: Annotated[float, Field(gt=0, description="of the Dirichlet law of shares of topics")]
    documents: Annotated[int, Field(ge=2, description="over which means are sampled")]
    errors: Annotated[float, Field(gt=0, description="standard errors that these may be off")]


Theory = Annotated[
    MaskedShares | OptimalSet | Vanishing | Attention | FreeAttention | Embeddings | Misprints | Gradients | Floors,
    Field(discriminator="module"),
]


class Landscapes(ExperimentEntry):
    """E7: losses of stage 2 over alpha and beta."""

    module: Literal["landscapes"]
    topics: Positive
    v: Positive
    taus: Annotated[list[Positive], Field(min_length=1, description="topics of a document, ascending")]
    p_mask: Annotated[float, Field(gt=0, lt=1, description="probability that a position is masked, p_m")]
    p_keep: Annotated[float, Field(ge=0, lt=1, description="that a masked position stays as it is, p_c")]
    p_random: Annotated[float, Field(ge=0, lt=1, description="that a masked position shows a random id, p_r")]
    low: Annotated[int, Field(description="power of ten at which the grid of alpha and beta begins")]
    high: Annotated[int, Field(description="power of ten at which it ends")]
    per_decade: Positive = Field(description="its points in a power of ten")
    share: Probability = Field(description="of a landscape's range: what lies below is its lowest part")


class Other(ExperimentEntry):
    """All other experiments."""

    module: Literal["values", "embeddings", "attention", "stages"]


Share = Annotated[float, Field(gt=0, lt=1)]


class Fits(Strict):
    """Topics that are fitted to a corpus by variational Bayes (latent Dirichlet allocation)."""

    topics: Annotated[int, Field(ge=2)]
    alpha: Annotated[float, Field(gt=0, description="of the prior of shares of topics")]
    eta: Annotated[float, Field(gt=0, description="of the prior of words in topics")]
    passes: Positive = Field(description="over the corpus, at most")


class Language(ExperimentEntry):
    """E8, E9: what models of stand-ins for natural language store of topics (section 2.1.5.4)."""

    module: Literal["language"]
    lda: Fits
    thresholds: Annotated[list[Share], Field(min_length=1)] = Field(
        description="ambiguity thresholds: share of the vocabulary that is kept of each topic, theta"
    )
    least_denominator: Annotated[float, Field(gt=0)] = Field(
        description="size of a mean below which no ratio is taken of it"
    )
    documents: Positive = Field(description="held-out documents that attention is averaged over, at most")


class PretrainedEncoder(Strict):
    """An encoder of BERT's format that was trained elsewhere: where its files are, and their SHA-256."""

    label: str = Field(min_length=1, description="what it is, as tables and pages say it")
    folder: str | None = Field(None, description="with model.safetensors, tokenizer.json and config.json")
    package: str | None = Field(None, description="or: an installed package, with these files in an archive")
    archive: str | None = Field(None, description="the zip archive inside the package")
    weights: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of model.safetensors")]
    tokenizer: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of tokenizer.json")]

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.folder is None) == (self.package is None) or (self.package is None) != (self.archive is None):
            raise ValueError("its files are in a folder, or in the archive of a package: name one of both")
        return self


class Pretrained(ExperimentEntry):
    """The same of encoders that were trained elsewhere, on real English."""

    module: Literal["pretrained"]
    lda: Fits
    thresholds: Annotated[list[Share], Field(min_length=1)] = Field(description="as in `Language`")
    least_denominator: Annotated[float, Field(gt=0)]
    documents: Positive = Field(description="paragraphs that are read, at most")
    longest: Annotated[int, Field(ge=3, description="tokens of a paragraph that are read, at most")]
    fewest: Positive = Field(description="times that a token occurs, or it is no word")
    stop_words: Positive = Field(description="most frequent words, which no topic keeps")
    triples: Annotated[list[Annotated[list[str], Field(min_length=2)]], Field(min_length=2)] = Field(
        description="groups of words of Figure 2.3"
    )
    encoders: dict[CellName, PretrainedEncoder]
    measured: list[CellName] = Field(
        description="encoders that are measured; none: nothing beside requirements.txt is needed"
    )

    @model_validator(mode="after")
    def _known(self) -> Self:
        for name in self.measured:
            if name not in self.encoders:
                raise ValueError(f"measured: there is no encoder {name!r} among {', '.join(self.encoders)}")
        return self


Experiment = Annotated[Landscapes | Language | Pretrained | Other, Field(discriminator="module")]


class Analysis(Strict):
    """Settings that all experiments share."""

    confidence: Annotated[float, Field(gt=0.5, lt=1)]
    learned: Annotated[float, Field(gt=0, lt=1)] = Field(
        description="share by which the held-out loss of a model that learned is below that of an answer that reads "
        "nothing"
    )
    attention_documents: Positive = Field(description="held-out documents that attention is averaged over")


class Claims(Strict):
    """How tables become verdicts."""

    slight: Annotated[float, Field(gt=0, lt=1)] = Field(
        description="share of what training everything saves that may be lost where 'little' is claimed to be"
    )
