// Before anything is drawn: dark or light, as was chosen, else as the system has it.
"use strict";
(() => {
  const root = document.documentElement,
    system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem("perun.theme");
    } catch {
      return null;
    }
  };
  const apply = () => {
    const dark = (chosen() || (system.matches ? "dark" : "light")) === "dark";
    root.toggleAttribute("data-dark", dark);
    root.toggleAttribute("data-light", !dark);
    dispatchEvent(new Event("perun-theme"));
  };
  system.addEventListener("change", apply);
  addEventListener("perun-theme-chosen", apply);
  apply();
})();
