"""Claims 1, 2, 7 and 20 to 31: grammars and masked language models, which this study does not have yet."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.kit.results import Results
from pipeline.kit.verdicts import Gate
from pipeline.studies.distillation.claims.common import SECTION

LACKING = "grammars and language models are not in this study yet"
STATEMENTS = {
    "1": "The lengths of sentences of the grammars are those that the text prints.",
    "2": "Sampled sentences are sentences of the grammar, and have its law of lengths.",
    "7": "Attention selects the support by weights that the proofs give, and networks read it off without.",
    "20": "Before a masked language model learns anything of its grammar, its loss is that of guessing by frequency.",
    "21": "No masked language model is better than the best predictor.",
    "22": "Progressive distillation helps small masked language models, most with few steps.",
    "23": "The loss falls fastest where predictions depend most on short windows.",
    "24": "The checkpoint at which the loss falls fastest teaches best.",
    "25": "Later in training predictions depend on longer windows.",
    "26": "Non-terminals can be read from the teacher early.",
    "27": "Students that are taught progressively have features of longer windows and higher levels.",
    "28": "Short students gain from a schedule that does not depend on their length.",
    "29": "The gain persists at other temperatures, shares of masked tokens and grammars.",
    "30": "Models of the next token gain as well, more on higher levels of the grammar.",
    "31": "On a stand-in for English text the order of the ways to teach is the same.",
}
SECTIONS = {
    "1": "4.2.8.3", "2": "4.2.8.3", "7": "4.2.3.1.2", "20": "4.2.3.1.2", "21": "4.2.3", "22": "4.2.3, Figure 4.4",
    "23": "4.2.3.1.2, Figure 4.7", "24": "4.2.3.1.2, Figure 4.7", "25": "4.2.3.1.2", "26": "4.2.8.2, Figure 4.25",
    "27": "4.2.3.1.2, Figure 4.8", "28": "4.2.8.6, Figure 4.27", "29": "4.2.8.6", "30": "4.2.9", "31": "4.2.3.2",
}  # fmt: skip


def gates(context: Results) -> Iterator[Gate]:
    """Yield a gate without a measurement for each claim."""
    for claim, statement in STATEMENTS.items():
        yield Gate(claim, "not written", statement, SECTION.format(SECTIONS[claim]), (), None, LACKING)
