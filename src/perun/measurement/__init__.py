"""The one model of measurement: every number, ratio, interval and word about measurements is made here.

`series` reads the numbers out of profiles, `estimate` makes the value of a point of them, `noise` learns
how much of a difference is chance, `verdict` compares two points, `changes` finds where a series took
another level, `baseline` is the version before, and `present` writes numbers. Pure functions over plain
data: they know no store and no command line. numpy is loaded only by what reads whole profiles and whole
histories, as lists must come at once.
"""
