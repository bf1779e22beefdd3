"""The ids that code of the study names. It is read at every start, so it imports nothing but the standard
library."""

from __future__ import annotations

# Dyck strings (section 3.2.1)
STRINGS = "verifier-strings"
MISTAKES = "verifier-mistakes"  # what the models of DYCK get wrong, and strings of the grammar beside it
DYCK = "verifier-dyck"
TINY, TINY_MISTAKES = "verifier-tiny", "verifier-mistakes-tiny"  # the model of the page, and what it gets wrong
LAW = "verifier-strings-law"
# Test cases (section 3.2.2)
CASES, CASE_MODELS = "verifier-cases-3", "verifier-case-models-3"  # setting 3 of the chapter
OTHER_SETTINGS = {n: (f"verifier-case-models-{n}", f"verifier-cases-{n}") for n in (1, 2)}  # run, dataset
# Setting 3 with twice as many cases in a document
CASES_TWICE, CASE_MODELS_TWICE = "verifier-cases-twice", "verifier-case-models-twice"

MODELS, CLASSIFIERS = "verifier-models", "verifier-classifiers"
PREFIXES, UNSEEN = "verifier-prefixes", "verifier-unseen"
TEST_CASES, VGB_DYCK = "verifier-test-cases", "verifier-vgb-dyck"
THRESHOLDS = "verifier-thresholds"
PRETRAINED = "verifier-pretrained"  # no run: a model that somebody has in a folder

# Sets of the dataset of test cases: documents, prompts for random names, for reserved ones, for verifiers.
DOCUMENTS, NAMES, RESERVED, TRAINING = "documents", "names", "reserved", "training"

# Sets of MISTAKES: strings that end with their first mistake, strings of the grammar cut to the same lengths; the same
# from further prompts, on which verifiers are not trained.
ERROR, CORRECT, HELD_ERROR, HELD_CORRECT = "error", "correct", "held_error", "held_correct"

# Exact numbers, and the printed tables
SEARCH, WALK, PRINTED = "verifier-tokenwise", "verifier-walk", "verifier-printed"
QUERIES, VGB, PUBLISHED = "verifier-queries", "verifier-vgb", "verifier-published"

# Parameters that lack one of these are refused at the start.
RUNS = (DYCK, TINY, CASE_MODELS, CASE_MODELS_TWICE)
DATASETS = (STRINGS, MISTAKES, TINY_MISTAKES, CASES, CASES_TWICE)
THEORY = (LAW, SEARCH, WALK, PRINTED)

# Prefixes at which a model makes a mistake: those that its verifier was trained on, and further ones.
SEEN, HELD = "seen", "held"

# Verifiers of an arm.
NONE, TRAINED, GROUND_TRUTH, RANDOM = "none", "trained", "ground truth", "random"
