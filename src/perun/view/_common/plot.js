// Draws the charts that the page holds, in the colours that the browser prefers.
"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const element = id => document.getElementById(id);
  const host = element("plot");
  const chooser = element("chooser");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let shown = 0;
  let views = null;

  function look() {
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

  // The document with the look put into its models; a narrow window has the legend below the chart.
  function dressed(value, models) {
    if (Array.isArray(value)) return value.map(one => dressed(one, models));
    if (value === null || typeof value !== "object") return value;
    if (value.type === "ndarray") return value;
    const made = {};
    for (const [key, one] of Object.entries(value)) made[key] = dressed(one, models);
    if (made.type === "object" && models[made.name]) made.attributes = {...models[made.name], ...made.attributes};
    if (made.name === "Figure") {
      const room = window.innerHeight - host.getBoundingClientRect().top - window.scrollY - 90;
      made.attributes.height = Math.round(Math.max(420, Math.min(900, room)));
      if (host.clientWidth < 760) {
        made.attributes.below = [...made.attributes.below, ...made.attributes.right];
        made.attributes.right = [];
      }
    }
    return made;
  }

  async function draw() {
    const chart = charts[shown];
    element("title").textContent = document.title = chart.title;
    element("notes").textContent = chart.notes.map(note => note.replace(/\.$/, "")).join(". ");
    host.setAttribute("aria-label", chart.title);
    if (views) views.clear();
    host.replaceChildren();
    const item = dressed(chart.item, look());
    item.doc.version = Bokeh.version;
    views = await Bokeh.embed.embed_item(item, host);
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
