// The page of a commit: what it changed and why, what it measured; without a commit, the newest ones.
pages.commit = async site => {
  const wanted = place().get("c");
  byId("one").hidden = !wanted;
  byId("all").hidden = Boolean(wanted);
  if (!wanted) return commitList(site);
  const at = await positionOf(wanted),
    commit = await loadCommit(at);
  if (!commit || (/^[0-9a-f]{9,}$/i.test(wanted) && !commit.checksum.startsWith(wanted.toLowerCase())))
    throw new NoPiece(
      "commit",
      `There is no commit ${cut(wanted, 60)} here.`,
      "It may lie on a branch that is merged, or be newer than this page.",
    );
  commitHead(commit, site);
  wholeMessage(commit);
  const {changes} = await load("changes"),
    own = changes.filter(one => one.version.at === at);
  const perhaps = changes.filter(
    one => one.possible > 1 && one.version.at !== at && one.since.at < at && at < one.version.at,
  );
  byId("steps").hidden = !own.length && !perhaps.length && commit.checks?.length > 0;
  commitSteps(own, perhaps, commit, site);
  commitChecks(commit);
  await Promise.all([commitReasons(own, commit, site), commitWhy(own, commit), commitValues(commit, site)]);
  commitProfiles(commit);
  return undefined;
};

function commitHead(commit, site) {
  const subject = firstLine(commit.subject);
  document.title = `${short(commit.checksum)} ${visible(cut(subject, 80))}`;
  document.querySelector("#head h1").textContent = visible(cut(subject, 400)) || short(commit.checksum);
  fill(
    "meta",
    h("span", {class: "mono", title: commit.checksum}, commit.checksum.slice(0, 12)),
    h("span", {class: "text"}, cut(commit.author, 80)),
    when(commit.date),
    commit.tags?.map(tag => h("span", {class: "chip"}, cut(tag, 50))),
    commit.branch > 0 &&
      site.branches[commit.branch] &&
      h("span", {class: "chip"}, `on ${cut(site.branches[commit.branch].name, 60)}`),
    commit.damaged && h("span", {class: "chip mark"}, cut(commit.damaged, 160)),
  );
  const go = (at, text, label, key) => {
    const made = h("a", {class: "chip", "aria-keyshortcuts": key}, text);
    if (known(at))
      loadCommit(at).then(
        other => {
          if (other) made.href = commitLink(other.checksum);
          made.title = other ? firstLine(other.subject) : label;
        },
        () => {},
      );
    keysOfPage[key] = () => made.href && location.assign(made.href);
    return known(at) ? made : null;
  };
  const parents = (commit.parents || []).filter(known);
  childOf(commit, site).then(
    child =>
      fill(
        "step",
        parents.map((at, i) => go(at, i ? "← Merged parent" : "← Parent", "Parent", i ? "{" : "[")),
        go(child, "Child →", "Child", "]"),
      ),
    () => {},
  );
}
// What the commit says of itself below its first line.
async function wholeMessage(commit) {
  const text = live
    ? (await load(`message/${commit.checksum}`).catch(() => ({text: ""}))).text
    : commit.subject;
  const rest = (text || "").split("\n").slice(1).join("\n").trim();
  byId("message").hidden = !rest;
  fill(
    "message",
    rest
      .split("\n")
      .flatMap((line, i) => (i ? [h("br"), cut(line, 500)] : [cut(line, 500)]))
      .slice(0, 400),
  );
}

// The newer commit that has this one as its parent, on the same line where there is one.
async function childOf(commit, site) {
  for (let at = commit.at + 1; at < Math.min(site.commits, commit.at + 60); at++) {
    const other = await loadCommit(at);
    if (other?.parents?.[0] === commit.at) return at;
  }
  return null;
}

function commitSteps(own, perhaps, commit, site) {
  if (own.length)
    panel(
      "steps",
      [
        changeList(
          own.map(one => [one]),
          "Changes of this commit",
          stepOfCommit(site),
        ),
        own.length === 1 && acknowledgeLine(own, site),
      ],
      {
        note: [
          `${plural(own.length, "series")} changed level`,
          own[0].possible > 1 && `; it, or another of ${own[0].possible} commits that were not all measured`,
        ],
      },
    );
  else if (perhaps.length)
    panel("steps", changeList(byCommit(perhaps), "Changes that this commit may have brought"), {
      title: "What it may have changed",
      note: "It was not measured: one of the commits in between brought these",
    });
  else if (!commit.checks?.length)
    panel(
      "steps",
      commit.profiles?.length
        ? empty(
            "It changed no level",
            "What it measured lies within the noise of its series, or too few commits after it are measured.",
          )
        : empty(
            "It is not measured",
            "Measure it to see its values.",
            `perun run --minor ${short(commit.checksum)} matrix`,
          ),
    );
}
// What `perun check` found when it compared this commit with the one before.
function commitChecks({checks}) {
  byId("checks").hidden = !checks?.length;
  if (checks?.length)
    panel(
      "checks",
      table(
        [
          {
            title: "Where",
            name: true,
            sort: one => one.location,
            cell: one => [
              cut(one.location, 140),
              h("div", {class: "muted small"}, cut(one.command || "", 110)),
            ],
          },
          {
            title: "Verdict",
            sort: one => one.result,
            cell: one =>
              h(
                "span",
                {class: kindOf(one.result)},
                one.word,
              ),
          },
          {title: "Before", end: true, cell: one => cut(one.before || "–", 60)},
          {title: "After", end: true, cell: one => cut(one.after || "–", 60)},
          {
            title: "Baseline",
            end: true,
            wide: true,
            cell: one =>
              one.baseline
                ? h("a", {class: "mono", href: commitLink(one.baseline)}, short(one.baseline))
                : "–",
          },
        ],
        checks,
        {label: "Changes that perun check found"},
      ),
      {note: plural(checks.length, "change")},
    );
}

const stepOfCommit = site => one => [
  h(
    "a",
    {href: compareLink(one.since.checksum, one.version.checksum)},
    `Compare with ${short(one.since.checksum)}`,
  ),
  h("small", {}, machineName(site, one.machine) || "on any machine"),
];
const acknowledgeLine = (own, site) => h("p", {class: "in"}, acknowledgeButton(own[0], site));

// Functions, models and the differential flame graph, of the comparison with the commit before.
async function commitWhy(own, commit) {
  const reported = own.find(one => one.report) || (live && own[0]);
  byId("why").hidden = !reported;
  if (!reported) return;
  try {
    const report = await load(`compare/${reported.since.checksum}..${commit.checksum}`);
    panel("why", reportParts(report, {most: 8, samples: 3}), {
      note: h("a", {href: compareLink(reported.since.checksum, commit.checksum)}, "The whole comparison"),
    });
  } catch (problem) {
    panel(
      "why",
      empty("The comparison cannot be shown", problem.message, `perun check ${short(commit.checksum)}`),
    );
  }
}

function commitProfiles(commit) {
  if (!commit.profiles?.length) {
    byId("profiles").hidden = true;
    return;
  }
  const views = one =>
    live && one.views?.length
      ? one.views.map(view => [
          h("a", {href: `show/${commit.checksum}/${encodeURIComponent(one.id)}/${view}`}, view),
          " ",
        ])
      : h("code", {class: "small"}, `perun show -m ${short(commit.checksum)} ${one.id}`);
  panel(
    "profiles",
    table(
      [
        {
          title: "Profile",
          name: true,
          cell: one => [
            h("span", {class: "mono"}, cut(one.command || one.name, 110)),
            one.workload && ` ${cut(one.workload, 80)}`,
            h("div", {class: "muted small"}, cut(one.name, 120)),
          ],
        },
        {title: "Collector", cell: one => one.collector},
        {title: "Made", wide: true, cell: one => (known(one.time) ? when(one.time) : "–")},
        {title: "", cell: one => one.incomplete && h("span", {class: "chip mark"}, cut(one.incomplete, 100))},
        {title: "Show", end: true, wide: !live, cell: views},
      ],
      commit.profiles,
      {label: "Profiles"},
    ),
    {note: plural(commit.profiles.length, "profile")},
  );
}
