// Start the page.
keepToken();
startSearch();
startKeys();
startNews();
addEventListener("popstate", draw);
addEventListener("pageshow", event => {
  if (event.persisted && live) refresh();
});
draw();
