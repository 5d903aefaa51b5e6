// The tree behind the flame graph as typed arrays in preorder: a caller precedes its callees, and the subtree of a
// node is the range from the node to tree.end[node]. So a walk needs no pointers and no recursion, which deep stacks
// would overflow.
"use strict";

// Groups the frames that are shown as one: functions, or calls of a function from one line.
function perunGroups(data, byLine) {
  const known = new Map();
  const groups = [];
  const groupOf = new Int32Array(data.names.length);
  for (let frame = 0; frame < data.names.length; frame++) {
    const line = data.lines[frame];
    const key = data.places[frame] + "\0" + (byLine ? line : "") + "\0" + data.names[frame];
    let group = known.get(key);
    if (group === undefined) {
      group = groups.length;
      known.set(key, group);
      groups.push({name: data.names[frame], place: data.places[frame], source: data.sources[data.places[frame]],
                   lines: []});
    }
    if (line && groups[group].lines.length < 20) groups[group].lines.push(line);
    groupOf[frame] = group;
  }
  return {groups, groupOf};
}

// Merges nodes with equal stacks; node 0 is the root, which has no frame. Reversed stacks start at the callee.
function perunMerged(data, {groups, groupOf}, reversed) {
  const count = data.frames.length;
  const sides = data.amounts.length;
  const parents = [-1], group = [-1], own = data.amounts.map(() => [0]);
  const known = new Map();
  const child = (parent, which) => {
    // One number for both: a Map finds numbers faster than texts.
    const key = parent * groups.length + which;
    let node = known.get(key);
    if (node === undefined) {
      node = parents.length;
      known.set(key, node);
      parents.push(parent);
      group.push(which);
      for (const amounts of own) amounts.push(0);
    }
    return node;
  };
  // Stacks of which nothing is shown, as they have amounts of another mode only, make no nodes.
  const needed = new Uint8Array(count);
  for (let i = count - 1; i >= 0; i--) {
    if (data.amounts.some(amounts => amounts[i])) needed[i] = 1;
    if (needed[i] && data.parents[i]) needed[i - data.parents[i]] = 1;
  }
  const madeOf = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    if (!needed[i]) continue;
    let node;
    if (!reversed) {
      const distance = data.parents[i];
      node = madeOf[i] = child(distance ? madeOf[i - distance] : 0, groupOf[data.frames[i]]);
    } else {
      if (!data.amounts.some(amounts => amounts[i])) continue;
      node = 0;
      for (let j = i; ; j -= data.parents[j]) {
        node = child(node, groupOf[data.frames[j]]);
        if (!data.parents[j]) break;
      }
    }
    for (let side = 0; side < sides; side++) own[side][node] += data.amounts[side][i];
  }
  return {parents, group, own};
}

// The tree with the position and width of each node. Options: byLine, reversed, widths ("this", "baseline", "larger"), shares.
function perunTree(data, options) {
  const grouping = perunGroups(data, options.byLine);
  const merged = perunMerged(data, grouping, options.reversed);
  const size = merged.parents.length;
  const sides = merged.own.length;
  const own = merged.own.map(amounts => Float64Array.from(amounts));
  if (sides > 1 && options.shares) {
    const sums = own.map(amounts => amounts.reduce((sum, one) => sum + one, 0));
    if (sums[1]) own[1].forEach((amount, node) => { own[1][node] = amount * sums[0] / sums[1]; });
  }
  const total = own.map(amounts => amounts.slice());
  const parents = merged.parents;
  // Children come after their parents, so that one pass backwards adds up whole subtrees.
  for (const amounts of total)
    for (let node = size - 1; node > 0; node--) amounts[parents[node]] += amounts[node];
  let width = total[sides > 1 && options.widths === "baseline" ? 1 : 0];
  if (sides > 1 && options.widths === "larger") {
    // A caller is as wide as its callees together, which may be more than its own total in either profile.
    width = new Float64Array(size);
    for (let node = size - 1; node >= 0; node--) {
      width[node] = Math.max(width[node], total[0][node], total[1][node]);
      if (node) width[parents[node]] += width[node];
    }
  }
  return perunWalk(grouping.groups, merged, own, total, width);
}

function perunWalk(groups, merged, own, total, width) {
  const size = merged.parents.length;
  const first = new Int32Array(size).fill(-1), next = new Int32Array(size).fill(-1);
  for (let node = size - 1; node > 0; node--) {
    next[node] = first[merged.parents[node]];
    first[merged.parents[node]] = node;
  }
  const tree = {
    size, groups,
    group: new Int32Array(size), parent: new Int32Array(size), depth: new Int32Array(size),
    end: new Int32Array(size), x: new Float64Array(size), width: new Float64Array(size),
    own: own.map(() => new Float64Array(size)), total: own.map(() => new Float64Array(size)),
    levels: 0,
  };
  const names = groups.map(group => group.name);
  const order = (a, b) => width[b] - width[a] || (names[merged.group[a]] < names[merged.group[b]] ? -1 : 1);
  // A stack of the nodes to visit, each with the new number of its caller.
  const waiting = new Int32Array(size), callers = new Int32Array(size);
  callers[0] = -1;
  let left = 1, place = 0;
  const offset = new Float64Array(size);  // where the next callee of a node starts
  while (left) {
    const node = waiting[--left], parent = callers[left];
    const here = place++;
    const depth = parent < 0 ? 0 : tree.depth[parent] + 1;
    tree.group[here] = merged.group[node];
    tree.parent[here] = parent;
    tree.depth[here] = depth;
    tree.width[here] = width[node];
    tree.x[here] = parent < 0 ? 0 : offset[parent];
    if (parent >= 0) offset[parent] += width[node];
    offset[here] = tree.x[here];
    for (let side = 0; side < own.length; side++) {
      tree.own[side][here] = own[side][node];
      tree.total[side][here] = total[side][node];
    }
    if (depth >= tree.levels) tree.levels = depth + 1;
    const lowest = left;
    for (let child = first[node]; child >= 0; child = next[child]) {
      waiting[left] = child;
      callers[left++] = here;
    }
    if (left - lowest > 1) {  // the widest callee on top of the stack, to be on the left
      const sorted = Array.from(waiting.subarray(lowest, left)).sort(order);
      for (let i = 0; i < sorted.length; i++) waiting[left - 1 - i] = sorted[i];
    }
  }
  // The end of a subtree is the end of its last callee.
  for (let node = size - 1; node >= 0; node--) {
    if (tree.end[node] <= node) tree.end[node] = node + 1;
    const parent = tree.parent[node];
    if (parent >= 0 && tree.end[parent] < tree.end[node]) tree.end[parent] = tree.end[node];
  }
  return tree;
}

// The total and own amounts of each group; of recursive calls, only the outermost counts for the total.
function perunSums(tree) {
  const size = tree.groups.length;
  const sums = {calls: new Int32Array(size), total: tree.total.map(() => new Float64Array(size)),
                own: tree.own.map(() => new Float64Array(size))};
  const until = new Int32Array(size);
  for (let node = 1; node < tree.size; node++) sums.calls[tree.group[node]]++;
  for (let side = 0; side < tree.total.length; side++) {
    until.fill(0);
    for (let node = 1; node < tree.size; node++) {
      const group = tree.group[node];
      sums.own[side][group] += tree.own[side][node];
      if (node < until[group]) continue;
      until[group] = tree.end[node];
      sums.total[side][group] += tree.total[side][node];
    }
  }
  return sums;
}

// The number and the width of the nodes whose group is marked; a node within another match adds no width.
function perunMatched(tree, marked, from = 0) {
  let width = 0, nodes = 0;
  let until = 0;
  for (let node = Math.max(from, 1); node < tree.end[from]; node++) {
    if (!marked[tree.group[node]]) continue;
    nodes++;
    if (node < until) continue;
    width += tree.width[node];
    until = tree.end[node];
  }
  return {width, nodes};
}

// The node at this depth that covers a place of the x axis, or -1.
function perunAt(tree, depth, place) {
  let node = 0;
  while (tree.depth[node] < depth) {
    let child = node + 1;
    while (child < tree.end[node] && place >= tree.x[child] + tree.width[child]) child = tree.end[child];
    if (child >= tree.end[node] || place < tree.x[child]) return -1;
    node = child;
  }
  return node;
}
