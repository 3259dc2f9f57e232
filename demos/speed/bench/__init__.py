"""Demos · Speed: what the benchmark is made of.

rows            the rows, their sizes, and the arrays that all contestants are given
by_hand         attention in NumPy alone, and the tricks that make it fast; small rows
by_hand_step    a training step in NumPy alone: forward, backward and Adam
by_hand_models  a BERT and a Llama that only compute forward
with_NAME       the rows as a contestant runs them: hand, minigrad, torch, autograd, mygrad, jax
worker          a contestant's process
race            comparing first, then taking turns
machine         allocator, memory, page faults, versions, BLAS kernels
report          the tables and the picture
"""
