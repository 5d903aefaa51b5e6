// The newest commits, in parts.
async function commitList(site) {
  if (!site.commits)
    return panel("list", empty("No commits yet", "Perun keeps profiles by commit.", "git commit"));
  const last = Math.floor((site.commits - 1) / site.chunk),
    {changes} = await load("changes");
  const chosen = place().get("part"),
    part = Math.max(0, Math.min(last, chosen === null ? last : Number(chosen) || 0));
  const {first, commits} = await load(`commits/${part}`),
    found = new Map();
  for (const one of changes) found.set(one.version.at, [...(found.get(one.version.at) || []), one]);
  const rows = commits
    .map((commit, i) => commit && {...commit, at: first + i, steps: found.get(first + i) || []})
    .filter(Boolean)
    .reverse();
  const go = (number, text) =>
    number >= 0 &&
    number <= last &&
    h(
      "button",
      {
        type: "button",
        onclick: () => {
          setPlace({part: number === last ? null : number}, {push: true});
          draw();
        },
      },
      text,
    );
  fill("meta", plural(site.commits, "commit"), `, ${site.measured.toLocaleString("en-US")} of them measured`);
  return panel(
    "list",
    table(
      [
        {
          title: "Commit",
          name: true,
          cell: one => [
            h(
              "a",
              {href: commitLink(one.checksum)},
              h("span", {class: "mono"}, short(one.checksum)),
              " ",
              cut(firstLine(one.subject), 110),
            ),
            " ",
            one.tags?.map(tag => h("span", {class: "chip"}, cut(tag, 40))),
          ],
        },
        {title: "Author", wide: true, cell: one => cut(one.author, 40)},
        {title: "Date", wide: true, cell: one => when(one.date)},
        {
          title: "Changes",
          cell: one =>
            one.steps.length
              ? [
                  changeSize(one.steps[0]),
                  one.steps.length > 1
                    ? h("span", {class: "muted"}, ` and ${one.steps.length - 1} more`)
                    : "",
                ]
              : "",
        },
        {
          title: "Profiles",
          end: true,
          cell: one =>
            one.damaged
              ? h("span", {class: "chip mark"}, "damaged")
              : one.profiles?.length
                ? String(one.profiles.length)
                : h("span", {class: "muted"}, "–"),
        },
      ],
      rows,
      {label: "Commits", address: one => commitLink(one.checksum)},
    ),
    {
      tools: [go(part + 1, "Newer"), go(part - 1, "Older")],
      note: part === last ? "" : `Part ${last - part + 1} of ${last + 1}`,
    },
  );
}
