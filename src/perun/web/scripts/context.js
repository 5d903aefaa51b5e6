// The context that all pages share and all links carry on: one machine, one branch, or all of them.

// Choosing it, where there is a choice; which pages have branches is said by the page.
function contextTools(site) {
  const page = document.documentElement.dataset.page,
    here = place();
  const branches = page === "series" && here.has("id") ? site.branches.map(one => one.name) : [];
  const made = [
    contextOf("machine", "Machine", site.machines, name => shortMachine(site, site.machines.indexOf(name)) || name),
    contextOf("branch", "Branch", branches, name => name),
  ].filter(Boolean);
  fill("context", made);
  byId("context").hidden = !made.length || page === "compare";
}

function contextOf(name, label, values, shown) {
  const chosen = place().get(name) || "";
  if (values.length < 2 && !chosen) return null;
  const all = chosen && !values.includes(chosen) ? [...values, chosen] : values;
  const select = h(
    "select",
    {
      onchange: event => {
        setPlace({[name]: event.currentTarget.value}, {push: true});
        draw();
      },
    },
    h("option", {value: ""}, "all"),
    all.slice(0, 500).map(one => h("option", {value: one, title: one, selected: one === chosen}, cut(shown(one), 60))),
  );
  return h("label", {class: chosen ? "chosen" : null}, label, select);
}

// Whether what was measured on a machine, a place in the list of them, is shown: what is the same on all always is.
function onMachine(site) {
  const wanted = place().get("machine");
  return machine => !wanted || !known(machine) || machineName(site, machine) === wanted;
}
const otherMachine = site =>
  place().get("machine")
    ? empty("Nothing of this machine", `Nothing here was measured on ${cut(place().get("machine"), 120)}.`)
    : empty(
        `No commit of ${cut(site.branch || "this branch", 60)} is measured`,
        "Commits of other branches are.",
        hintOf(site),
      );
