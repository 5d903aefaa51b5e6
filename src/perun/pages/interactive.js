// What the pages that draw on a canvas share: safe texts, colours, the sharp canvas, the legend and the tooltip.
// Texts of the profile only ever become text nodes or pixels.
"use strict";
const byId = id => document.getElementById(id);

// Characters that are invisible, or that reverse the direction of text, as escapes that a reader can see.
const visible = text => text.replace(/[\u0000-\u001f\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
  c => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

// At most this many characters; half a surrogate pair is never left at the end.
const cut = (text, most) => text.length <= most ? text
  : text.slice(0, Math.max(most - 1, 0)).replace(/[\ud800-\udbff]$/, "") + "\u2026";

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// ---- colours, as in perun.pages --------------------------------------------------------------

const channels = colour => [1, 3, 5].map(start => parseInt(colour.slice(start, start + 2), 16));
function mixed(one, other, share) {
  const [a, b] = [channels(one), channels(other)];
  return "#" + a.map((part, i) => Math.round(part + (b[i] - part) * share).toString(16).padStart(2, "0")).join("");
}
function rampColour(ramp, share) {
  const place = Math.min(Math.max(share, 0), 1) * (ramp.length - 1);
  const lower = Math.min(Math.floor(place), ramp.length - 2);
  return mixed(ramp[lower], ramp[lower + 1], place - lower);
}
// The ramp in 65 steps, so that drawing thousands of rectangles mixes no colours: index 0 is low, 64 is high.
const rampSteps = ramp => Array.from({length: 65}, (_, i) => rampColour(ramp, i / 64));
const gradient = colours => `linear-gradient(90deg, ${colours.join(",")})`;
// The palette without grey, which stands for everything that has no colour of its own.
const DISTINCT = [0, 1, 2, 3, 4, 5, 7], OTHERS = 6;

// The colours and the font of the page by role, as the browser's colour scheme sets them.
function themeColours() {
  const style = getComputedStyle(document.documentElement);
  const roles = ["background", "surface", "text", "muted", "line", "accent", "mark", "mono"];
  return Object.fromEntries(roles.map(role => [role, style.getPropertyValue("--" + role).trim()]));
}

// ---- canvas -----------------------------------------------------------------------------------------------

// Gives a canvas one pixel for each pixel of the screen; drawing continues in CSS pixels.
function sharpen(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.style.height = height + "px";
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
}

// A function that draws at most once in a frame, however often it is called.
function oncePerFrame(draw) {
  let requested = false;
  return () => {
    if (requested) return;
    requested = true;
    requestAnimationFrame(() => { requested = false; draw(); });
  };
}

// ---- legend and tooltip -----------------------------------------------------------------------------------

// An entry of the legend; the background is a colour, or a gradient, which gets a wider field.
function legendEntry(background, text, attributes = {}) {
  const item = element("li"), swatch = element("span", "", {class: background.startsWith("#") ? "swatch" : "ramp"});
  swatch.style.background = background;
  item.append(swatch, element("span", text, attributes));
  return item;
}

// Beside the pointer, within the window; above it where there is no room below.
function placeTip(tip, event) {
  const width = tip.offsetWidth, height = tip.offsetHeight;
  tip.style.left = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - width - 8)) + "px";
  tip.style.top = (event.clientY + height + 26 > window.innerHeight ? Math.max(4, event.clientY - height - 12) : event.clientY + 18) + "px";
}
