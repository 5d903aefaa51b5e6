// What surrounds each page: problems of the store, what is running, when the data are of, and news of the server.
async function frame() {
  const site = await load("site");
  const what = [
    `${plural(site.measured, "measured commit")} of ${site.commits.toLocaleString("en-US")}`,
    plural(site.series, "series"),
  ];
  fill("made", `${what.join(", ")}. ${live ? "Read" : "Built"} `, when(site.generated), ".");
  notices(site);
  contextTools(site);
  return site;
}

function notices(site) {
  const shown = [];
  if (site.running) shown.push(running(site.running));
  if (site.problems?.length)
    shown.push(
      h(
        "div",
        {class: "notice"},
        h("b", {}, `${plural(site.problems.length, "problem")} of the store`),
        " The pages show the rest. ",
        h(
          "ul",
          {},
          site.problems.slice(0, 5).map(text => h("li", {class: "text"}, text)),
        ),
        site.problems.length > 5 && h("p", {class: "muted"}, `and ${site.problems.length - 5} more`),
        commandLine("perun fsck"),
      ),
    );
  fill("notices", shown);
}

function running(job) {
  const left = known(job.seconds_left) ? `, about ${perunNumber(job.seconds_left, "s", 2)} left` : "";
  return h(
    "div",
    {class: "notice", id: "running"},
    h("b", {}, cut(job.title, 120)),
    ` ${job.done} of ${job.total}${left} `,
    h("progress", {max: job.total || 1, value: job.done, "aria-label": "Progress"}),
  );
}

// A page that cannot be shown says why, and what helps.
function failed(problem) {
  const known = problem instanceof NoPiece;
  if (!known) console.error(problem);
  for (const one of document.querySelectorAll("main [aria-busy]")) {
    one.removeAttribute("aria-busy");
    for (const skeleton of one.querySelectorAll(".skeleton")) skeleton.remove();
  }
  fill(
    "notices",
    h(
      "div",
      {class: "notice", role: "alert"},
      h("b", {}, known ? problem.message : "This page could not be drawn."),
      " ",
      known ? problem.hint : "Load it again; what went wrong is in the console of the browser.",
    ),
  );
}

// Draw the page of now; what was loaded before is asked for again.
async function refresh() {
  forget();
  await draw();
}
async function draw() {
  try {
    const site = await frame();
    linkContext();
    await pages[document.documentElement.dataset.page](site);
    document.documentElement.dataset.ready = "yes";
  } catch (problem) {
    failed(problem);
    document.documentElement.dataset.ready = "failed";
  }
}

// The server tells when something new is stored, and how far a running job is.
function startNews() {
  if (!live) return;
  const news = new EventSource("api/events");
  let waiting = 0;
  news.addEventListener("store", () => {
    // Many profiles come one after the other.
    clearTimeout(waiting);
    waiting = setTimeout(refresh, 400);
  });
  news.addEventListener("progress", event => {
    const job = JSON.parse(event.data);
    byId("running")?.remove();
    if (job) byId("notices").prepend(running(job));
  });
  addEventListener("pagehide", () => news.close());
}
