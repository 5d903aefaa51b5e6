"""Two samples of positive measurements: how much larger the second is, and how certain that is.

`rank_tests` are for pairs, and for samples that were measured apart; `sequential` holds the error
level if one looks at the pairs again and again; `shape` finds what breaks the assumptions; `ratio` puts
them together.
"""
