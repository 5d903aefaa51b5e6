"""How measurements grow with a size, and whether that changed between two versions.

`forms` makes robust points of the measurements and fits y = c0 + c1 f(n) for the usual orders of growth, and
y = c0 + c1 n^b with the b that are possible; `comparison` decides, for two versions,
whether the order changed, or by which factor the same order became slower;
`order` says in which order one cost grows, an exponential one included.
"""
