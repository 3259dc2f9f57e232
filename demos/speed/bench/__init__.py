"""Demos · Speed: what the benchmark is made of.

rows                      the rows, their sizes, and the arrays that all contestants are given
by_hand                   attention in NumPy alone, and what makes it fast; a small row
by_hand_step              a training step in NumPy alone: forward, backward and Adam
changes                   what a user may change in a training step, and the program's variants
programs                  the rows, written once for this engine and for PyTorch
in_minigrad, in_torch     the words and the model of the two
race                      comparing first, then taking turns; a contestant's process
report                    the table, and the machine
"""
