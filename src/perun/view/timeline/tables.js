// The tables of a timeline: where the time of each thread went, and what was used of each object. `rows` are those of
// the profile: thread, type, subtype, object, amount, unit, calls, seconds. `nouns` is what is counted: "calls" or "samples".
"use strict";
function perunTables(rows, most, nouns, look) {
  const seconds = value => perunNumber(value, "s");
  const percent = share => Number.isFinite(share) ? (share * 100).toFixed(1) + " %" : "\u2013";
  const kindOf = (type, subtype) => type === subtype ? type : `${type} ${subtype}`;
  const heads = (id, names) => byId(id).replaceChildren(...names.map(name => element("th", name, {scope: "col"})));

  function ofThreads() {
    const threads = new Map(), kinds = new Map();
    for (const [thread, type, subtype, , , , , time] of rows) {
      const kind = kindOf(type, subtype), own = threads.get(thread) || new Map();
      own.set(kind, (own.get(kind) || 0) + time);
      threads.set(thread, own);
      kinds.set(kind, (kinds.get(kind) || 0) + time);
    }
    const shown = [...kinds].filter(kind => kind[1] > 0).sort((a, b) => b[1] - a[1]).map(kind => kind[0]);
    const live = own => [...own.values()].reduce((sum, one) => sum + one, 0);
    heads("threads-head", ["thread", ...shown, "live"]);
    const line = (name, own) => {
      const all = live(own), row = element("tr");
      row.append(element("td", visible(cut(name, 200))));
      for (const kind of shown) {
        const time = own.get(kind) || 0;
        row.append(element("td", time ? `${seconds(time)} (${percent(time / all)})` : ""));
      }
      row.append(element("td", seconds(all)));
      return row;
    };
    const order = [...threads].sort((a, b) => live(b[1]) - live(a[1]));
    const lines = order.slice(0, most).map(([name, own]) => line(name, own));
    if (order.length > 1) lines.push(line("all threads", kinds));
    byId("threads-rows").replaceChildren(...lines);
    byId("threads").hidden = !rows.length;
  }

  function ofObjects() {
    const objects = new Map();
    for (const [, type, subtype, object, amount, unit, calls, time] of rows) {
      if (!object) continue;
      const key = JSON.stringify([object, type, subtype]);
      const own = objects.get(key) || {object, kind: kindOf(type, subtype), unit, amount: 0, calls: 0, time: 0};
      own.amount += amount;
      own.calls += calls;
      own.time += time;
      objects.set(key, own);
    }
    const order = [...objects.values()].sort((a, b) => b.time - a.time || b.amount - a.amount);
    heads("objects-head", ["time", nouns, "amount", "kind", nouns === "samples" ? "function" : "object"]);
    const lines = order.slice(0, most).map(one => {
      const row = element("tr"), cell = element("td"), button = element("button", visible(cut(one.object, 300)), {type: "button", title: "Search for it"});
      button.addEventListener("click", () => look(one.object));
      cell.append(button);
      row.append(element("td", seconds(one.time)), element("td", one.calls.toLocaleString("en-US")),
        element("td", one.unit ? perunNumber(one.amount, one.unit) : one.amount.toLocaleString("en-US")), element("td", one.kind), cell);
      return row;
    });
    if (order.length > most) lines.push(element("tr"));
    if (order.length > most) lines.at(-1).append(element("td", `and ${(order.length - most).toLocaleString("en-US")} more`, {colspan: 5, class: "rest"}));
    byId("objects-rows").replaceChildren(...lines);
    byId("objects").hidden = !order.length;
  }

  ofThreads();
  ofObjects();
}
