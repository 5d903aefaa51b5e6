// Sparklines: the last values of a series in the height of a line, as SVG.
const SPARK = {width: 152, height: 34};

// `change` is the place in `values` where a new level begins; `worse` colours what comes then.
function spark(values, {change = -1, worse = null, width = SPARK.width, height = SPARK.height} = {}) {
  const finite = values.filter(known);
  const made = svg("svg", {
    class: "spark",
    viewBox: `0 0 ${width} ${height}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  if (finite.length < 2) return made;
  let low = Math.min(...finite),
    high = Math.max(...finite);
  // A series that is all noise must not look like mountains: at least 8 % of the value is the height.
  const least = Math.abs(median(finite)) * 0.08;
  if (high - low < least) [low, high] = [(low + high - least) / 2, (low + high + least) / 2];
  const x = i => 1 + (i * (width - 2)) / Math.max(values.length - 1, 1);
  const y = value => height - 3 - ((value - low) / (high - low || 1)) * (height - 6);
  const path = (from, to) => {
    let text = "";
    for (let i = from; i < to; i++)
      if (known(values[i])) text += `${text ? "L" : "M"}${x(i).toFixed(1)} ${y(values[i]).toFixed(1)}`;
    return text;
  };
  const at = change > 0 ? change : values.length;
  made.append(svg("path", {d: path(0, at)}));
  if (at < values.length) {
    const middle = (x(at - 1) + x(at)) / 2;
    made.append(svg("line", {x1: middle, x2: middle, y1: 0, y2: height}));
    made.append(
      svg("path", {
        class: `after ${worse === null ? "" : worse ? "worse" : "better"}`,
        d: path(at, values.length),
      }),
    );
  }
  return made;
}
