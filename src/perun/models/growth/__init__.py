"""How measurements grow with a size, and whether that changed between two versions.

`centres` makes robust points of the measurements; `forms` fits y = c0 + c1 f(n) for the usual orders of
growth; `exponent` fits y = c0 + c1 n^b and says which b are possible; `comparison` decides, for two versions,
whether the order changed, or by which factor the same order became slower;
`order` says in which order one cost grows, an exponential one included.
"""
