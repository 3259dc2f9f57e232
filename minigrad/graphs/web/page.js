"use strict";
// The page of a pass: a box is grey, then blue (its value exists), then has swatches (a gradient has
// arrived, in each of the passes). All texts are set as text, never as markup, so a name cannot
// become a tag.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const passes = data.passes, main = passes[0];
  const $ = id => document.getElementById(id);
  const LARGEST = data.most;
  const narrow = matchMedia("(max-width: 760px)"), LEAST = 0.7;  // a phone, and its smallest graph
  const FORWARD = main.forward.length, STEPS = FORWARD + main.backward.length;
  const open = new Set(), chosen = new Set();  // layers; boxes whose numbers are shown
  const matters = data.stations[0]?.step || FORWARD;
  let step = 0, seen = [], hits = [], hit = -1, playing = 0;

  const make = (tag, attributes = {}, ...children) => {
    const svg = ["svg", "path", "text"].includes(tag);
    const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };

  // ------------------------------------------------------------ what is known at a step

  const isForward = k => k > 0 && k <= FORWARD;
  const contribution = (pass, k) => pass.backward[k - FORWARD - 1];
  const after = (pass, j) => pass.backward[j].after || pass.backward[j].contribution;
  // Returns what vertex n has received before contribution j.
  function before(pass, j, n = pass.backward[j].target) {
    for (let i = j - 1; i >= 0; i--) if (pass.backward[i].target === n) return after(pass, i);
    return null;
  }
  // The gradient of each vertex after step k: the sum of what has arrived, its words, its colour.
  function gradients(pass) {
    const found = new Map();
    if (STEPS === 0) pass.vertices.forEach((v, n) => v.gradient && found.set(n, {...v.gradient, sum: v.gradient}));
    for (let j = 0; j < step - FORWARD; j++) found.set(pass.backward[j].target, {said: pass.backward[j].said, colour: pass.backward[j].colour, sum: after(pass, j)});
    return found;
  }
  const computed = () => new Set([...main.vertices.keys()].filter(n => !(main.vertices[n].operation && STEPS)).concat(main.forward.slice(0, step)));

  // ------------------------------------------------------------ numbers

  // (JSON has neither NaN nor ∞: they come as text.)
  const number = x => typeof x === "string" ? {nan: NaN, inf: Infinity, "-inf": -Infinity}[x] : x;
  const rms = summary => number(summary.rms);
  const UP = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  // Powers as on paper: 9·10⁻⁶; and a minus that is as wide as a digit.
  const pretty = text => text.replace(/(\d)e([-+])0*(\d+)/g, (_, digit, sign, power) => `${digit}·10${sign === "-" ? "⁻" : ""}${[...power].map(c => UP[c]).join("")}`).replace(/(^|[\s(])-(?=\d)/g, "$1−");
  // An RMS comes with the three digits that are shown, so it is rounded once.
  function short(x, count = 3) {
    if (Number.isNaN(x)) return "nan";
    if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
    if (x === 0) return "0";
    const [digits, power] = x.toExponential(count - 1).split("e");
    return pretty(+power >= -3 && +power < count + 1 ? String(+x.toPrecision(count)) : `${+digits}e${power}`);
  }
  const times = x => x < 1e9 ? (+x.toPrecision(2)).toLocaleString("en") : short(x, 2);
  const shape = summary => `(${summary.shape.join(", ")}${summary.shape.length === 1 ? "," : ""})`;
  // The larger a number is beside the largest one, the more colour its cell has: blue for the way
  // forward and orange for the way back. (A negative number has its minus.)
  function paintCell(cell, x, most, back) {
    const part = Number.isFinite(x) ? (most > 0 ? Math.min(Math.abs(x) / most, 1) : 0) : 1;
    cell.style.background = Number.isNaN(x) ? data.lost : `color-mix(in srgb, var(--${back ? "backward" : "forward"}) ${Math.round(45 * part)}%, var(--paper))`;
    cell.title = String(x);
    return cell;
  }
  function heat(summary, caption, most, back) {
    const numbers = summary.whole !== undefined ? summary.whole : summary.map;
    const axes = x => Array.isArray(x) ? 1 + axes(x[0]) : 0;
    const depth = axes(numbers);
    // The last two axes are a map: attention's weights have one for each head.
    let maps = depth > 2 ? numbers.flat(depth - 3) : [depth === 2 ? numbers : [[numbers].flat()]];
    if (maps.some(map => map.length === 1 || map[0].length === 1)) maps = [maps.flat()];  // (rows below each other)
    const fine = summary.whole === undefined || maps.flat(2).length > 64;
    const said = `${caption} ${shape(summary)}, RMS ${short(rms(summary))}`;
    const drawn = make("div", {class: "maps", role: "img", "aria-label": maps.length > 1 ? `${said}, ${maps.length} maps` : said});
    for (const map of maps) {
      const table = make("table", {class: fine ? "heat fine" : "heat"});
      for (const row of map) table.append(make("tr", {}, ...row.map(number).map(x => paintCell(make("td", {}, fine ? "" : short(x)), x, most, back))));
      drawn.append(table);
    }
    const note = summary.whole === undefined ? "; each cell is the mean of several neighbours" : "";
    return make("figure", {}, make("figcaption", {}, `${said}${note}`), drawn);
  }
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
  const drawnAt = vertex => data.place[vertex] == null ? undefined : drawn(data.place[vertex]);

  // A step is what can be seen. What happens inside of a closed box is one step, and an operation
  // that only moves numbers belongs to its neighbour. Each is {last, main}: the recorded step at
  // which it ends, and the one that the panel tells.
  function visible() {
    const found = [];
    let key = null, moved = false;
    for (let k = 1; k <= STEPS; k++) {
      const c = isForward(k) ? null : contribution(main, k);
      const n = c ? c.source : main.forward[k - 1];
      const id = n === null ? undefined : drawnAt(n);
      const inside = groups[id] && (!c || drawnAt(c.target) === id) ? `${c ? "back" : "forward"} ${id}` : null;
      const moves = !inside && n !== null && main.vertices[n].moves && drawnAt(main.vertices[n].inputs[0]) === id;
      const joins = (inside && inside === key) || (c ? moves : moved);
      if (joins && found.length && isForward(found[found.length - 1].last) === isForward(k)) {
        const previous = found[found.length - 1];
        previous.last = k;
        if (!moves && !(inside && previous.main === matters)) previous.main = k;
      } else found.push({last: k, main: k});
      found[found.length - 1].inside = inside && id;
      [key, moved] = [inside, !c && moves];
    }
    return found;
  }
  const index = (k = step) => Math.max(seen.findIndex(each => each.last >= k), 0);
  const now = () => seen[index()];

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
    if (first) first.focus({preventScroll: true});
    link();
  }
  const say = text => { $("message").textContent = text; };

  // ------------------------------------------------------------ layout

  const pen = document.createElement("canvas").getContext("2d");
  const lengths = new Map();
  function wide(text, font = "12px system-ui, sans-serif") {
    if (!lengths.has(font + text)) { pen.font = font; lengths.set(font + text, pen.measureText(text).width); }
    return lengths.get(font + text);
  }
  // The longest words that each vertex's gradient will have: its box is made wide enough for them.
  const longest = passes.map(pass => {
    const found = new Map();
    const meet = (n, said) => { if (!found.has(n) || wide(found.get(n)) < wide(said)) found.set(n, said); };
    for (const c of pass.backward) meet(c.target, c.said);
    pass.vertices.forEach((v, n) => v.gradient && meet(n, v.gradient.said));
    return found;
  });
  const within = box => [box.vertex, ...box.rows.map(row => row.vertex)];
  const words = (said, isClosed) => pretty(passes.length > 1 ? said.replace("grad ", isClosed ? "≤ " : "") : isClosed ? said.replace("grad", "grad up to") : said);

  function content(element, n, isClosed, id) {
    const known = [];
    if (isClosed) {
      element.append(make("b", {}, groups[id].title), make("small", {}, groups[id].detail));
      main.boxes.forEach((box, k) => { if (around[k].includes(id)) within(box).forEach(v => known.push(v)); });
    } else {
      const box = main.boxes[n], called = [box.options, box.detail].filter(Boolean).join(" ");
      element.append(make("b", {}, box.title));
      if (main.backward.length && box.vertex === main.backward[0].target && !box.shape.length && box.title !== "L") element.append(" = L");
      if (called) element.append(` ${called}`);
      element.append(make("small", {class: "shape"}, shape(box)));
      known.push(box.vertex);
    }
    const swatches = passes.map((_, p) => {
      const said = known.map(v => longest[p].get(v)).filter(Boolean).reduce((a, b) => wide(a) < wide(b) ? b : a, "");
      return make("small", {class: "grad"}, words(said, isClosed) || "\u00a0");
    });
    element.append(make("span", {class: "grads"}, ...swatches));
    if (!isClosed) main.boxes[n].rows.forEach((row, k) => {
      const texts = new Set(passes.map(pass => pass.boxes[n].rows[k].text));
      element.append(make("span", {class: "row", "data-vertex": row.vertex}, [...texts].join(" | ")));
    });
  }

  function layout() {
    seen = visible();
    const place = $("graph");
    place.replaceChildren();
    place.style.transform = "";
    const g = new dagre.graphlib.Graph({compound: true, multigraph: true});
    g.setGraph({rankdir: "TB", nodesep: 18, ranksep: passes.length > 1 ? 20 : 14, edgesep: 8, marginx: 12, marginy: 6});
    g.setDefaultEdgeLabel(() => ({}));
    const elements = new Map();
    main.boxes.forEach((box, n) => {
      const id = drawn(n);
      if (hidden(n) || elements.has(id)) return;
      const isClosed = groups[id] !== undefined;
      const element = make("button", {class: `box ${isClosed ? "closed" : box.kind}`, "data-id": id, type: "button"});
      if (isClosed) element.setAttribute("aria-expanded", "false");
      content(element, n, isClosed, id);
      element.addEventListener("click", () => isClosed ? toggle(id) : choose(n));
      place.append(element);
      elements.set(id, element);
      const [width, height] = [element.offsetWidth + 1, element.offsetHeight + 1];
      element.style.width = `${width}px`;
      g.setNode(id, {width: width + 2, height: height + 2});
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
      const label = closed ? "" : main.links[k].words;
      g.setEdge(a, b, {words: label, width: label && Math.ceil(wide(label, "bold 11px system-ui, sans-serif")), height: label ? 12 : 0, labelpos: "r"}, `e${k}`);
    });
    dagre.layout(g);
    const {width, height} = g.graph();
    Object.assign(place.style, {width: `${width}px`, height: `${height}px`});
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
    for (const e of g.edges()) {
      const edge = g.edge(e), ends = {"data-from": e.v, "data-to": e.w};
      const points = edge.points.map(({x, y}) => `${x.toFixed(1)} ${y.toFixed(1)}`);
      svg.append(make("path", {class: "edge", d: `M${points.join(" L")}`, ...ends}));
      // Its two tips: the one at the end, and the one of the way back.
      const [tail, head] = [edge.points, [...edge.points].reverse()].map(([a, b]) => `M0 0L-9 4.5L-9 -4.5z;${a.x} ${a.y};${Math.atan2(a.y - b.y, a.x - b.x) * 180 / Math.PI}`.split(";"));
      for (const [kind, [d, at, turn]] of [["head", head], ["tail", tail]]) svg.append(make("path", {class: `tip ${kind}`, d, transform: `translate(${at}) rotate(${turn})`, ...ends}));
      const middle = edge.points[edge.points.length >> 1];
      const [x, y] = edge.words ? [edge.x - edge.width / 2, edge.y + 4] : [middle.x + 8, middle.y + 4];
      svg.append(make("text", {class: "words", x, y, ...ends, "data-words": edge.words}, edge.words));
    }
    place.append(svg);
    place.elements = elements;
    track();
    fit();
    paint();
  }

  // The whole graph is seen: it is as large as its place allows. On a phone it has two fifths of the
  // height, so that the sentence is seen with it; there a large graph is a window on the boxes in use.
  function fit() {
    const view = $("view"), place = $("graph"), [width, height] = [place.style.width, place.style.height].map(parseFloat);
    const room = narrow.matches ? Math.max(0.4 * innerHeight, 200) : Math.max(innerHeight - 165, 320);
    const scale = Math.max(Math.min(1, view.clientWidth / width, room / height), narrow.matches ? LEAST : 0);
    place.style.transform = `scale(${scale})`;
    place.style.marginLeft = `${Math.max((view.clientWidth - scale * width) / 2, 0)}px`;
    view.style.height = `${Math.ceil(Math.min(scale * height, room))}px`;
  }
  function pan(box) {
    const view = $("view"), [frame, its] = [view, box].map(each => each.getBoundingClientRect());
    const off = (a, b) => (its[a] + its[b] - frame[a] - frame[b]) / 2;
    view.scrollBy(off("left", "right"), off("top", "bottom"));
  }

  // ------------------------------------------------------------ the track

  function nameOf({main: k, inside}) {
    if (inside) return groups[inside].title;
    return main.names[isForward(k) ? main.forward[k - 1] : contribution(main, k).target];
  }
  function track() {
    if (!STEPS) return;
    $("track").classList.toggle("many", seen.length > 40);
    $("track").classList.toggle("some", seen.length > 18);
    $("track").replaceChildren(...seen.map(each => {
      const c = isForward(each.main) ? null : contribution(main, each.main);
      const sum = c && c.after && !each.inside ? " sum" : "";
      return make("span", {class: `tick ${c ? "back" : "forward"}${sum}`, title: `${c ? "back to " : ""}${nameOf(each)}`, "data-step": each.last}, nameOf(each).match(/([^.]*\.\d+|[^.]*)$/)[0]);
    }));
    $("stations").replaceChildren(...data.stations.map(({name, step}) => make("button", {"data-step": step}, `${nameOf(seen[index(step)])}: ${name}`)));
    $("track").setAttribute("aria-valuemax", seen.length);
    const ahead = seen.filter(each => isForward(each.last)).length, sums = $("track").querySelectorAll(".sum").length;
    $("forward").textContent = `forward: ${ahead} steps`;
    $("backward").textContent = main.backward.length ? `back: ${seen.length - ahead} steps${sums ? `, ${sums} of them a sum (+=)` : ""}` : "";
  }
  const placeText = () => {
    const i = index() + 1, n = seen.filter(each => isForward(each.last)).length;
    return `step ${i} of ${seen.length}: ${i <= n ? `forward ${i} of ${n}` : `backward ${i - n} of ${seen.length - n}`}: ${nameOf(now())}`;
  };

  // ------------------------------------------------------------ painting a step

  function paint() {
    const known = computed(), place = $("graph"), at = new Set(), pairs = new Set();
    const back = STEPS > 0 && !isForward(step);
    if (STEPS && now().inside) at.add(now().inside);
    else if (STEPS) {
      const c = back ? contribution(main, now().main) : null, n = c ? c.source : main.forward[now().main - 1];
      for (const v of c ? [n, c.target] : [n]) if (v !== null && drawnAt(v) !== undefined) at.add(drawnAt(v));
      if (n !== null) for (const i of c ? [c.target] : main.vertices[n].inputs) pairs.add(`${drawnAt(i)}>${drawnAt(n)}`);
    }
    place.classList.toggle("back", back);
    const all = passes.map(pass => gradients(pass));
    const worst = passes.map(() => new Map()), ready = new Map();
    main.boxes.forEach((box, n) => {
      const id = drawn(n);
      passes.forEach((_, p) => {
        for (const v of id === `b${n}` ? [box.vertex] : within(box)) {
          const g = all[p].get(v), most = worst[p].get(id);
          if (g && !(most && (Number.isNaN(rms(most.sum)) || rms(most.sum) >= rms(g.sum)))) worst[p].set(id, g);
        }
      });
      ready.set(id, (ready.get(id) ?? true) && known.has(box.vertex));
    });
    for (const [id, element] of place.elements) {
      const isClosed = groups[id] !== undefined, found = worst.map(each => each.get(id));
      element.classList.toggle("value", ready.get(id) && !found[0]);
      element.classList.toggle("gradient", Boolean(found[0]));
      element.classList.toggle("zero", found.some(g => g && g.colour === data.dead));
      element.classList.toggle("now", at.has(id));
      if (at.has(id)) element.setAttribute("aria-current", "step"); else element.removeAttribute("aria-current");
      if (!isClosed) element.setAttribute("aria-pressed", chosen.has(+id.slice(1)));
      element.querySelectorAll(".grad").forEach((swatch, p) => {
        swatch.style.background = found[p] ? found[p].colour : "";
        swatch.textContent = found[p] ? words(found[p].said, isClosed) : "\u00a0";
      });
      for (const row of element.querySelectorAll(".row")) {
        const mine = all.map(each => each.get(+row.dataset.vertex));
        row.classList.toggle("gradient", Boolean(mine[0]));
        row.style.background = mine[0] ? `linear-gradient(90deg, ${mine[0].colour} 50%, ${mine[mine.length - 1].colour} 50%)` : "";
        row.title = mine.filter(Boolean).map(g => pretty(g.said)).join(" | ");
      }
    }
    for (const part of place.querySelectorAll("path, text")) {
      const on = pairs.has(`${part.dataset.from}>${part.dataset.to}`), kind = part.classList;
      kind.toggle("back", on && back);
      if (kind.contains("tip")) {
        kind.toggle("on", on);
        part.style.display = kind.contains("tail") === (on && back) ? "" : "none";
      } else kind.toggle("now", on);
      if (part.tagName === "text") part.textContent = (on && back && ratio()) || part.dataset.words;
    }
    tell();
    if (narrow.matches && at.size) pan(place.elements.get([...at].pop()));
    if (!STEPS) return;
    const i = index();
    [...$("track").children].forEach((tick, n) => { tick.classList.toggle("now", n === i); tick.classList.toggle("later", n > i); });
    $("track").dataset.step = step;
    $("track").setAttribute("aria-valuenow", i + 1);
    $("track").setAttribute("aria-valuetext", placeText());
  }

  // ------------------------------------------------------------ the panel

  const label = p => passes[p].title || ["the first", "the second"][p];
  // How far two passes are apart, where both have numbers that can be compared.
  const apart = ([a, b]) => !(a > 0 && b > 0 && a < Infinity && b < Infinity) ? "" : a >= b ? `${times(a / b)} : 1` : `1 : ${times(b / a)}`;
  const alike = (a, b) => Object.is(a, b) || Math.abs(a - b) < 0.005 * Math.abs(b);
  const change = ([a, b]) => alike(a, b) ? `stays ${short(a)}` : b === 0 ? `was ${short(a)}, and 0 arrives` : b < 1e-15 * a ? `was ${short(a)}, and nothing arrives but rounding` : `goes from ${short(a)} to ${short(b)}${passes.length > 1 ? "" : `, times ${short(b / a, 2)}`}`;
  function ratio() {
    if (passes.length < 2 || isForward(step) || now().inside) return "";
    const sizes = passes.map(pass => rms(contribution(pass, now().main).contribution));
    return alike(...sizes) ? "" : apart(sizes);
  }
  // Joins what the passes say; once, if all say the same.
  const both = (texts, joint, same = "") => new Set(texts).size === 1 ? `${texts[0]}${same}` : texts.map((text, p) => `${text} (${label(p)})`).join(joint);
  // A tensor's name, which is its value if it is a small constant, and may differ between passes.
  const named = i => both(passes.map(pass => pass.names[i]), " or ");

  function sentence() {
    const {main: k, inside, last} = now();
    if (!inside) return told(k);
    const done = last - (index() ? seen[index() - 1].last : 0);
    const what = isForward(k) ? "operation" : "contribution";
    return `${isForward(k) ? "Inside" : "The gradient goes back inside"} ${groups[inside].title}: ${done} ${what}${done > 1 ? "s" : ""}. ${done > 1 ? `One of them: ${told(k)}` : told(k)}`;
  }
  function told(k) {
    if (isForward(k)) {
      const n = main.forward[k - 1], v = main.vertices[n];
      const from = [...new Set(v.inputs.map(named))].join(" and ");
      return `${main.names[n]} is computed from ${from || "nothing"} by ${v.operation}. Its shape is ${shape(v.value)}.`;
    }
    const c = contribution(main, k), target = main.names[c.target];
    if (c.source === null) return `The way back begins at ${target}${passes.every(pass => contribution(pass, k).contribution.whole === 1) ? `${target === "L" ? "" : ", which the formulas call L"}. Its gradient with respect to itself, ∂L/∂L, is 1.` : ". Its gradient was given."}`;
    const v = main.vertices[c.source], said = [`The gradient of ${main.names[c.source]} goes back through ${v.operation} to ${target}.`];
    if (c.count) said.push(`This is contribution ${c.count}${c.after ? ` (+=): it is added to what ${target} already had` : ""}.`);
    // What arrived and what goes on, in each pass.
    const sizes = passes.map(pass => [before(pass, k - FORWARD - 1, c.source), contribution(pass, k).contribution].map(rms));
    said.push(`The RMS ${both(sizes.map(change), ", and ", passes.length > 1 ? " in both" : "")}.`);
    const [was, is] = [0, 1].map(i => sizes.map(size => size[i])), [from, to] = [was, is].map(apart);
    if (passes.length === 1 || !from || !to || (alike(...was) && alike(...is))) return said.join(" ");
    const factor = v.inputs.find(i => i !== c.target && passes.some(pass => pass.names[i] !== main.names[i]));
    const does = {multiply: "multiplies by", divide: "divides by"}[v.operation] || "uses";
    const moved = was[0] / was[1] / (is[0] / is[1]);
    const why = factor === undefined ? "" : `, a factor of ${times(Math.max(moved, 1 / moved))}, because this step ${does} ${named(factor)}`;
    said.push(alike(...was) ? `The two had the same RMS, and are now ${to}.` : from === to ? `Their ratio stays ${to}.` : `Their ratio goes from ${from} to ${to}${why}.`);
    return said.join(" ");
  }
  // The parts of the formula of each pass, each in a line; a single number stands for its whole line.
  // It is one table, so the columns of two passes are equally wide.
  function work(all) {
    const lines = all.flat(), width = Math.max(...lines.map(row => row.numbers.length)), fine = width > 12;
    // Gradients have one scale; forward each line has its own.
    const like = row => lines.filter(each => row.back ? each.back : each.label === row.label);
    const most = row => Math.max(0, ...like(row).flatMap(each => each.numbers.map(number)).filter(Number.isFinite).map(Math.abs));
    const table = make("table", {class: fine ? "rows fine" : "rows", style: `--columns: ${width}`});
    all.forEach((rows, p) => {
      const body = make("tbody");
      if (passes.length > 1) body.append(make("tr", {}, make("th", {colspan: width + 1, scope: "rowgroup"}, make("h2", {class: p ? "second" : ""}, label(p)))));
      for (const row of rows) {
        const spans = row.numbers.length < width ? {colspan: width} : {}, hides = fine && row.numbers.length > 1;
        const cells = row.numbers.map(number).map(x => paintCell(make("td", spans, hides ? "" : short(x)), x, most(row), row.back));
        body.append(make("tr", {class: row.back ? "back" : ""}, make("th", {scope: "row"}, row.label, " ", make("small", {}, row.called)), ...cells));
      }
      table.append(body);
    });
    $("work").append(make("div", {class: "scroll", tabindex: "0"}, table));
  }

  function tell() {
    for (const id of ["say", "formula", "work", "tables", "more"]) $(id).replaceChildren();
    const columns = passes.map((_, p) => make("div", {class: "sums"}, ...(passes.length > 1 ? [make("b", {}, label(p))] : [])));
    if (!STEPS) $("say").append(`A click on a box shows its numbers${Object.keys(groups).length ? ", and a click on a double frame opens the layer" : ""}.`);
    else {
      $("say").append(sentence());
      (isForward(step) ? forward : backward)(now(), columns);
    }
    for (const n of chosen) for (const vertex of within(main.boxes[n])) {
      const most = largest(passes.map(pass => pass.vertices[vertex].value));
      const found = passes.map(pass => gradients(pass).get(vertex));
      const steepest = largest(found.map(g => g && g.sum));
      passes.forEach((pass, p) => {
        const name = pass.names[vertex];
        if (computed().has(vertex)) columns[p].append(heat(pass.vertices[vertex].value, name, most));
        else columns[p].append(make("span", {}, `${name} is not computed yet`));
        if (found[p]) columns[p].append(heat(found[p].sum, `gradient of ${name}`, steepest, true));
      });
    }
    for (const column of columns) if (column.querySelector("figure, span")) $("tables").append(column);
    const drawn = columns.map(column => [...column.querySelectorAll("figure")]);  // the same width in both passes
    for (const same of drawn[0].map((_, n) => drawn.map(each => each[n]).filter(Boolean))) {
      for (const each of same) each.style.width = `${Math.max(...same.map(x => x.offsetWidth))}px`;
    }
  }
  function forward({main: k}, columns) {
    const n = main.forward[k - 1], v = main.vertices[n], all = passes.map(pass => pass.vertices[n].rows);
    if (v.formula) $("formula").append(v.formula.line.split(": ")[0], make("small", {}, v.shown ? ` shown: ${v.shown}` : ""));
    if (all.every(Boolean)) work(all);
    else for (const i of new Set([...v.inputs, n])) {
      const values = passes.map(pass => pass.vertices[i].value);
      values.forEach((value, p) => columns[p].append(make("div", {class: "sums"}, ...(i === n ? [make("span", {class: "sign"}, "→")] : []), heat(value, passes[p].names[i], largest(values)))));
    }
    rule(n);
  }
  function backward({main: k}, columns) {
    const j = k - FORWARD - 1, c = main.backward[j], each = passes.map(pass => pass.backward[j]);
    if (c.formula) $("formula").append(make("b", {}, c.formula), make("small", {}, c.shown ? ` shown: ${c.shown}` : ""));
    const parts = passes.map((pass, p) => [before(pass, j), each[p].contribution, after(pass, j)]);
    const most = largest(parts.flat());
    if (c.rows) work(each.map(x => x.rows));
    each.forEach((x, p) => x.remark && $("work").append(make("p", {class: "note"}, passes[1] ? `${label(p)}: ${x.remark}` : x.remark)));
    parts.forEach(([had, come, total], p) => {
      if (had) columns[p].append(heat(had, "before", most, true), make("span", {class: "sign"}, "+"));
      if (had || !c.rows) columns[p].append(heat(come, "contribution", most, true));
      if (had) columns[p].append(make("span", {class: "sign"}, "="), heat(total, "after", most, true));
    });
    if (c.source !== null) rule(c.source, c);
  }
  // Returns "one.py, line 12" as a link to the file's page, if there is one.
  function linked(line) {
    const [file, number] = line.split(", line "), address = data.sources[file];
    return address ? make("a", {href: `${address}#L${number}`, target: "_top"}, line) : line;
  }
  // Where the step stands, and the whole rule.
  function rule(n, c) {
    const v = main.vertices[n], f = v.formula;
    const line = (...text) => { if (text.join("")) $("more").append(make("p", {}, ...text)); };
    const each = f => [...new Set(passes.map(f))].filter(Boolean).join(" | ");
    const layer = each(pass => pass.vertices[n].modules ? `in ${pass.vertices[n].modules[pass.vertices[n].modules.length - 1]}` : "");
    line(layer, layer && v.line ? ", " : "", v.line ? linked(v.line) : "");
    if (c && c.summed) line(each(pass => contribution(pass, now().main).summed || ""));
    if (!f) return;
    const inputs = v.inputs.map((i, k) => `${f.letters[k] || "x"} = ${main.names[i]} ${shape(main.vertices[i].value)}`);
    const shown = [f.line, ...(c ? f.back : [])].map(text => make("code", {}, text));
    $("more").append(make("details", {}, make("summary", {}, `The rule: ${[v.operation, v.options].filter(Boolean).join(", ")}`), ...shown, make("p", {}, `Here ${inputs.join(", ")}, y = ${main.names[n]} ${shape(v.value)}${c ? `; the contribution is ${shape(c.contribution)}` : ""}.`)));
  }

  // ------------------------------------------------------------ moving

  function go(to) {
    step = Math.min(Math.max(Math.round(to), 1), STEPS);
    paint();
    say("");
    link();
  }
  const move = by => go(seen[Math.min(Math.max(index() + by, 0), seen.length - 1)].last);
  function play() {
    clearInterval(playing);
    $("play").textContent = playing ? "▶" : "❚❚";
    if (playing) { playing = 0; return; }
    if (index() === seen.length - 1) go(seen[0].last);
    playing = setInterval(() => { if (index() === seen.length - 1) play(); else move(1); }, 1200);
  }
  const choose = n => { if (!chosen.delete(n)) chosen.add(n); paint(); };
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
    if (asked.has("step")) {
      const text = plain(asked.get("step"));
      if (/^[0-9]+$/.test(text) && +text <= STEPS) step = Math.max(+text, 1);
      else problems.push(`There is no step ${text || "without a number"}: the last one is ${STEPS}.`);
    }
    layout();
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
  // Go to the next box that was found, and to the step that computes it.
  function next() {
    if (!hits.length) return;
    hit = (hit + 1) % hits.length;
    const needed = around[hits[hit]];
    if (count(new Set([...open, ...needed])) > LARGEST) open.clear();
    if (count(new Set([...open, ...needed])) <= LARGEST) needed.forEach(g => open.add(g));
    const at = main.forward.indexOf(main.boxes[hits[hit]].vertex) + 1;
    if (at) step = at;
    layout();
    mark();
    link();
  }

  // ------------------------------------------------------------ start

  $("app").hidden = false;
  if (!Object.keys(groups).length) $("close").remove();
  else $("close").addEventListener("click", () => { open.clear(); say(""); layout(); link(); });
  if (!STEPS) {
    $("controls").remove();
    $("keys").remove();
  } else {
    step = matters;
    $("play").addEventListener("click", play);
    data.stations.sort((a, b) => a.step - b.step);
    for (const id of ["track", "stations"]) $(id).addEventListener("click", event => { if (event.target.dataset.step) go(event.target.dataset.step); if (event.detail) event.target.blur(); });
  }
  $("find").addEventListener("input", event => search(event.target.value));
  $("find").addEventListener("keydown", event => { if (event.key === "Enter") next(); });
  document.addEventListener("keydown", event => {
    if (event.target.tagName === "INPUT") {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    // What has the focus and can be moved sideways is moved.
    const focused = document.activeElement;
    if (event.key !== "/" && focused !== document.body && focused.scrollWidth > focused.clientWidth && getComputedStyle(focused).overflowX === "auto") return;
    const moves = {ArrowLeft: () => move(-1), ArrowRight: () => move(1), Home: () => go(1), End: () => go(STEPS)};
    if (event.key === "/") { event.preventDefault(); $("find").focus(); }
    else if (event.key === " " && STEPS && focused.tagName !== "BUTTON" && focused.tagName !== "SUMMARY") { event.preventDefault(); play(); }
    else if (moves[event.key] && STEPS) { event.preventDefault(); moves[event.key](); }
  });
  window.addEventListener("hashchange", follow);
  window.addEventListener("resize", fit);
  narrow.addEventListener("change", layout);
  if (data.legend) {
    const [low, high] = data.legend.ends.map(pretty);
    const colours = data.legend.colours.map(colour => make("span", {style: `background: ${colour}`}));
    $("legend").append("RMS of the gradient, the size of a typical element:", make("br"), `${low} `, ...colours, ` ${high}${passes.length > 1 ? ` (left: ${label(0)}, right: ${label(1)})` : ""}`);
  } else $("legend").remove();
  follow();
})();
