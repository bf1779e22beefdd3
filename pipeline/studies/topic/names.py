"""The ids that code of the study names. It is read at every start, so it imports nothing but the standard library."""

from __future__ import annotations

DOCUMENTS, EXACT = "topic-documents", "topic-exact"

# E1 and E2: values with uniform attention, and with attention trained.
FROZEN_ADAM, FROZEN_SGD_CE, FROZEN_SGD_SQ = "topic-frozen-adam", "topic-frozen-sgd-ce", "topic-frozen-sgd-sq"
FROZEN_RELEASED, FROZEN_EXACT = "topic-frozen-released", "topic-frozen-exact"
FROZEN_PUBLISHED = "topic-frozen-published"
JOINT_ADAM, JOINT_SGD_CE, JOINT_SGD_SQ = "topic-joint-adam", "topic-joint-sgd-ce", "topic-joint-sgd-sq"
JOINT_LONG, JOINT_LONG_RELEASED = "topic-joint-long", "topic-joint-long-released"
JOINT_PUBLISHED = "topic-joint-published"

# The model of the released code: figures 2.5 and 2.6, Table 2.1, and the example of which the release holds the values.
RELEASED_FROZEN, RELEASED_JOINT = "topic-released-frozen", "topic-released-joint"
RELEASED_ADAM, RELEASED_SGD = "topic-released-adam", "topic-released-sgd"
RELEASED_EXAMPLE, ONE_HOT_EXAMPLE = "topic-released-example", "topic-one-hot-example"

# E3: embeddings, alone and with everything else.
ONLY_CE, ONLY_SQ = "topic-embeddings-only-ce", "topic-embeddings-only-sq"
ONLY_SGD_CE, ONLY_SGD_SQ = "topic-embeddings-only-sgd-ce", "topic-embeddings-only-sgd-sq"
ALL, ALL_SGD_CE, ALL_SGD_SQ = ("topic-embeddings-all", "topic-embeddings-all-sgd-ce", "topic-embeddings-all-sgd-sq")
UNIT, UNIT_SGD = "topic-embeddings-unit", "topic-embeddings-unit-sgd"

# E4: attention averages of models of which everything is trained.
ATTENTION, ATTENTION_RELEASED = "topic-attention-adam", "topic-attention-adam-released"
ATTENTION_SGD, ATTENTION_SGD_SHORT = "topic-attention-sgd", "topic-attention-sgd-short"

# E5: the same with frozen values.
DIAGONAL_5, DIAGONAL_10 = "topic-diagonal-5", "topic-diagonal-10"
DIAGONAL_10_RELEASED, DIAGONAL_SQ, BLOCK_SQ = ("topic-diagonal-10-released", "topic-diagonal-sq", "topic-block-sq")

# E6: near-zero initial weights.
STAGES_A, STAGES_B, STAGES_C, STAGES_N = ("topic-stages-a", "topic-stages-b", "topic-stages-c", "topic-stages-n")

# Theory, in the order of the chapter's section 5.
MASKING, OPTIMAL_SET, VANISHING = "topic-masking", "topic-optimal-set", "topic-vanishing"
OPTIMAL_ATTENTION, FREE_ATTENTION = "topic-optimal-attention", "topic-free-attention"
OPTIMAL_EMBEDDINGS, GRADIENTS = "topic-embeddings-optima", "topic-gradients"
FLOORS, MISPRINTS = "topic-floors", "topic-misprints"

# E8 and E9: stand-ins for natural language, each beside a dataset that says what its words are.
OVERLAPPING, REFERENCE = "topic-overlapping", "topic-reference"
CORPORA = {OVERLAPPING: "topic-overlapping-words", REFERENCE: "topic-reference-words"}
READER_ONE_HOT, READER_EMBEDDED = "topic-reader-one-hot", "topic-reader-embedded"
ENCODER, ENCODER_ENGLISH = "topic-encoder", "topic-encoder-english"
LAYERS, LAYERS_FAST = "topic-encoder-stages", "topic-encoder-stages-fast"
THRESHOLDS = (0.005, 0.01, 0.02)  # of ambiguity, that comparisons are declared for; parameters may name more
ENCODERS = ("minilm",)  # trained elsewhere, for which comparisons are declared

# Parameters that lack one of these are refused at the start.
RUNS = (
    FROZEN_ADAM,
    FROZEN_SGD_CE,
    FROZEN_SGD_SQ,
    FROZEN_RELEASED,
    FROZEN_EXACT,
    FROZEN_PUBLISHED,
    JOINT_ADAM,
    JOINT_SGD_CE,
    JOINT_SGD_SQ,
    JOINT_LONG,
    JOINT_LONG_RELEASED,
    JOINT_PUBLISHED,
    RELEASED_FROZEN,
    RELEASED_JOINT,
    RELEASED_ADAM,
    RELEASED_SGD,
    RELEASED_EXAMPLE,
    ONE_HOT_EXAMPLE,
    ONLY_CE,
    ONLY_SQ,
    ONLY_SGD_CE,
    ONLY_SGD_SQ,
    ALL,
    ALL_SGD_CE,
    ALL_SGD_SQ,
    UNIT,
    UNIT_SGD,
    ATTENTION,
    ATTENTION_RELEASED,
    ATTENTION_SGD,
    ATTENTION_SGD_SHORT,
    DIAGONAL_5,
    DIAGONAL_10,
    DIAGONAL_10_RELEASED,
    DIAGONAL_SQ,
    BLOCK_SQ,
    STAGES_A,
    STAGES_B,
    STAGES_C,
    STAGES_N,
    READER_ONE_HOT,
    READER_EMBEDDED,
    ENCODER,
    ENCODER_ENGLISH,
    LAYERS,
    LAYERS_FAST,
)
DATASETS = (DOCUMENTS, EXACT, *CORPORA, *CORPORA.values())
THEORY = (
    MASKING,
    OPTIMAL_SET,
    VANISHING,
    OPTIMAL_ATTENTION,
    FREE_ATTENTION,
    OPTIMAL_EMBEDDINGS,
    GRADIENTS,
    FLOORS,
    MISPRINTS,
)
