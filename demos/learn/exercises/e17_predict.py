"""Exercise 17 · Predict: what a scale changes, before you measure it.

A query q and n = 64 keys K are random, with entries of variance 1, and so is
the gradient at the weights that softmax makes of their scores q·k. ‖∂L/∂q‖ is
the length of the gradient that reaches the query. Many queries have a mean
and a median of it. How do they change from d_k = 64 to d_k = 1024, without a
scale and with 1/d_k? How large are they beside those with 1/√d_k? Read the
chapter up to the words "Saturation makes J small" and not further, since the
results are next. Write down what you expect, and only then run the check. It
says what it measured wherever you expected something else.

    a word      "rises", "stays" or "falls"; "stays" is right for a change by
                less than a factor 2, and from a factor 1.2 on the direction
                is right, too
    a number    above 0; right within a factor 3, ties and plateau within 1.1

The last two are for n = 2 keys at a very large d_k without a scale. The two
scores are √d_k x₁ and √d_k x₂, with standard Gaussian x₁ and x₂. p is the
larger weight, g₁ and g₂ are the gradients at the two weights, and
‖∂L/∂q‖ = √2 √d_k p (1 - p) |g₁ - g₂|.

Chapter 16, attention/scaling.py.
"""

from math import pi, sqrt

# Your lines begin.
# Without a scale, from d_k = 64 to d_k = 1024:
mean = "stays"  # a word: the mean of ‖∂L/∂q‖ over many queries
median = "falls"  # a word: the median of ‖∂L/∂q‖, of a typical query
dead = "rises"  # a word: the share of queries with ‖∂L/∂q‖ < 0.001

# With the scale 1/d_k, from d_k = 64 to d_k = 1024:
small_median = "falls"  # a word: the median of ‖∂L/∂q‖

# How many times as large as with 1/√d_k:
small_ratio_64 = 1 / 8  # a number: the median with 1/d_k at d_k = 64
median_ratio = 1 / 30  # a number: the median without a scale at d_k = 1024
mean_ratio = 10  # a number: the mean without a scale at d_k = 1024

# Two keys. With u = √d_k |x₁ - x₂| the area under p (1 - p) over u is ½, and
# the mean of |g₁ - g₂| is 2/√π.
ties = 1 / sqrt(pi)  # a number: the density of |x₁ - x₂| at 0
plateau = sqrt(2 / pi) * ties  # a number: the mean of ‖∂L/∂q‖
# The learner gets the names.
# Your lines end.
