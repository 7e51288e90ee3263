"""The exact speculative loop: pure mathematics over two token sequences, numpy and nothing else."""
