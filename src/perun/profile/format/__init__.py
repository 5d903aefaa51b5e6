"""What a profile is, in memory and as JSON.

From the bottom up: `columns` (one field of many resources), `grouping` (resources that agree in the other
fields), `core` (:class:`~perun.profile.factory.Profile`), `older` (layouts of older releases), `validation`,
`bulk` (reading many resources at once) and `json`.
"""
