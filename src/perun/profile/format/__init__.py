"""What a profile is, in memory and as JSON.

From the bottom up: `columns` (one field of many resources), `grouping` (resources that agree in the other
fields), `core` (:class:`~perun.profile.factory.Profile`), `older` (layouts of older releases), `validation`,
`bulk` (reading many resources at once), `encoding` and `json`. Beside it `chunks`, `compressed` (columns that
stay compressed in memory), `columnar` (profiles by columns), and `layouts`: in which of the two a profile is
stored. `quick_head`: the heads of very many small ones.
"""
