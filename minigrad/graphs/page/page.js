"use strict";
// The page of a pass: a box is grey, then white (its value exists), then coloured (a gradient has
// arrived). All texts are set as text, never as markup, so a name cannot become a tag.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const passes = data.passes, main = passes[0];
  const $ = id => document.getElementById(id);
  const LARGEST = data.most;  // boxes that are laid out at once
  const STEPS = main.forward.length + main.backward.length;
  const open = new Set(), chosen = new Set();  // layers; boxes whose numbers are shown
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

  const after = (pass, j) => pass.backward[j].after || pass.backward[j].contribution;
  function before(pass, j) {
    for (let i = j - 1; i >= 0; i--) if (pass.backward[i].target === pass.backward[j].target) return after(pass, i);
    return null;
  }
  // The gradient of each vertex after step k: the sum of what has arrived, its words, its colour.
  function gradients(pass, k) {
    const found = new Map();
    if (STEPS === 0) pass.vertices.forEach((v, n) => v.gradient && found.set(n, {...v.gradient, sum: v.gradient}));
    for (let j = 0; j < k - main.forward.length; j++) found.set(pass.backward[j].target, {said: pass.backward[j].said, colour: pass.backward[j].colour, sum: after(pass, j)});
    return found;
  }
  function computed(k) {
    const found = new Set(main.vertices.map((v, n) => v.operation ? -1 : n));
    main.forward.slice(0, STEPS === 0 ? undefined : Math.min(k, main.forward.length)).forEach(n => found.add(n));
    if (STEPS === 0) main.vertices.forEach((v, n) => found.add(n));
    return found;
  }

  // ------------------------------------------------------------ numbers

  // (JSON has neither NaN nor ∞: they come as text.)
  const number = x => typeof x === "string" ? {nan: NaN, inf: Infinity, "-inf": -Infinity}[x] : x;
  const rms = summary => number(summary.rms);
  // As Python's :.3g. (Numbers come with four digits, and rounding twice would differ.)
  function short(x, count = 3) {
    if (Number.isNaN(x)) return "nan";
    if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
    if (x === 0) return "0";
    const [digits, power] = x.toExponential(count - 1).split("e");
    if (+power >= -4 && +power < count) return String(+x.toPrecision(count));
    return `${+digits}e${power[0]}${power.slice(1).padStart(2, "0")}`;
  }
  const times = x => x < 1e9 ? (+x.toPrecision(2)).toLocaleString("en") : short(+x.toPrecision(2));

  // A heat map: blue below 0, orange above, white at 0; with numbers if there are at most 64.
  function heat(summary, caption, most) {
    const numbers = summary.whole !== undefined ? summary.whole : summary.map;
    const flat = x => Array.isArray(x) ? x.flatMap(flat) : [x];
    const rows = x => !Array.isArray(x) ? [[x]] : !Array.isArray(x[0]) ? [x] : !Array.isArray(x[0][0]) ? x : x.flatMap(rows);
    const grid = rows(numbers), fine = flat(numbers).length > 64;
    const table = make("table", {class: fine ? "heat fine" : "heat", role: "img", "aria-label": `${caption}: ${shape(summary)}, RMS ${short(rms(summary))}`});
    for (const row of grid) {
      const line = make("tr");
      for (const x of row.map(number)) {
        const cell = make("td", {title: String(x)});
        const part = Number.isFinite(x) ? (most > 0 ? Math.min(Math.abs(x) / most, 1) : 0) : 1;
        cell.style.background = Number.isNaN(x) ? data.lost : `color-mix(in srgb, ${x < 0 ? "#5b9bd5" : "#ee8f31"} ${Math.round(100 * part)}%, white)`;
        if (!fine) cell.append(short(x, 4));
        line.append(cell);
      }
      table.append(line);
    }
    const note = summary.whole === undefined ? "; a cell is the mean of a piece" : "";
    return make("figure", {}, make("figcaption", {}, `${caption} ${shape(summary)}, RMS ${short(rms(summary))}${note}`), table);
  }
  const shape = summary => `(${summary.shape.join(", ")}${summary.shape.length === 1 ? "," : ""})`;
  // One scale for several tables, so that a small gradient looks small beside a large one.
  const largest = summaries => summaries.filter(Boolean).flatMap(s => [s.whole, s.map]).filter(x => x !== undefined).flat(Infinity).map(number).filter(Number.isFinite).reduce((most, x) => Math.max(most, Math.abs(x)), 0);

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
      const tried = new Set(open).add(g), alone = new Set(parents(g));
      if (count(tried) > LARGEST) return say(`Opening this layer would show more than ${LARGEST} boxes${count(alone) > LARGEST ? ", even if all others are closed." : ": close another one first."}`);
      open.add(g);
    }
    say("");
    layout();
    const first = document.querySelector(`[data-id="${CSS.escape(g)}"]`);
    if (first) { first.focus({preventScroll: true}); reveal(first); }
    link();
  }
  const say = text => { $("message").textContent = text; };

  // Boxes that are out of sight are brought into their own frame: all, or the last if they are far
  // apart. Neither the page is moved, nor one around it, and nothing glides.
  function reveal(...elements) {
    const frame = elements[0].closest(".scroll"), seen = frame.getBoundingClientRect();
    for (const [start, end, scroll] of [["top", "bottom", "scrollTop"], ["left", "right", "scrollLeft"]]) {
      const places = elements.map(element => element.getBoundingClientRect());
      let a = Math.min(...places.map(r => r[start])) - 5, b = Math.max(...places.map(r => r[end])) + 5;
      if (b - a > seen[end] - seen[start]) [a, b] = [places[places.length - 1][start], places[places.length - 1][end]];
      if (a < seen[start] || b > seen[end]) frame[scroll] += (a + b - seen[start] - seen[end]) / 2;
    }
  }

  // ------------------------------------------------------------ layout

  // The longest words that each vertex's gradient will have: its box is made wide enough for them.
  const pen = document.createElement("canvas").getContext("2d");
  const lengths = new Map();
  function wide(text, font = "12px system-ui, sans-serif") {
    if (!lengths.has(font + text)) { pen.font = font; lengths.set(font + text, pen.measureText(text).width); }
    return lengths.get(font + text);
  }
  const longest = passes.map(pass => {
    const found = new Map();
    const meet = (n, said) => { if (!found.has(n) || wide(found.get(n)) < wide(said)) found.set(n, said); };
    for (const c of pass.backward) meet(c.target, c.said);
    pass.vertices.forEach((v, n) => v.gradient && meet(n, v.gradient.said));
    return found;
  });
  const within = box => [box.vertex, ...box.rows.map(row => row.vertex)];

  function content(element, n, p, isClosed, id) {
    const pass = passes[p], known = [];
    if (isClosed) {
      element.append(make("b", {}, groups[id].title), make("small", {}, groups[id].detail));
      main.boxes.forEach((box, k) => { if (around[k].includes(id)) within(box).forEach(v => known.push(v)); });
    } else {
      const box = pass.boxes[n];
      element.append(make("b", {}, box.title));
      const called = [box.operation !== box.title ? box.operation : "", box.options, box.detail].filter(Boolean).join(" ");
      if (called) element.append(" " + called);
      element.append(make("small", {}, shape(box)));
      known.push(box.vertex);
    }
    const words = known.map(v => longest[p].get(v)).filter(Boolean).reduce((a, b) => wide(a) < wide(b) ? b : a, "");
    element.append(make("small", {class: "grad"}, (isClosed ? upTo(words) : words) || "\u00a0"));
    if (!isClosed) for (const row of pass.boxes[n].rows) element.append(make("span", {class: "row", "data-vertex": row.vertex}, row.text));
  }
  const upTo = words => words.replace("grad", "grad up to");

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
      content(element, n, p, isClosed, id);
      element.addEventListener("click", () => isClosed ? toggle(id) : choose(n));
      place.append(element);
      elements.set(id, element);
      const size = element.getBoundingClientRect();
      element.style.width = `${Math.ceil(size.width)}px`;
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
      const label = closed ? "" : pass.links[k].words;
      g.setEdge(a, b, {words: label, width: label && Math.ceil(wide(label, "bold 10px system-ui, sans-serif")), height: label ? 12 : 0, labelpos: "r"}, `e${k}`);
    });
    dagre.layout(g);
    const {width, height} = g.graph();
    place.style.width = `${width}px`;
    place.style.height = `${height}px`;
    const behind = place.firstChild;  // frames come before boxes, the outer ones first
    for (const [group, name] of frames) {
      const node = g.node(name), frame = make("div", {class: "frame"});
      Object.assign(frame.style, {left: `${node.x - node.width / 2}px`, top: `${node.y - node.height / 2}px`, width: `${node.width}px`, height: `${node.height}px`});
      const title = make("button", {"data-id": group, "aria-expanded": "true", type: "button"}, groups[group].title);
      title.addEventListener("click", () => toggle(group));
      frame.append(title);
      place.insertBefore(frame, behind);
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
      const text = make("text", {class: "words", x, y, "data-from": e.v, "data-to": e.w, "data-words": edge.words, "data-x": x});
      text.append(edge.words);
      svg.append(text);
    }
    place.append(svg);
    place.elements = elements;
  }

  // ------------------------------------------------------------ painting a step

  const boxOf = vertex => data.place[vertex];

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
      const worst = new Map(), ready = new Map();
      main.boxes.forEach((box, n) => {
        const id = drawn(n);
        for (const v of id === `b${n}` ? [box.vertex] : within(box)) {
          const g = found.get(v), most = worst.get(id);
          if (g && !(most && (Number.isNaN(rms(most.sum)) || rms(most.sum) >= rms(g.sum)))) worst.set(id, g);
        }
        ready.set(id, (ready.get(id) ?? true) && known.has(box.vertex));
      });
      for (const [id, element] of place.elements) {
        const g = worst.get(id), isClosed = groups[id] !== undefined;
        element.classList.toggle("value", ready.get(id) && !g);
        element.classList.toggle("gradient", Boolean(g));
        element.classList.toggle("zero", Boolean(g) && g.colour === data.dead);
        element.classList.toggle("now", at.has(id));
        if (at.has(id)) element.setAttribute("aria-current", "step"); else element.removeAttribute("aria-current");
        if (!isClosed) element.setAttribute("aria-pressed", chosen.has(+id.slice(1)));
        element.style.background = g ? g.colour : "";
        element.querySelector(".grad").textContent = g ? (isClosed ? upTo(g.said) : g.said) : "\u00a0";
        for (const row of element.querySelectorAll(".row")) {
          const mine = found.get(+row.dataset.vertex);
          row.style.background = mine ? mine.colour : "";
          row.title = mine ? mine.said : "";
        }
      }
      const inUse = [...at].map(id => place.elements.get(id)).filter(Boolean);
      if (inUse.length) reveal(...inUse);
      for (const part of place.querySelectorAll("path.edge, text.words")) {
        const on = pairs.has(`${part.dataset.from}>${part.dataset.to}`);
        part.classList.toggle("now", on);
        if (part.tagName === "text") {
          part.textContent = (on && p === 0 && now.back && apart(side)) || part.dataset.words;
          const over = +part.dataset.x + part.getComputedTextLength() + 4 - place.offsetWidth;
          part.setAttribute("x", +part.dataset.x - (on ? Math.max(over, 0) : 0));
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
  const side = p => {
    const [a, b] = document.querySelectorAll(".lane");
    return (a.offsetTop === b.offsetTop ? ["left", "right"] : ["upper", "lower"])[p];
  };
  const label = p => passes[p].title || side(p);
  function apart(name) {
    if (passes.length < 2 || step <= main.forward.length) return "";
    const sizes = passes.map(pass => rms(contribution(pass, step).contribution));
    if (!sizes.every(x => x >= 0 && x < Infinity)) return "";
    const [more, less] = sizes[0] >= sizes[1] ? [0, 1] : [1, 0];
    if (sizes[more] === 0) return "both are 0";
    if (sizes[less] === 0) return `${name(less)} = 0`;
    return sizes[0] === sizes[1] ? "both are equally large" : `${name(more)} = ${times(sizes[more] / sizes[less])} × ${name(less)}`;
  }

  function tell() {
    const words = $("words"), tables = $("tables");
    words.replaceChildren();
    tables.replaceChildren();
    const line = (text, kind = "") => { if (text) words.append(make("p", kind ? {class: kind} : {}, text)); };
    // A line for both passes, or one for each where they differ.
    const both = f => {
      const said = passes.map(f);
      if (said.every(text => text === said[0])) line(said[0]);
      else said.forEach((text, p) => line(`${label(p)}: ${text}`));
    };
    const columns = passes.map((pass, p) => {
      const column = make("div", {class: "sums"});
      if (passes.length > 1) column.append(make("b", {}, label(p)));
      return column;
    });
    if (step === 0) {
      line(STEPS ? "Press ▶ or → for the first operation." : "");
      line(`A click on a box shows its numbers${Object.keys(groups).length ? ", and a click on a double frame opens the layer" : ""}.`);
    } else if (isForward(step)) forward(line, both, columns);
    else backward(line, both, columns);
    for (const n of chosen) {
      for (const vertex of within(main.boxes[n])) {
        const most = largest(passes.map(pass => pass.vertices[vertex].value));
        const found = passes.map(pass => gradients(pass, step).get(vertex));
        const steepest = largest(found.map(g => g && g.sum));
        passes.forEach((pass, p) => {
          const name = pass.names[vertex];
          if (isKnown(vertex)) columns[p].append(heat(pass.vertices[vertex].value, name, most));
          else columns[p].append(make("span", {}, `${name} is not computed yet`));
          if (found[p]) columns[p].append(heat(found[p].sum, `gradient of ${name}`, steepest));
        });
      }
    }
    for (const column of columns) if (column.querySelector("figure, span")) tables.append(column);
    if (tables.querySelector("figure")) tables.append(make("p", {class: "note"}, `In the tables blue is below 0 and orange above${passes.length > 1 ? "; the same colour is the same number in both passes" : ""}.`));
  }
  const isKnown = vertex => STEPS === 0 || computed(step).has(vertex);

  // What the letters of a formula are here.
  function here(pass, n) {
    const v = pass.vertices[n], f = v.formula;
    if (!f) return "";
    const known = f.letters.map((letter, i) => [letter, pass.names[v.inputs[i]]]);
    return known.some(([letter, name]) => letter !== name) ? `here ${known.map(([letter, name]) => `${letter} = ${name}`).join(", ")}, y = ${pass.names[n]}` : "";
  }
  function forward(line, both, columns) {
    const n = main.forward[step - 1], v = main.vertices[n];
    both(pass => `${pass.names[n]} = ${v.operation}(${[...v.inputs.map(i => pass.names[i]), pass.vertices[n].options].filter(Boolean).join(", ")})`);
    both(pass => { const {modules, line} = pass.vertices[n]; return [modules ? `in ${modules[modules.length - 1]}` : "", line || ""].filter(Boolean).join(", "); });
    line(v.formula && v.formula.line, "formula");
    both(pass => here(pass, n));
    line(`${v.inputs.map(i => shape(main.vertices[i].value)).join(" and ")} → ${shape(v.value)}`);
    const values = passes.map(pass => pass.vertices[n].value);
    values.forEach((value, p) => columns[p].append(heat(value, "value", largest(values))));
  }
  function backward(line, both, columns) {
    const j = step - main.forward.length - 1, c = main.backward[j], n = c.source;
    const which = n !== null && main.vertices[n].inputs.filter(i => i === c.target).length > 1 ? `, input ${c.position}` : "";
    const counted = c.count ? `: contribution ${c.count}${before(main, j) ? " (+=)" : ""}` : "";
    both(pass => `${n === null ? `${pass.names[c.target]} receives the seed` : `${pass.names[n]} → ${pass.names[c.target]}`}${which}${counted}`);
    if (n !== null) {
      const f = main.vertices[n].formula;
      both(pass => [pass.vertices[n].operation, pass.vertices[n].options, pass.vertices[n].line].filter(Boolean).join(", "));
      for (const text of f ? f.back : []) line(text, "formula");
      both(pass => here(pass, n));
      line(`${shape(main.vertices[n].value)} ← gradient, ${shape(c.contribution)} ← contribution`);
      both(pass => pass.backward[j].summed || "");
    } else line(shape(c.contribution));
    line(apart(label));
    const parts = passes.map(pass => [before(pass, j), pass.backward[j].contribution, after(pass, j)]);
    const most = largest(parts.flat());
    parts.forEach(([had, come, total], p) => {
      if (had) columns[p].append(heat(had, "before", most), make("span", {class: "sign"}, "+"));
      columns[p].append(heat(come, "contribution", most));
      if (had) columns[p].append(make("span", {class: "sign"}, "="), heat(total, "after", most));
    });
  }

  // ------------------------------------------------------------ moving

  function go(to, remember = true) {
    step = Math.min(Math.max(Math.round(to), 0), STEPS);
    paint();
    if (remember) { say(""); link(); }
  }
  function choose(n) {
    if (!chosen.delete(n)) chosen.add(n);
    paint();
  }
  function link() {
    if (location.protocol === "about:") return;  // (a page inside of another has no address)
    const parts = [];
    if (STEPS) parts.push(`step=${step}`);
    if (open.size) parts.push(`open=${[...open].map(g => encodeURIComponent(groups[g].path)).join(",")}`);
    history.replaceState(null, "", `#${parts.join("&")}`);
  }
  function follow() {
    const asked = new Map(location.hash.slice(1).split("&").map(part => [part.split("=")[0], part.slice(part.indexOf("=") + 1)]));
    const problems = [];
    const plain = text => { try { return decodeURIComponent(text); } catch { return text; } };
    open.clear();
    for (const path of (asked.get("open") || "").split(",").filter(Boolean).map(plain)) {
      const found = Object.keys(groups).find(g => groups[g].path === path);
      if (found) for (const g of parents(found)) open.add(g);
      else problems.push(`There is no layer ${path} in this graph.`);
    }
    if (open.size && count(open) > LARGEST) { open.clear(); problems.push(`These layers have more than ${LARGEST} boxes together, so none is opened.`); }
    let to = step;
    if (asked.has("step")) {
      const text = plain(asked.get("step"));
      if (/^[0-9]+$/.test(text) && +text <= STEPS) to = +text;
      else problems.push(`There is no step ${text || "without a number"}: the last one is ${STEPS}.`);
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
    const needed = around[hits[hit]];
    if (count(new Set([...open, ...needed])) > LARGEST) open.clear();
    if (count(new Set([...open, ...needed])) <= LARGEST) needed.forEach(g => open.add(g));
    layout();
    mark();
    const element = $("graph0").elements.get(drawn(hits[hit]));
    if (element) reveal(element);
    link();
  }

  // ------------------------------------------------------------ start

  $("app").hidden = false;
  $("app").parentNode.classList.add("ready");
  for (const [p, pass] of passes.entries()) {
    const graph = make("div", {class: "graph", id: `graph${p}`});
    const scroll = make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": pass.title || "The graph"}, graph);
    $("lanes").append(make("div", {class: "lane"}, ...(pass.title ? [make("h2", {}, pass.title)] : []), scroll));
  }
  if (!Object.keys(groups).length) $("close").remove();
  else $("close").addEventListener("click", () => { open.clear(); say(""); layout(); link(); });
  if (!STEPS) {
    for (const id of ["buttons", "place", "keys"]) $(id).remove();
    $("panel").classList.add("low");
  }
  else {
    $("slider").max = STEPS;
    $("slider").addEventListener("input", event => go(+event.target.value));
    $("first").addEventListener("click", () => go(0));
    $("back").addEventListener("click", () => go(step - 1));
    $("forth").addEventListener("click", () => go(step + 1));
    $("last").addEventListener("click", () => go(STEPS));
  }
  $("find").addEventListener("input", event => search(event.target.value));
  $("find").addEventListener("keydown", event => { if (event.key === "Enter") next(); });
  document.addEventListener("keydown", event => {
    if (event.target.tagName === "INPUT" && event.target.type === "search") {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // A table or a graph that has the focus and can be moved sideways is moved.
    const focused = document.activeElement;
    if (event.key !== "/" && focused !== document.body && focused.tagName !== "INPUT" && focused.scrollWidth > focused.clientWidth && getComputedStyle(focused).overflowX === "auto") return;
    const to = {ArrowLeft: step - 1, ArrowRight: step + 1, Home: 0, End: STEPS}[event.key];
    if (event.key === "/") { event.preventDefault(); $("find").focus(); }
    else if (to !== undefined && STEPS) { event.preventDefault(); go(to); }
  });
  window.addEventListener("hashchange", follow);
  if (data.legend) {
    $("legend").append(`${data.legend.ends[0]} `);
    for (const colour of data.legend.colours) {
      const cell = make("span");
      cell.style.background = colour;
      $("legend").append(cell);
    }
    $("legend").append(` ${data.legend.ends[1]}: RMS of the gradient (log scale)`);
  } else $("legend").remove();
  follow();
})();
