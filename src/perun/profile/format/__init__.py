"""What a profile is, in memory and as JSON.

From the bottom up: `columns` (one field of many resources), `grouping` (resources that agree in the other
fields), `core` (:class:`~perun.profile.factory.Profile`), `validation`, `bulk` (reading many resources at
once, of older releases, too), `encoding` and `json`. Beside it `columnar` (profiles by columns), and
`head`: heads alone, and in which of the two a profile is stored. `quick_head`: the heads of very many small
ones.
"""
