"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { nodes, edges, sizes } = data;
  const marks = new Map(data.marks.map((m) => [m.key, m]));
  const count = (n) => n.count || 1;
  const app = document.getElementById("app");

  // Elements: text is set as text, never as markup.
  const set = (e, attributes, children) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (value === false || value === undefined) continue;
      if (name === "text") e.textContent = value;
      else if (name.startsWith("on")) e.addEventListener(name.slice(2), value);
      else e.setAttribute(name, value === true ? "" : value);
    }
    e.append(...children);
    return e;
  };
  const h = (name, attributes = {}, ...children) => set(document.createElement(name), attributes, children);
  const s = (name, attributes = {}, ...children) => set(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);

  // What is drawn beside what.
  const below = nodes.map(() => []);
  const owners = nodes.map(() => []);
  const dependents = nodes.map(() => []);
  nodes.forEach((n, i) => { if (n.under >= 0) below[n.under].push(i); });
  edges.forEach((e, k) => { owners[e.from].push(k); dependents[e.to].push(k); });
  const order = []; // owners before dependents
  nodes.forEach((n, i) => { if (n.under < 0) order.push(i); });
  for (let k = 0; k < order.length; k++) order.push(...below[order[k]]);
  const hidden = new Array(nodes.length).fill(0); // objects below a node
  for (let k = order.length - 1; k >= 0; k--) {
    const i = order[k], under = nodes[i].under;
    if (under >= 0) hidden[under] += hidden[i] + count(nodes[i]);
  }
  const tone = (i) => {
    const m = nodes[i].marks && marks.get(nodes[i].marks[0]);
    return m ? m.tone + (m.dashed ? " dashed" : "") : "plain";
  };
  const edgeTone = (k) => {
    const m = marks.get(edges[k].mark);
    return m ? m.tone + (m.dashed ? " dashed" : "") : "plain";
  };
  const fullName = (i) => {
    const n = nodes[i];
    return n.kind + "/" + (n.namespace ? n.namespace + "/" : "") + (n.count ? "x" + n.count : n.name);
  };

  // In a large picture what nothing is to be said of is closed, below the second row.
  const closed = new Set();
  const notable = nodes.map((n) => !!(n.marks && n.marks.length));
  edges.forEach((e, k) => { if (edgeTone(k) !== "plain") notable[e.from] = true; });
  const depth = new Array(nodes.length).fill(0);
  for (const i of order) if (nodes[i].under >= 0) depth[i] = depth[nodes[i].under] + 1;
  for (let k = order.length - 1; k >= 0; k--) {
    const i = order[k];
    if (notable[i] && nodes[i].under >= 0) notable[nodes[i].under] = true;
    if (nodes.length > 800 && depth[i] >= 1 && below[i].length && !below[i].some((d) => notable[d])) closed.add(i);
  }

  // Layout: as that of the SVG.
  let place, frames, shown, size;
  const rows = (list, heights) => list.reduce((sum, i) => sum + heights.get(i), sizes.rowGap * Math.max(list.length - 1, 0));
  const pack = (boxes, across, down) => {
    let area = 0, highest = 0;
    for (const b of boxes) { area += (b.w + across) * (b.h + down); highest = Math.max(highest, b.h); }
    const limit = Math.max(highest, Math.sqrt(area / sizes.wide));
    let x = 0, y = 0, width = 0, w = 0, height = 0;
    for (const b of boxes) {
      if (y > 0 && y + b.h > limit) { x += width + across; y = 0; width = 0; }
      b.x = x; b.y = y;
      y += b.h + down;
      width = Math.max(width, b.w);
      w = Math.max(w, b.x + b.w); height = Math.max(height, b.y + b.h);
    }
    return { w, h: height };
  };
  const grow = (root) => {
    const list = [root], depths = new Map([[root, 0]]), widths = [], open = new Map();
    for (let k = 0; k < list.length; k++) {
      const i = list[k], d = depths.get(i);
      widths[d] = Math.max(widths[d] || 0, nodes[i].w + (below[i].length ? 10 : 0));
      const next = closed.has(i) ? [] : below[i].filter((j) => !rooted(j));
      open.set(i, next);
      for (const j of next) { depths.set(j, d + 1); list.push(j); }
    }
    const heights = new Map();
    for (let k = list.length - 1; k >= 0; k--) heights.set(list[k], Math.max(nodes[list[k]].h, rows(open.get(list[k]), heights)));
    const column = [0];
    for (let d = 1; d < widths.length; d++) column[d] = column[d - 1] + widths[d - 1] + sizes.columnGap;
    const tops = new Map([[root, 0]]);
    for (const i of list) {
      const top = tops.get(i), n = nodes[i];
      place[i] = { x: column[depths.get(i)], y: top + (heights.get(i) - n.h) / 2, w: n.w, h: n.h };
      let next = top + (heights.get(i) - rows(open.get(i), heights)) / 2;
      for (const j of open.get(i)) { tops.set(j, next); next += heights.get(j) + sizes.rowGap; }
    }
    return { list, w: column[widths.length - 1] + widths[widths.length - 1], h: heights.get(root) };
  };
  const layout = () => {
    place = new Array(nodes.length); frames = [];
    const visible = new Set();
    for (const i of order) { const u = nodes[i].under; if (u < 0 || visible.has(u) && !closed.has(u)) visible.add(i); }
    const spaces = new Map();
    for (const i of order) if (visible.has(i)) { if (!spaces.has(space(i))) spaces.set(space(i), []); spaces.get(space(i)).push(i); }
    const boxes = [...spaces.keys()].sort().map((name) => {
      const trees = spaces.get(name).filter(rooted).sort((a, b) => a - b).map(grow);
      const box = { ...pack(trees, sizes.treeGap, sizes.treeGap), trees, title: name ? "namespace " + name : "cluster-scoped" };
      if (data.clustered) {
        box.w = Math.max(box.w, box.title.length * 7.5) + 2 * sizes.framePadding;
        box.h += 2 * sizes.framePadding + sizes.frameTitle;
      }
      return box;
    });
    size = pack(boxes, sizes.frameGap, sizes.frameGap);
    for (const f of boxes) {
      let dx = f.x, dy = f.y;
      if (data.clustered) { frames.push(f); dx += sizes.framePadding; dy += sizes.framePadding + sizes.frameTitle; }
      for (const t of f.trees) for (const i of t.list) { place[i].x += dx + t.x; place[i].y += dy + t.y; }
    }
    shown = order.filter((i) => visible.has(i));
  };

  // Edges.
  const middle = (b) => b.y + b.h / 2;
  const space = (i) => data.clustered ? nodes[i].namespace || "" : "";
  const rooted = (i) => nodes[i].under < 0 || space(nodes[i].under) !== space(i);
  const isAside = (e) => nodes[e.from].under !== e.to || rooted(e.from);
  const heads = { left: "l6 -3v6z", right: "l-6 -3v6z", up: "l-3 6h6z", down: "l-3 -6h6z" };
  // route returns the line of an edge, and its head: of many edges each is one path.
  const route = (e) => {
    const a = place[e.from], b = place[e.to], y = middle(a), z = middle(b), right = b.x + b.w + 1, bend = 40;
    const curve = (x, y, dx, dy, u, v, head) => ({ line: `M${x} ${y}C${x + dx} ${y + dy} ${u - dx} ${v - dy} ${u} ${v}`, head: `M${u} ${v}${heads[head]}` });
    if (e.from === e.to) return { line: `M${a.x} ${y - 6}c-26 -22 -26 22 -1 8`, head: `M${a.x} ${y + 3}l-6 3l1 -6z` };
    if (!isAside(e)) {
      const head = `M${right} ${z}${heads.left}`;
      if (y === z) return { line: `M${a.x} ${y}H${right}`, head };
      const turn = a.x - sizes.columnGap / 2, r = Math.min(6, Math.abs(y - z) / 2), up = y > z ? -r : r;
      return { line: `M${a.x} ${y}H${turn + r}q${-r} 0 ${-r} ${up}V${z - up}q0 ${up} ${-r} ${up}H${right}`, head };
    }
    if (right <= a.x) return curve(a.x, y, -bend, 0, right, z, "left");
    if (a.x + a.w < b.x) return curve(a.x + a.w, y, bend, 0, b.x - 1, z, "right");
    if (a.y > b.y + b.h) return curve(a.x + a.w / 2, a.y, 0, -bend, b.x + b.w / 2, b.y + b.h + 1, "up");
    return curve(a.x + a.w / 2, a.y + a.h, 0, bend, b.x + b.w / 2, b.y - 1, "down");
  };

  // The page.
  const search = h("input", { type: "search", id: "search", placeholder: "Search  ( / )", "aria-label": "Search by kind, name or namespace", autocomplete: "off", spellcheck: "false" });
  const hint = h("div", { id: "hint", role: "status", "aria-live": "polite" });
  const panel = h("aside", { id: "panel", hidden: true, "aria-label": "Details" });
  const world = s("g", { id: "world" });
  const layers = { frames: s("g"), edges: s("g", { class: "edges" }), lineage: s("g", { class: "lineage" }), far: s("g"), near: s("g") };
  world.append(layers.frames, layers.edges, layers.lineage, layers.far, layers.near);
  const defs = s("defs");
  for (const t of data.tones) {
    defs.append(s("marker", { id: "to-" + t, class: "a " + t, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 6, markerHeight: 6, markerUnits: "userSpaceOnUse", orient: "auto" }, s("path", { d: "M0 0L8 4L0 8z" })));
  }
  const picture = s("svg", { "aria-hidden": "false" }, defs, world);
  const stage = h("div", { id: "stage", tabindex: "0", role: "tree", "aria-label": data.title }, picture, hint);
  if (!nodes.length) stage.append(h("div", { id: "empty", text: "There is nothing to draw." }));
  const help = h("dialog", {}, h("h2", { text: "Keys" }), h("table", {}, ...[
    ["Arrows", "left to the owner, right to a dependent, up and down to neighbours"],
    ["Enter, Space", "close or open what is right of the selected object"],
    ["/", "search; Enter goes to the next match, Esc ends it"],
    ["+  −  0", "zoom in, zoom out, show everything"],
    ["Shift + arrows", "move the picture"],
    ["[  ]", "close everything, open everything"],
    ["Esc", "select nothing"],
  ].map(([keys, what]) => h("tr", {}, h("td", {}, h("kbd", { text: keys })), h("td", { text: what })))),
  h("p", { text: "The mouse moves the picture, its wheel zooms. A click on an entry above shows what it is about." }),
  h("form", { method: "dialog" }, h("button", { text: "Close" })));
  help.querySelector("form").addEventListener("submit", (event) => { event.preventDefault(); help.close(); });

  const chosen = new Set(); // keys of marks
  const chips = data.marks.map((m) => {
    let n = 0;
    if (m.edge) for (const e of edges) n += e.mark === m.key ? count(nodes[e.from]) : 0;
    else for (const x of nodes) n += x.marks && x.marks.includes(m.key) ? count(x) : 0;
    const cls = m.tone + (m.dashed ? " dashed" : "");
    const sign = m.edge ? s("path", { class: "e " + cls, d: "M20 6H2", "marker-end": `url(#to-${m.tone})` }) : s("g", { class: "n " + cls }, s("rect", { x: 1, y: 0.5, width: 18, height: 11, rx: 3 }));
    const chip = h("button", { class: "chip", type: "button", "aria-pressed": "false", "data-mark": m.key, title: m.meaning }, s("svg", { width: 21, height: 12, "aria-hidden": "true" }, sign), h("span", { text: m.label }), h("b", { text: n }));
    chip.addEventListener("click", () => {
      if (!chosen.delete(m.key)) chosen.add(m.key);
      chip.setAttribute("aria-pressed", chosen.has(m.key));
      ask(); reveal(); draw();
    });
    return chip;
  });
  const tool = (text, title, onclick) => h("button", { type: "button", text, title, "aria-label": title, onclick });
  app.append(
    h("header", {},
      h("h1", { text: data.title }), h("span", { class: "subtitle", text: data.subtitle }),
      h("div", { class: "tools" }, search, tool("−", "Zoom out", () => zoom(1 / 1.3)), tool("+", "Zoom in", () => zoom(1.3)), tool("Fit", "Show everything", () => { fit(); draw(); }),
        tool("◐", "Light or dark", toggleTheme), tool("?", "Keys", () => help.showModal())),
      ...(data.notes.length ? [h("ul", { class: "notes" }, ...data.notes.map((text) => h("li", { text })))] : []),
      ...(data.findings.length ? [h("ol", { class: "findings", "aria-label": "Findings" }, ...data.findings.map((f) =>
        h("li", {}, h("button", { type: "button", disabled: f.node < 0, onclick: () => select(f.node) }, h("span", { class: "mark " + f.tone, text: f.label }), " " + f.text))))] : []),
      h("div", { class: "legend", role: "group", "aria-label": "Show only" }, ...chips)),
    stage, panel, help);
  function toggleTheme() {
    const root = document.documentElement, now = root.dataset.theme || (matchMedia("(prefers-color-scheme:dark)").matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
  }

  // What is looked for: null for everything.
  let hits = null, selected = -1, line = null;
  const texts = nodes.map((n) => [n.kind, n.namespace || "", n.name, n.note || "", ...(n.members || [])].join("\n").toLowerCase());
  function ask() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length && !chosen.size) { hits = null; return; }
    hits = new Set();
    nodes.forEach((n, i) => {
      const marked = !chosen.size || (n.marks || []).some((k) => chosen.has(k)) || owners[i].some((k) => chosen.has(edges[k].mark));
      if (marked && words.every((w) => texts[i].includes(w))) hits.add(i);
    });
  }
  // Opens what hides a match, unless there are so many that nothing would stand out.
  function reveal() {
    let opened = false;
    if (hits && hits.size <= 1000) for (const i of hits) for (let u = nodes[i].under; u >= 0; u = nodes[u].under) opened = closed.delete(u) || opened;
    if (opened) relayout();
  }
  function lineage(i) {
    const found = { nodes: new Set([i]), edges: new Set() };
    for (const [from, next] of [[owners, "to"], [dependents, "from"]]) {
      const queue = [i], seen = new Set(queue);
      while (queue.length) for (const k of from[queue.pop()]) {
        found.edges.add(k);
        const j = edges[k][next];
        if (!seen.has(j)) { seen.add(j); found.nodes.add(j); queue.push(j); }
      }
    }
    return found;
  }
  const dim = (i) => hits ? !hits.has(i) && i !== selected : line ? !line.nodes.has(i) : false;

  // The view: world to screen is scale and shift.
  let view = { k: 1, x: 0, y: 0 }, width = 0, height = 0;
  const measure = () => { const r = stage.getBoundingClientRect(); width = r.width; height = r.height; };
  function fit() {
    measure();
    const k = Math.min(1.25, (width - 48) / Math.max(size.w, 1), (height - 64) / Math.max(size.h, 1));
    view = { k, x: (width - size.w * k) / 2, y: Math.max(16, (height - 24 - size.h * k) / 2) };
  }
  function zoom(factor, x = width / 2, y = height / 2) {
    const k = Math.min(4, Math.max(0.01, view.k * factor)), f = k / view.k;
    view = { k, x: x - (x - view.x) * f, y: y - (y - view.y) * f };
    draw();
  }
  function bring(i) { // into sight
    const b = place[i], pad = 60, k = view.k = Math.max(view.k, 0.7);
    const left = b.x * k + view.x, top = b.y * k + view.y;
    if (left < pad || left + b.w * k > width - pad || top < pad || top + b.h * k > height - pad) {
      view.x = width / 2 - (b.x + b.w / 2) * k; view.y = height / 2 - (b.y + b.h / 2) * k;
    }
  }

  // Drawing: near, nodes are elements, those in sight alone; far, all nodes of one
  // look are one path. Edges of one look always are.
  const elements = new Map();
  let edgesOf = null;
  let queued = false;
  const draw = () => { if (!queued) { queued = true; requestAnimationFrame(paint); } };
  const relayout = () => { layout(); edgesOf = null; for (const g of elements.values()) g.remove(); elements.clear(); draw(); };
  function paint() {
    queued = false;
    world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.k})`);
    const near = view.k >= 0.35;
    if (edgesOf !== place) paintEdges();
    layers.edges.setAttribute("class", "edges" + (hits || line ? " dim" : ""));
    paintLineage();
    const wanted = new Set();
    if (near) {
      const x0 = -view.x / view.k - 40, y0 = -view.y / view.k - 40, x1 = x0 + width / view.k + 80, y1 = y0 + height / view.k + 80;
      for (const i of shown) { const b = place[i]; if (b.x + b.w > x0 && b.x < x1 && b.y + b.h > y0 && b.y < y1) wanted.add(i); }
    }
    if (selected >= 0 && place[selected]) wanted.add(selected);
    for (const [i, g] of elements) if (!wanted.has(i)) { g.remove(); elements.delete(i); }
    for (const i of wanted) {
      let g = elements.get(i);
      if (!g) { g = nodeElement(i); elements.set(i, g); layers.near.append(g); }
      g.setAttribute("class", `n ${tone(i)}${dim(i) ? " dim" : ""}${i === selected ? " selected" : ""}${hits && hits.has(i) ? " hit" : ""}`);
    }
    layers.far.replaceChildren(...(near ? [] : farPaths()));
    say();
  }
  function paintEdges() {
    const byTone = new Map();
    edges.forEach((e, k) => {
      if (!place[e.from] || !place[e.to]) return;
      const cls = edgeTone(k) + (isAside(e) ? " aside" : "");
      if (!byTone.has(cls)) byTone.set(cls, []);
      byTone.get(cls).push(route(e));
    });
    const weight = (cls) => data.tones.indexOf(cls.split(" ")[0]);
    layers.edges.replaceChildren(...[...byTone.keys()].sort((a, b) => weight(a) - weight(b)).flatMap((cls) => [
      s("path", { class: "e " + cls, d: byTone.get(cls).map((r) => r.line).join("") }),
      s("path", { class: "a " + cls, d: byTone.get(cls).map((r) => r.head).join("") })]));
    layers.frames.replaceChildren(...frames.map((f) => s("g", {}, s("rect", { class: "frame", x: f.x, y: f.y, width: f.w, height: f.h, rx: 8 }),
      s("text", { class: "frametitle", x: f.x + sizes.framePadding, y: f.y + sizes.framePadding + 6, text: f.title }))));
    edgesOf = place;
  }
  function paintLineage() {
    const found = line && !hits ? [...line.edges].filter((k) => place[edges[k].from] && place[edges[k].to]) : [];
    layers.lineage.replaceChildren(...found.slice(0, 5000).map((k) => s("path", { class: "e " + edgeTone(k), d: route(edges[k]).line })));
  }
  function farPaths() {
    const byLook = new Map();
    for (const i of shown) {
      const cls = tone(i) + (dim(i) ? " dim" : ""), b = place[i];
      if (!byLook.has(cls)) byLook.set(cls, []);
      byLook.get(cls).push(`M${b.x} ${b.y}h${b.w}v${b.h}h${-b.w}z`);
    }
    return [...byLook].map(([cls, d]) => s("path", { class: "far " + cls, d: d.join("") }));
  }
  function nodeElement(i) {
    const n = nodes[i], b = place[i], x = b.x + sizes.padding;
    const g = s("g", { id: "n" + i, role: "treeitem", "aria-label": fullName(i) + (n.note ? ", " + n.note : ""), "aria-level": depth[i] + 1, "data-node": i });
    if (n.count) g.append(s("rect", { x: b.x + 4, y: b.y + 4, width: b.w, height: b.h, rx: 6 }));
    g.append(s("title", { text: fullName(i) }), s("rect", { x: b.x, y: b.y, width: b.w, height: b.h, rx: 6 }),
      s("text", { class: "kind", x, y: b.y + sizes.line, text: n.heading }), s("text", { class: "name", x, y: b.y + 2 * sizes.line, text: n.title }));
    if (n.note) g.append(s("text", { class: "note " + n.noteTone, x, y: b.y + 3 * sizes.line - 1, text: n.note }));
    if (below[i].length) {
      g.setAttribute("aria-expanded", !closed.has(i));
      const text = closed.has(i) ? "+" + hidden[i] : "−", r = closed.has(i) ? 6 + 3 * text.length : 7;
      g.append(s("g", { class: closed.has(i) ? "toggle closed" : "toggle", "data-toggle": i }, s("title", { text: closed.has(i) ? `Open: ${hidden[i]} objects` : "Close" }),
        s("circle", { cx: b.x + b.w, cy: middle(b), r }), s("text", { x: b.x + b.w, y: middle(b) + 3.5, text })));
    }
    return g;
  }
  function say() {
    let text = `${shown.reduce((sum, i) => sum + count(nodes[i]), 0)} of ${nodes.reduce((sum, n) => sum + count(n), 0)} objects open`;
    if (hits) text = `${[...hits].reduce((sum, i) => sum + count(nodes[i]), 0)} found`;
    if (hint.textContent !== text) hint.textContent = text;
  }

  // Selection and details.
  function select(i, focus = true) {
    selected = i;
    line = i < 0 ? null : lineage(i);
    if (i >= 0) {
      let opened = false;
      for (let u = nodes[i].under; u >= 0; u = nodes[u].under) opened = closed.delete(u) || opened;
      if (opened) relayout();
      details(i);
      stage.setAttribute("aria-activedescendant", "n" + i);
    } else {
      panel.hidden = true;
      stage.removeAttribute("aria-activedescendant");
    }
    measure();
    if (i >= 0 && focus) bring(i);
    draw();
  }
  function reference(k, other) {
    const e = edges[k], m = marks.get(e.mark);
    const item = h("li", {}, h("button", { type: "button", text: fullName(other), onclick: () => select(other) }), " ");
    if (e.label || m) item.append(h("span", { class: "mark " + (m ? m.tone : "plain"), text: e.label || m.label, title: m ? m.meaning : false }));
    if (e.details) item.append(h("span", { class: "where", text: e.details.join(", ") }));
    return item;
  }
  const longest = 200;
  function section(title, items) {
    if (!items.length) return [];
    const rest = items.length - longest;
    return [h("h3", { text: `${title} (${items.length})` }), h("ul", {}, ...items.slice(0, longest), ...(rest > 0 ? [h("li", { class: "where", text: `and ${rest} more` })] : []))];
  }
  // A page in a file may lack a clipboard: then the text of the button's command is selected and copied.
  function copier(text) {
    const button = h("button", { class: "copy", type: "button", text: "Copy", onclick: async () => {
      let done = true;
      try { await navigator.clipboard.writeText(text); } catch {
        getSelection().selectAllChildren(button.nextSibling);
        done = document.execCommand("copy");
      }
      button.textContent = done ? "Copied" : "Press Ctrl-C";
    } });
    return button;
  }
  function details(i) {
    const n = nodes[i];
    const said = (n.marks || []).map((k) => marks.get(k)).filter(Boolean).flatMap((m) => [h("span", { class: "mark " + m.tone, text: m.label }), ...(m.meaning ? [h("p", { class: "meaning", text: m.meaning })] : [])]);
    panel.replaceChildren(
      h("button", { class: "close", type: "button", text: "×", title: "Close", "aria-label": "Close", onclick: () => { select(-1); stage.focus(); } }),
      h("h2", { class: "mono", text: n.count ? n.kind + " x" + n.count : n.kind + "/" + n.name }), ...said,
      h("dl", {}, ...(n.details || []).flatMap((d) => [h("dt", { text: d.label }), d.code ? h("dd", {}, copier(d.value), h("pre", { text: d.value })) : h("dd", { text: d.value })])),
      ...section(data.clustered ? "Owners" : "Waits for", owners[i].map((k) => reference(k, edges[k].to))),
      ...section(data.clustered ? "Dependents" : "Is waited for by", dependents[i].slice(0, 5000).map((k) => reference(k, edges[k].from))),
      ...section("Stands for", (n.members || []).map((text) => h("li", { class: "mono", text }))));
    panel.hidden = false;
    panel.scrollTop = 0;
  }
  function toggle(i, anchor = true) {
    if (!below[i].length) return;
    const before = { ...place[i] };
    if (!closed.delete(i)) closed.add(i);
    relayout();
    if (anchor) { view.x += (before.x - place[i].x) * view.k; view.y += (before.y - place[i].y) * view.k; }
  }
  function toggleAll(close) {
    closed.clear();
    if (close) nodes.forEach((n, i) => { if (below[i].length) closed.add(i); });
    if (selected >= 0) for (let u = nodes[selected].under; u >= 0; u = nodes[u].under) closed.delete(u);
    relayout(); fit();
  }

  // Mouse and touch.
  const pointers = new Map();
  let moved = 0;
  const at = (event) => {
    const r = stage.getBoundingClientRect(), x = (event.clientX - r.left - view.x) / view.k, y = (event.clientY - r.top - view.y) / view.k;
    return shown.findLast((i) => { const b = place[i]; return x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + b.h; }) ?? -1;
  };
  stage.addEventListener("pointerdown", (event) => {
    if (event.button > 0) return;
    pointers.set(event.pointerId, event); moved = 0;
  });
  addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const dx = event.clientX - before.clientX, dy = event.clientY - before.clientY;
    moved += Math.abs(dx) + Math.abs(dy);
    if (pointers.size === 2) {
      const other = [...pointers].find(([id]) => id !== event.pointerId)[1], r = stage.getBoundingClientRect();
      const far = (a) => Math.hypot(a.clientX - other.clientX, a.clientY - other.clientY);
      zoom(far(event) / Math.max(far(before), 1), other.clientX - r.left, other.clientY - r.top);
    } else if (moved > 3) {
      stage.classList.add("dragging");
      view.x += dx; view.y += dy; draw();
    }
    pointers.set(event.pointerId, event);
  });
  const release = (event) => {
    if (!pointers.delete(event.pointerId)) return;
    stage.classList.remove("dragging");
    if (moved > 3 || event.type === "pointercancel") return;
    const knob = event.target.closest && event.target.closest("[data-toggle]");
    if (knob) toggle(+knob.dataset.toggle); else select(at(event), false);
  };
  addEventListener("pointerup", release);
  addEventListener("pointercancel", release);
  stage.addEventListener("dblclick", (event) => { const i = at(event); if (i >= 0) toggle(i); });
  stage.addEventListener("wheel", (event) => {
    event.preventDefault();
    const r = stage.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.clientX - r.left, event.clientY - r.top);
  }, { passive: false });

  // Keyboard.
  let match = -1;
  search.addEventListener("input", () => { match = -1; ask(); reveal(); draw(); });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && hits && hits.size) {
      const list = [...hits];
      match = (match + (event.shiftKey ? list.length - 1 : 1)) % list.length;
      select(list[match]);
    } else if (event.key === "Escape") { search.value = ""; ask(); draw(); stage.focus(); }
    event.stopPropagation();
  });
  const sameColumn = (i, step) => {
    const list = shown.filter((j) => Math.abs(place[j].x - place[i].x) < 1).sort((a, b) => place[a].y - place[b].y);
    return list[list.indexOf(i) + step] ?? i;
  };
  const moves = {
    ArrowLeft: (i) => nodes[i].under >= 0 ? nodes[i].under : owners[i].length ? edges[owners[i][0]].to : i,
    ArrowRight: (i) => { if (closed.has(i)) toggle(i); return below[i].length ? below[i][0] : dependents[i].length ? edges[dependents[i][0]].from : i; },
    ArrowUp: (i) => sameColumn(i, -1), ArrowDown: (i) => sameColumn(i, 1),
  };
  stage.addEventListener("keydown", (event) => {
    const key = event.key;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (moves[key] && event.shiftKey) {
      view.x += key === "ArrowLeft" ? 80 : key === "ArrowRight" ? -80 : 0; view.y += key === "ArrowUp" ? 80 : key === "ArrowDown" ? -80 : 0; draw();
    } else if (moves[key]) select(selected < 0 || !place[selected] ? shown[0] ?? -1 : moves[key](selected));
    else if ((key === "Enter" || key === " ") && selected >= 0) toggle(selected);
    else if (key === "+" || key === "=") zoom(1.3);
    else if (key === "-") zoom(1 / 1.3);
    else if (key === "0") { fit(); draw(); }
    else if (key === "[") toggleAll(true);
    else if (key === "]") toggleAll(false);
    else if (key === "Escape") select(-1);
    else return;
    event.preventDefault();
  });
  addEventListener("keydown", (event) => {
    if (event.target === search || event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.key === "/") { event.preventDefault(); search.focus(); search.select(); }
    else if (event.key === "?") help.showModal();
  });
  new ResizeObserver(() => { measure(); draw(); }).observe(stage);

  layout();
  fit();
  paint();
  document.body.dataset.ready = "1";
})();
