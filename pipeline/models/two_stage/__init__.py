"""One hidden layer of ReLUs in two stages of training, the model of the theory of sparse parity."""
