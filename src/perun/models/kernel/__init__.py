"""Kernel regression: estimators, their sums over points, the selection of the bandwidth (manual 5.1.6).

Every estimate is a ratio of weighted sums around each x, and a search for the bandwidth takes some dozens of
estimates. :mod:`.local` makes the sums exact to rounding in a time of the order of n. It is the part that
shorter ways could replace, and this is what they were measured to do (CPU time of one core, local-linear,
x spread evenly; the error is the largest one, relative to the largest value of the exact estimate):

========================================== ================ ================ ========
one estimate                               2,000 points     100,000 points   error
========================================== ================ ================ ========
:mod:`.local`                               2.0 ms           38 ms            3e-15
every pair of points                       63 ms            59 s             -
FFT, points binned to 4,001 places         1.6 ms           3.4 ms           4e-5
FFT, points binned to 65,536 places        44 ms            19 ms            1e-7
========================================== ================ ================ ========

The tests hold estimates to those of statsmodels within 1e-6. Bins meet that where x is spread evenly; where
two outliers stretch the axis to 100,000 times the width of the other points, 65,536 bins are wrong by 0.4 of
a curve between -1 and 1, and a million by 0.08, as most points then share a few bins. Profiles have such x:
sizes of structures are often powers of two. Every pair of points is exact, but a search then takes 1.9 s for
2,000 points, and not 0.085 s. A tree of x would do what the boxes of :mod:`.local` do, with
an interpreted step for each node in place of one product of matrices for each of 21 offsets.
"""
