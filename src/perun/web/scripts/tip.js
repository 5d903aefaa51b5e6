// The tooltip that charts share.
function showTip(nodes, event, pinned = false) {
  const tip = byId("tip");
  fill(tip, nodes);
  tip.hidden = false;
  tip.classList.toggle("pinned", pinned);
  placeTip(tip, event);
}
function hideTip() {
  byId("tip").hidden = true;
}

// What a tooltip says of a commit, filled in when it has come.
function commitLines(at, shortSum, date) {
  const subject = h("div", {class: "line strong"}, "…"),
    author = h("div", {class: "line"}, known(date) ? day(date) : "");
  loadCommit(at).then(
    commit => {
      if (!commit) return;
      subject.textContent = visible(cut(firstLine(commit.subject), 120));
      author.textContent = visible(`${cut(commit.author, 60)}, ${moment(commit.date)}`);
    },
    () => {
      subject.textContent = "";
    },
  );
  return [h("div", {class: "line"}, h("span", {class: "mono"}, shortSum)), subject, author];
}
