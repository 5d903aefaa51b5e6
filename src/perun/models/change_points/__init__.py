"""Where the level of a series of measurements changes for good: change points.

Five detectors look at a series in five ways: `windows` (t tests of neighbouring windows), `potts` (fewest
levels by least absolute deviations), `kernel` (the cheapest division in a Gaussian kernel space), `energy`
(E-divisive means) and `jumps` (least squares with a step beside a slope). None of them is best everywhere, so
`voting` tests all places that they name: at least `effect` of a change, beyond what noise, autocorrelation
and drift explain. `spikes` finds the single points that are no change.
"""
