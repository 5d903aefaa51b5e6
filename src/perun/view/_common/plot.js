// Draws the charts of the page with BokehJS, in the colour scheme that the browser prefers.
"use strict";
// The number of points in the cell of a density below the pointer.
function perunCell(source, [logX, logY], {x, y}) {
  const column = name => source.get_column(name)[0];
  const picture = column("image");
  const [rows, columns] = picture.shape;
  const place = (value, start, size, log, number) => {
    const scale = log ? Math.log : one => one;
    const share = (scale(value) - scale(start)) / (scale(start + size) - scale(start));
    return Math.min(Math.max(Math.floor(share * number), 0), number - 1);
  };
  const row = place(y, column("y"), column("dh"), logY, rows);
  return perunNumber(picture[row * columns + place(x, column("x"), column("dw"), logX, columns)]);
}
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const element = id => document.getElementById(id);
  const host = element("plot");
  const chooser = element("chooser");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let shown = 0;
  let views = null;
  let drawing = Promise.resolve();
  let requests = 0;

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const [text, muted, line, background, surface] =
      ["text", "muted", "line", "background", "surface"].map(name => style.getPropertyValue("--" + name).trim());
    const font = style.getPropertyValue("--font").trim();
    const axis = {
      axis_label_text_color: text, axis_label_text_font: font, axis_label_text_font_size: "14px",
      axis_label_text_font_style: "normal", axis_label_standoff: 10, axis_line_color: line,
      major_label_text_color: muted, major_label_text_font: font, major_label_text_font_size: "12px",
      major_tick_line_color: line, minor_tick_line_color: null,
    };
    return {
      Figure: {background_fill_color: background, border_fill_color: background, outline_line_color: null},
      LinearAxis: axis,
      LogAxis: axis,
      Grid: {grid_line_color: line, grid_line_alpha: 0.6},
      Legend: {
        background_fill_alpha: 0, border_line_color: null, label_text_color: text, label_text_font: font,
        label_text_font_size: "12px", inactive_fill_color: surface, inactive_fill_alpha: 0.75, spacing: 1,
        glyph_width: 16, glyph_height: 16, location: "top_left", title_text_color: text,
        title_text_font: font, title_text_font_style: "bold",
      },
      ColorBar: {
        background_fill_alpha: 0, major_label_text_color: muted, major_label_text_font: font,
        title_text_color: text, title_text_font: font, title_text_font_style: "normal", bar_line_color: null,
        major_tick_line_color: text,
      },
    };
  }

  // The colours of series, which a dark page has others of; texts of the profile are in other attributes.
  function darken(attributes) {
    const other = colour => perunDarkColours[colour] ?? colour;
    for (const [name, one] of Object.entries(attributes)) {
      // The low end of the ramp is as dark as the page.
      if (name === "palette") attributes[name] = one.slice(Math.round(one.length * 0.4));
      if (!name.endsWith("_color")) continue;
      if (typeof one === "string") attributes[name] = other(one);
      else if (one?.type === "value") attributes[name] = {...one, value: other(one.value)};
    }
  }

  // Makes a legend or a colour bar fit below the chart of a narrow window, and tells the height that it takes.
  function narrowed({name, attributes}) {
    const width = host.clientWidth - 110; // without the room of the y axis
    if (name === "ColorBar") {
      Object.assign(attributes, {orientation: "horizontal", width: Math.max(width - 40, 60), height: 14});
      return 60;
    }
    const most = Math.floor((width - 30) / 7);
    for (const {attributes: item} of attributes.items) {
      const text = item.label.value;
      const end = Math.floor((most - 1) / 2);
      if (text.length > most) item.label = {...item.label, value: text.slice(0, end) + "\u2026" + text.slice(-end)};
    }
    return 19 * attributes.items.length;
  }

  // The document with the theme applied to its models; in a narrow window the legend is below the chart.
  function themed(value, models) {
    if (Array.isArray(value)) return value.map(one => themed(one, models));
    if (value === null || typeof value !== "object") return value;
    if (value.type === "ndarray") return value;
    const made = {};
    for (const [key, one] of Object.entries(value)) made[key] = themed(one, models);
    if (dark.matches && made.type === "object" && made.attributes) darken(made.attributes);
    if (made.type === "object" && models[made.name]) made.attributes = {...models[made.name], ...made.attributes};
    if (made.name === "Figure") {
      const room = window.innerHeight - host.getBoundingClientRect().top - window.scrollY - 90;
      made.attributes.height = Math.round(Math.max(420, Math.min(900, room)));
      if (host.clientWidth < 760) {
        for (const panel of made.attributes.right) made.attributes.height += narrowed(panel);
        made.attributes.below = [...made.attributes.below, ...made.attributes.right];
        made.attributes.right = [];
      }
    }
    return made;
  }

  // Closes the gaps in a stack after a series is hidden: each visible series starts where the one below ends.
  function restack(drawn, figure) {
    if (figure.y_scale.type === "LogScale") return; // nothing is stacked there, and nothing starts at 0
    const column = (one, name) => one.data_source.get_column(name);
    const put = ({data_source: source}, columns) => {
      const kept = [...source.columns()].map(name => [name, source.get_column(name)]);
      source.data = {...Object.fromEntries(kept), ...columns};
    };
    const solid = drawn.filter(one => column(one, "base") && column(one, "value"));
    const areas = solid.filter(one => one.glyph.type === "VArea");
    const bars = solid.filter(one => one.glyph.type === "VBar");
    const finite = value => Math.max(-Number.MAX_VALUE, Math.min(Number.MAX_VALUE, value));
    const ends = new Map();
    for (const one of [...areas, ...bars].filter(one => one.visible)) {
      const at = [...column(one, "x")], values = [...column(one, "value")];
      // Negative bars are stacked downwards from 0, apart from positive ones; areas have one stack for both signs.
      const keys = at.map((x, number) => `${x} ${one.glyph.type === "VBar" && values[number] < 0}`);
      const base = keys.map(key => ends.get(key) ?? 0);
      const y = base.map((value, number) => finite(value + values[number]));
      keys.forEach((key, number) => ends.set(key, y[number]));
      put(one, {base, y});
    }
    for (const sum of areas.length ? drawn.filter(one => !column(one, "base")) : [])
      put(sum, {y: [...column(sum, "x")].map(x => ends.get(`${x} false`) ?? 0)});
  }

  // Several series may change in one click; they are restacked once, afterwards.
  function keepStacked(figure) {
    let due = false;
    const later = () => {
      if (due) return;
      due = true;
      queueMicrotask(() => { due = false; restack(figure.renderers, figure); });
    };
    for (const one of figure.renderers) one.properties.visible.change.connect(later);
  }

  // Draws one chart after the other; of the requests that arrive meanwhile, only the last one is drawn.
  async function draw() {
    const request = ++requests;
    await drawing.catch(() => {});
    if (request === requests) await (drawing = drawn(charts[shown]));
  }

  async function drawn(chart) {
    element("title").textContent = document.title = chart.title;
    element("notes").textContent = chart.notes.map(note => note.replace(/\.$/, "")).join(". ");
    host.setAttribute("aria-label", chart.title);
    delete document.documentElement.dataset.drawn;
    if (views) views.clear();
    host.replaceChildren();
    const item = themed(chart.item, theme());
    item.doc.version = Bokeh.version;
    views = await Bokeh.embed.embed_item(item, host);
    keepStacked(Bokeh.documents.at(-1).roots()[0]);
    document.documentElement.dataset.drawn = String(charts.indexOf(chart));
  }

  function choose(number) {
    shown = (number + charts.length) % charts.length;
    if (chooser) chooser.value = String(shown);
    return draw();
  }

  function fill(wanted) {
    const found = charts.map((chart, number) => [chart.name, number])
      .filter(([name]) => name.toLowerCase().includes(wanted.toLowerCase()));
    chooser.replaceChildren(...found.map(([name, number]) => new Option(name, String(number))));
    return found.map(([, number]) => number);
  }

  if (chooser) {
    fill("");
    chooser.addEventListener("change", () => choose(Number(chooser.value)));
    element("find").addEventListener("input", event => {
      const found = fill(event.target.value);
      if (found.length) choose(found.includes(shown) ? shown : found[0]);
    });
    const step = by => {
      const numbers = [...chooser.options].map(option => Number(option.value));
      if (numbers.length) choose(numbers[(numbers.indexOf(shown) + by + numbers.length) % numbers.length]);
    };
    element("before").addEventListener("click", () => step(-1));
    element("behind").addEventListener("click", () => step(1));
  }
  dark.addEventListener("change", draw);
  choose(0);
})();
