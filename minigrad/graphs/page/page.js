"use strict";
// The page of a pass: a box is grey, then white (its value exists), then coloured (a gradient has
// arrived). All texts are set as text, never as markup, so a name cannot become a tag.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const passes = data.passes, main = passes[0];
  const $ = id => document.getElementById(id);
  const LARGEST = 150;  // boxes that are laid out at once
  const STEPS = main.forward.length + main.backward.length;
  const open = new Set();
  let step = 0, hits = [], hit = -1;

  const make = (tag, attributes = {}, ...children) => {
    const svg = ["svg", "path", "text", "defs", "marker"].includes(tag);
    const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  // ------------------------------------------------------------ what is known at a step

  const isForward = k => k > 0 && k <= main.forward.length;
  const contribution = (pass, k) => pass.backward[k - main.forward.length - 1];

  // The gradient of each vertex after step k: the sum of what has arrived.
  function arrived(pass, k) {
    const found = new Map();
    for (let j = 0; j < k - main.forward.length; j++) found.set(pass.backward[j].target, j);
    return found;
  }
  const after = (pass, j) => pass.backward[j].after || pass.backward[j].contribution;
  function before(pass, j) {
    for (let i = j - 1; i >= 0; i--) if (pass.backward[i].target === pass.backward[j].target) return after(pass, i);
    return null;
  }
  function gradients(pass, k) {
    const found = new Map();
    if (STEPS === 0) pass.vertices.forEach((v, n) => v.gradient && found.set(n, v.gradient));
    for (const [n, j] of arrived(pass, k)) found.set(n, after(pass, j));
    return found;
  }
  function computed(k) {
    const found = new Set(main.vertices.map((v, n) => v.operation ? -1 : n));
    main.forward.slice(0, STEPS === 0 ? undefined : Math.min(k, main.forward.length)).forEach(n => found.add(n));
    if (STEPS === 0) main.vertices.forEach((v, n) => found.add(n));
    return found;
  }

  // ------------------------------------------------------------ numbers and colours

  const rms = summary => summary.rms;
  const short = x => typeof x !== "number" ? String(x) : x === 0 ? "0" : Math.abs(x) >= 1e4 || Math.abs(x) < 1e-3 ? x.toExponential(1) : String(+x.toPrecision(3));
  function shade(strength) {
    if (!(strength > 0)) return "#ffffff";
    const [low, high] = data.limits.map(Math.log10), all = data.scale;
    const place = Math.min(Math.max((Math.log10(Math.min(strength, 1e300)) - low) / (high - low), 0), 1) * (all.length - 1);
    const left = Math.min(Math.floor(place), all.length - 2);
    const channel = (colour, i) => parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16);
    const mix = i => Math.round(channel(all[left], i) + (channel(all[left + 1], i) - channel(all[left], i)) * (place - left));
    return `rgb(${mix(0)}, ${mix(1)}, ${mix(2)})`;
  }
  const noise = new Set(data.noise);  // leaves whose gradient is 0 but for rounding
  const said = (g, vertex) => g === null || g === undefined ? "" : noise.has(vertex) ? "≈ 0" : short(g);

  // A heat map: blue below 0, orange above, white at 0; with numbers if there are at most 64.
  function heat(summary, caption, most) {
    const numbers = summary.whole !== undefined ? summary.whole : summary.map;
    const flat = x => Array.isArray(x) ? x.flatMap(flat) : [x];
    const rows = x => !Array.isArray(x) ? [[x]] : !Array.isArray(x[0]) ? [x] : !Array.isArray(x[0][0]) ? x : x.flatMap(rows);
    const grid = rows(numbers), fine = flat(numbers).length > 64;
    const table = make("table", {class: fine ? "heat fine" : "heat", role: "img", "aria-label": `${caption}: ${words(summary)}`});
    for (const row of grid) {
      const line = make("tr");
      for (const x of row) {
        const cell = make("td", {title: String(x)});
        const part = typeof x === "number" && most > 0 ? Math.min(Math.abs(x) / most, 1) : 0;
        cell.style.background = `color-mix(in srgb, ${x < 0 ? "#5b9bd5" : "#ee8f31"} ${Math.round(100 * part)}%, white)`;
        if (!fine) cell.append(short(x));
        line.append(cell);
      }
      table.append(line);
    }
    const note = summary.whole === undefined ? " (means of pieces)" : "";
    return make("figure", {}, make("figcaption", {}, `${caption} ${shape(summary)}, RMS ${short(rms(summary))}${note}`), table);
  }
  const shape = summary => `(${summary.shape.join(", ")}${summary.shape.length === 1 ? "," : ""})`;
  const words = summary => `${shape(summary)}, RMS ${short(rms(summary))}`;
  const largest = (...summaries) => Math.max(0, ...summaries.filter(Boolean).flatMap(s => [s.whole, s.map]).filter(x => x !== undefined).flat(Infinity).filter(x => typeof x === "number").map(Math.abs));

  // ------------------------------------------------------------ what is visible

  const groups = data.groups;  // id → {title, path, parent, detail}
  const parents = id => { const found = []; for (let g = id; g; g = groups[g].parent) found.unshift(g); return found; };
  const around = main.boxes.map(box => box.group ? parents(box.group) : []);
  // The innermost thing that is drawn for a box: itself, or the outermost closed group around it.
  const drawn = (n, opened = open) => around[n].find(g => !opened.has(g)) || `b${n}`;
  const count = opened => new Set(main.boxes.map((_, n) => hidden(n, opened) ? null : drawn(n, opened))).size;
  // A layer's own leaf is drawn only where its layer is open.
  const hidden = (n, opened = open) => main.boxes[n].parameter && drawn(n, opened) !== `b${n}`;

  function toggle(g) {
    if (open.has(g)) {
      for (const id of [...open]) if (parents(id).includes(g)) open.delete(id);
    } else {
      const tried = new Set(open).add(g);
      if (count(tried) > LARGEST) return say(`Opening this layer would show more than ${LARGEST} boxes: close another one first.`);
      open.add(g);
    }
    say("");
    layout();
    const first = document.querySelector(`[data-id="${CSS.escape(g)}"]`);
    if (first) first.focus({preventScroll: false});
    link();
  }
  const say = text => { $("message").textContent = text; };

  // ------------------------------------------------------------ layout

  function content(element, n, pass, isClosed, id) {
    element.replaceChildren();
    if (isClosed) {
      element.append(make("b", {}, groups[id].title), make("small", {}, groups[id].detail), make("small", {class: "grad"}, "\u00a0"));
      return;
    }
    const box = pass.boxes[n];
    element.append(make("b", {}, box.title));
    const called = [box.operation !== box.title ? box.operation : "", box.options, box.detail].filter(Boolean).join(" ");
    if (called) element.append(" " + called);
    element.append(make("small", {}, `(${box.shape.join(", ")}${box.shape.length === 1 ? "," : ""})`), make("small", {class: "grad"}, "\u00a0"));
    for (const row of box.rows) element.append(make("span", {class: "row", "data-vertex": row.vertex}, row.text));
  }

  function layout() {
    for (const [p, pass] of passes.entries()) lane(p, pass);
    paint();
  }

  function lane(p, pass) {
    const place = $(`graph${p}`);
    place.replaceChildren();
    const g = new dagre.graphlib.Graph({compound: true, multigraph: true});
    g.setGraph({rankdir: "TB", nodesep: 18, ranksep: 26, edgesep: 8, marginx: 12, marginy: 12});
    g.setDefaultEdgeLabel(() => ({}));
    const elements = new Map();
    main.boxes.forEach((box, n) => {
      if (hidden(n)) return;
      const id = drawn(n);
      if (elements.has(id)) return;
      const isClosed = groups[id] !== undefined;
      const kind = isClosed ? "closed" : box.kind;
      const element = make("button", {class: `box ${kind}`, "data-id": id, type: "button"});
      if (isClosed) element.setAttribute("aria-expanded", "false");
      content(element, n, pass, isClosed, id);
      element.addEventListener("click", () => isClosed ? toggle(id) : go(whenComputed(n)));
      place.append(element);
      elements.set(id, element);
      const size = element.getBoundingClientRect();
      g.setNode(id, {width: Math.ceil(size.width) + 2, height: Math.ceil(size.height) + 2});
    });
    const frames = new Map();
    for (const id of elements.keys()) {
      const up = groups[id] !== undefined ? parents(id).slice(0, -1) : around[+id.slice(1)];
      up.forEach((group, depth) => {
        const name = `frame:${group}`;
        if (!frames.has(group)) { frames.set(group, name); g.setNode(name, {}); if (depth) g.setParent(name, frames.get(up[depth - 1])); }
      });
      if (up.length) g.setParent(id, frames.get(up[up.length - 1]));
    }
    const met = new Set();
    main.links.forEach((edge, k) => {
      if (hidden(edge.source) || hidden(edge.target)) return;
      const [a, b] = [drawn(edge.source), drawn(edge.target)];
      const closed = groups[a] !== undefined || groups[b] !== undefined;
      if (a === b || (closed && met.has(`${a}>${b}`))) return;
      met.add(`${a}>${b}`);
      const label = closed ? "" : edge.words;
      g.setEdge(a, b, {link: k, words: label, width: label.length * 5.2, height: label ? 12 : 0, labelpos: "r"}, `e${k}`);
    });
    dagre.layout(g);
    const {width, height} = g.graph();
    place.style.width = `${width}px`;
    place.style.height = `${height}px`;
    for (const [group, name] of frames) {
      const node = g.node(name), frame = make("div", {class: "frame"});
      Object.assign(frame.style, {left: `${node.x - node.width / 2}px`, top: `${node.y - node.height / 2}px`, width: `${node.width}px`, height: `${node.height}px`});
      const title = make("button", {"data-id": group, "aria-expanded": "true", type: "button"}, groups[group].title);
      title.addEventListener("click", () => toggle(group));
      frame.append(title);
      place.prepend(frame);
    }
    for (const [id, element] of elements) {
      const node = g.node(id);
      Object.assign(element.style, {left: `${node.x - element.offsetWidth / 2}px`, top: `${node.y - element.offsetHeight / 2}px`});
    }
    const svg = make("svg", {width, height, "aria-hidden": "true"});
    const marker = make("marker", {id: `tip${p}`, viewBox: "0 0 8 8", refX: "7", refY: "4", markerWidth: "7", markerHeight: "7", orient: "auto-start-reverse", markerUnits: "userSpaceOnUse"});
    marker.append(make("path", {d: "M0 0 L8 4 L0 8 z", fill: "var(--edge)"}));
    svg.append(make("defs", {}, marker));
    for (const e of g.edges()) {
      const edge = g.edge(e);
      const points = edge.points.map(({x, y}) => `${x.toFixed(1)} ${y.toFixed(1)}`);
      svg.append(make("path", {class: "edge", d: `M${points.join(" L")}`, "marker-end": `url(#tip${p})`, "data-from": e.v, "data-to": e.w}));
      const middle = edge.points[edge.points.length >> 1];
      const [x, y] = edge.words ? [edge.x - edge.width / 2, edge.y + 4] : [middle.x + 6, middle.y + 4];
      const text = make("text", {class: "words", x, y, "data-from": e.v, "data-to": e.w, "data-words": edge.words});
      text.append(edge.words);
      svg.append(text);
    }
    place.append(svg);
    place.elements = elements;
  }

  // ------------------------------------------------------------ painting a step

  const whenComputed = n => {
    // Going forward the step that computes it; going back the last one that sends to it.
    const at = main.forward.indexOf(main.boxes[n].vertex) + 1;
    const last = main.backward.map(c => c.target).lastIndexOf(main.boxes[n].vertex) + 1;
    const forward = step <= main.forward.length;
    return (forward && at) || (last && main.forward.length + last) || at || step;
  };
  const boxOf = vertex => main.place[vertex];

  // The operation of a step; forward what it reads, backward what it sends to.
  function current() {
    if (step === 0) return {};
    if (isForward(step)) {
      const vertex = main.forward[step - 1];
      return {vertex, sources: main.vertices[vertex].inputs};
    }
    const c = contribution(main, step);
    return {vertex: c.source, target: c.target, back: true};
  }

  function paint() {
    const known = computed(step), now = current();
    const at = new Set();
    const touch = vertex => { const n = vertex === undefined || vertex === null ? undefined : boxOf(vertex); if (n !== undefined && n !== null) at.add(drawn(n)); };
    touch(now.vertex); touch(now.target);
    const pairs = new Set();
    const arrow = (a, b) => { if (boxOf(a) != null && boxOf(b) != null) pairs.add(`${drawn(boxOf(a))}>${drawn(boxOf(b))}`); };
    if (now.back && now.vertex !== null) arrow(now.target, now.vertex);
    else if (now.sources) now.sources.forEach(source => arrow(source, now.vertex));
    const all = passes.map(pass => gradients(pass, step));
    for (const [p, pass] of passes.entries()) {
      const place = $(`graph${p}`), found = all[p];
      const strength = new Map(), ready = new Map();
      main.boxes.forEach((box, n) => {
        const id = drawn(n), inside = [box.vertex, ...box.rows.map(row => row.vertex)];
        const isBox = id === `b${n}`;
        const seen = (isBox ? [box.vertex] : inside).filter(v => found.has(v)).map(v => rms(found.get(v)));
        if (seen.length) strength.set(id, Math.max(...seen, strength.get(id) ?? 0));
        ready.set(id, (ready.get(id) ?? true) && known.has(box.vertex));
      });
      for (const [id, element] of place.elements) {
        const g = strength.get(id), has = g !== undefined;
        const only = groups[id] === undefined ? main.boxes[+id.slice(1)].vertex : -1;
        const zero = has && (g === 0 || noise.has(only));
        element.classList.toggle("value", ready.get(id) && !has);
        element.classList.toggle("gradient", has);
        element.classList.toggle("zero", zero);
        element.classList.toggle("now", at.has(id));
        if (at.has(id)) element.setAttribute("aria-current", "step"); else element.removeAttribute("aria-current");
        element.style.background = has ? (zero ? "#ffffff" : shade(g)) : "";
        const label = element.querySelector(".grad");
        if (label) label.textContent = has ? `grad ${groups[id] !== undefined ? "up to " : ""}${said(g, only)}` : "\u00a0";
        for (const row of element.querySelectorAll(".row")) {
          const mine = found.get(+row.dataset.vertex);
          const vertex = +row.dataset.vertex;
          row.style.background = mine ? (noise.has(vertex) ? "#ffffff" : shade(rms(mine))) : "";
          row.title = mine ? `grad ${said(rms(mine), vertex)}` : "";
        }
      }
      for (const part of place.querySelectorAll("path.edge, text.words")) {
        const on = pairs.has(`${part.dataset.from}>${part.dataset.to}`);
        part.classList.toggle("now", on);
        if (part.tagName === "text") {
          const ratio = on && p === 0 && now.back ? apart() : "";
          part.textContent = ratio || part.dataset.words;
        } else if (on) part.parentNode.append(part);
      }
    }
    tell();
    if (!STEPS) return;
    $("slider").value = step;
    $("place").textContent = placeText();
    $("back").disabled = $("first").disabled = step === 0;
    $("forth").disabled = $("last").disabled = step === STEPS;
  }

  const placeText = () => step === 0 ? `step 0 of ${STEPS}: nothing is computed`
    : isForward(step) ? `step ${step} of ${STEPS}: forward ${step} of ${main.forward.length}`
    : `step ${step} of ${STEPS}: backward ${step - main.forward.length} of ${main.backward.length}`;

  // How far the two passes are apart in this contribution.
  function apart() {
    if (passes.length < 2) return "";
    const [a, b] = passes.map(pass => rms(contribution(pass, step).contribution));
    if (!(a > 0 && b > 0)) return "";
    return a >= b ? `× ${short(a / b)}` : `÷ ${short(b / a)}`;
  }

  function tell() {
    const panel = $("panel");
    panel.replaceChildren();
    const line = (text, kind = "") => panel.append(make("p", kind ? {class: kind} : {}, text));
    if (step === 0) {
      line(STEPS ? "Press ▶ or → for the first operation." : "Open a layer by a click or by Enter.");
      return;
    }
    const names = main.names;
    if (isForward(step)) {
      const v = main.vertices[main.forward[step - 1]];
      const inputs = v.inputs.map(i => names[i]);
      line(`${names[main.forward[step - 1]]} = ${v.operation}(${[...inputs, v.options].filter(Boolean).join(", ")})`);
      line([v.modules ? `in ${v.modules[v.modules.length - 1]}` : "", v.line || "", v.kind === "unrecorded" ? "without a record" : ""].filter(Boolean).join(", ") || "\u00a0");
      line(v.formula || "\u00a0", "formula");
      line(`${v.inputs.map(i => shape(main.vertices[i].value)).join(" and ")} → ${shape(v.value)}`);
      const sums = make("div", {class: "sums"});
      passes.forEach((pass, p) => {
        const value = pass.vertices[pass.forward[step - 1]].value;
        sums.append(heat(value, passes.length > 1 ? pass.title : "value", largest(value)));
      });
      panel.append(sums);
      return;
    }
    const j = step - main.forward.length - 1, c = main.backward[j];
    const title = c.source === null ? `${names[c.target]} receives the seed` : `${names[c.source]} → ${names[c.target]}`;
    const which = c.source !== null && main.vertices[c.source].inputs.filter(i => i === c.target).length > 1 ? `, input ${c.position}` : "";
    line(`${title}${which}${c.count ? `: ${c.count} contributions${before(main, j) ? " (+=)" : ""}` : ""}`);
    const v = c.source === null ? null : main.vertices[c.source];
    line(v ? [v.operation, v.line].filter(Boolean).join(", ") : "\u00a0");
    line((v && v.vjp) || "\u00a0", "formula");
    line(v ? `${shape(v.value)} ← gradient, ${shape(c.contribution)} ← contribution` : shape(c.contribution));
    for (const pass of passes) {
      const sums = make("div", {class: "sums"});
      const had = before(pass, j), come = pass.backward[j].contribution, total = after(pass, j);
      const most = largest(had, come, total);
      if (passes.length > 1) sums.append(make("span", {}, pass.title));
      if (had) sums.append(heat(had, "before", most), make("span", {class: "sign"}, "+"));
      sums.append(heat(come, "contribution", most));
      if (had) sums.append(make("span", {class: "sign"}, "="), heat(total, "after", most));
      panel.append(sums);
    }
  }

  // ------------------------------------------------------------ moving

  function go(to, remember = true) {
    step = Math.min(Math.max(Math.round(to), 0), STEPS);
    paint();
    if (remember) link();
  }
  function link() {
    if (location.protocol === "about:") return;  // (a page inside of another has no address)
    const parts = [];
    if (STEPS) parts.push(`step=${step}`);
    if (open.size) parts.push(`open=${[...open].map(g => encodeURIComponent(groups[g].path)).join(",")}`);
    history.replaceState(null, "", `#${parts.join("&")}`);
  }
  function follow() {
    const asked = new URLSearchParams(location.hash.slice(1)), problems = [];
    open.clear();
    for (const path of (asked.get("open") || "").split(",").filter(Boolean)) {
      const found = Object.keys(groups).find(g => groups[g].path === path);
      if (found) for (const g of parents(found)) open.add(g);
      else problems.push(`There is no layer ${path} in this graph.`);
    }
    if (open.size && count(open) > LARGEST) { open.clear(); problems.push(`These layers have more than ${LARGEST} boxes together, so none is opened.`); }
    let to = step;
    if (asked.has("step")) {
      const number = Number(asked.get("step"));
      if (Number.isInteger(number) && number >= 0 && number <= STEPS) to = number;
      else problems.push(`There is no step ${asked.get("step")}: the last one is ${STEPS}.`);
    }
    layout();
    go(to, false);
    say(problems.join(" "));
  }
  function search(text) {
    const wanted = text.trim().toLowerCase();
    hits = wanted ? main.boxes.map((_, n) => n).filter(n => {
      const box = main.boxes[n], v = main.vertices[box.vertex];
      return [box.title, box.operation, ...(v.modules || []), ...box.rows.map(row => row.text)].some(x => x.toLowerCase().includes(wanted));
    }) : [];
    hit = -1;
    mark();
    $("hits").textContent = wanted ? `${hits.length} found${hits.length ? ", Enter goes to the next" : ""}` : "";
  }
  function mark() {
    const ids = new Set(hits.map(n => drawn(n)));
    for (const element of document.querySelectorAll(".box")) element.classList.toggle("hit", ids.has(element.dataset.id));
  }
  function next() {
    if (!hits.length) return;
    hit = (hit + 1) % hits.length;
    const tried = new Set(open);
    around[hits[hit]].forEach(g => tried.add(g));
    if (count(tried) <= LARGEST) { tried.forEach(g => open.add(g)); layout(); mark(); }
    const element = $("graph0").elements.get(drawn(hits[hit]));
    if (element) element.scrollIntoView({block: "center", inline: "center"});
    link();
  }

  // ------------------------------------------------------------ start

  $("app").hidden = false;
  for (const [p, pass] of passes.entries()) {
    const graph = make("div", {class: "graph", id: `graph${p}`});
    const scroll = make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": pass.title || "The graph"}, graph);
    $("lanes").append(make("div", {class: "lane"}, ...(pass.title ? [make("h2", {}, pass.title)] : []), scroll));
  }
  if (!STEPS) $("buttons").remove();
  else {
    $("slider").max = STEPS;
    $("slider").addEventListener("input", event => go(+event.target.value));
    $("first").addEventListener("click", () => go(0));
    $("back").addEventListener("click", () => go(step - 1));
    $("forth").addEventListener("click", () => go(step + 1));
    $("last").addEventListener("click", () => go(STEPS));
  }
  $("close").addEventListener("click", () => { open.clear(); layout(); link(); });
  $("find").addEventListener("input", event => search(event.target.value));
  $("find").addEventListener("keydown", event => { if (event.key === "Enter") next(); });
  document.addEventListener("keydown", event => {
    if (event.target.tagName === "INPUT" && event.target.type === "search") {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const to = {ArrowLeft: step - 1, ArrowRight: step + 1, Home: 0, End: STEPS}[event.key];
    if (event.key === "/") { event.preventDefault(); $("find").focus(); }
    else if (to !== undefined && STEPS) { event.preventDefault(); go(to); }
  });
  window.addEventListener("hashchange", follow);
  if (data.limits) {
    const [low, high] = data.limits;
    $("legend").append(`${short(low)} `);
    for (let i = 0; i < 7; i++) {
      const cell = make("span");
      cell.style.background = shade(low * (high / low) ** (i / 6));
      $("legend").append(cell);
    }
    $("legend").append(` ${short(high)}: RMS of the gradient (log scale)`);
  } else $("legend").remove();
  follow();
})();
