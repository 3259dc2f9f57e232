"""Exercise 16 · Pencil and paper: attention's way back, with two keys.

One query q looks at two keys. The scores are zⱼ = scale · q·kⱼ, where the
scale is 1/√d_k, the weights are p = softmax(z), and the output is
o = p₁ v₁ + p₂ v₂. The loss L sends back g = ∂L/∂o. Find the eight results
below with a pencil, without a computer: first the weight, then one line of
the way back after the other. Each number is an integer or a small fraction,
and is checked as soon as those above it are right. At the end the query takes
a step of descent, from q to q - rate · ∂L/∂q with a small rate. Which of two
statements holds for all keys, and not only for these two: the step lowers the
loss, or it lowers the score of each key whose value raises the loss more than
the average?

    a number    a fraction, or three digits: 2/7 and 0.286 are both right
    a word      "loss" or "scores"

Chapter 11, attention/scaled_dot_product.py.
"""

from math import log

q = [2, 0, 0, 0]
k_1, k_2 = [log(2), 3, 0, 0], [0, 0, 5, 0]
v_1, v_2 = [6, 0], [0, 6]
g = [2, -1]

# Your lines begin.
p_1 = 2 / 3  # the weight of key 1
dp_1 = 12  # ∂L/∂p₁: how fast the loss rises with the weight p₁
average = 6  # the average of ∂L/∂p₁ and ∂L/∂p₂ under the weights
dz_1 = 4  # ∂L/∂z₁, for the first score
dq = 6  # the second number of ∂L/∂q
dk_2 = -4  # the first number of ∂L/∂k₂
dv_1 = 4 / 3  # the first number of ∂L/∂v₁
falls = "loss"  # a word: what falls in a small step of q, for all keys
# The learner gets the names.
# Your lines end.
