"""One trainer for all studies; imports torch, numpy and safetensors only."""
