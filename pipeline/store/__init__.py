"""The only doors to the files of results: Parquet tables and safetensors checkpoints."""
