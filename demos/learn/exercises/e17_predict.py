"""Exercise 17 · Predict: what 1/√d_k changes, before you measure it.

A query q and n = 64 keys K are random, with entries of variance 1, and so is
the gradient at the weights that softmax makes of their scores q·k. ‖∂L/∂q‖ is
the length of the gradient that reaches the query. Many queries have a mean
and a median of it. What happens from d_k = 64 to d_k = 1024? Read the chapter
up to "Saturation kills J", then write down what you expect, and only then run
the check. It says what it measured wherever you expected something else.

    "rises", "stays" or "falls"    "stays": it changes by less than a factor 2
    a number                       right within a factor 3; variance, 1.2

Chapter 16, attention/scaling.py.
"""

# Your lines begin.
# Without a scale, from d_k = 64 to d_k = 1024:
variance = 16  # how many times larger the scores' variance becomes
mean = "stays"  # the mean of ‖∂L/∂q‖ over many queries
median = "falls"  # the median of ‖∂L/∂q‖: what a typical query gets
dead = "rises"  # the share of queries with ‖∂L/∂q‖ < 0.001

# With the scale 1/√d_k, from d_k = 64 to d_k = 1024:
scaled_median = "stays"

# At d_k = 1024, divided by what it is with the scale:
mean_ratio = 10  # the mean without the scale / the mean with it
median_ratio = 1 / 50  # the median without the scale / the median with it
# The learner gets:
#     # Without a scale, from d_k = 64 to d_k = 1024:
#     variance = ...  # how many times larger the scores' variance becomes
#     mean = ...  # the mean of ‖∂L/∂q‖ over many queries
#     median = ...  # the median of ‖∂L/∂q‖: what a typical query gets
#     dead = ...  # the share of queries with ‖∂L/∂q‖ < 0.001
#
#     # With the scale 1/√d_k, from d_k = 64 to d_k = 1024:
#     scaled_median = ...
#
#     # At d_k = 1024, divided by what it is with the scale:
#     mean_ratio = ...  # the mean without the scale / the mean with it
#     median_ratio = ...  # the median without the scale / the median with it
# Your lines end.
