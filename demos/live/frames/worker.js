// Python for a page, in a worker: Pyodide, NumPy, Graphviz, and the project's own files.
//
// The first message has the addresses. Each later one is a question, a string of JSON, for
// demos/live/_reader.py, which has the table of all messages. Nothing is loaded from elsewhere: the
// worker is made from a blob, so it has its page's policy (python.js).

const say = (message) => postMessage(JSON.stringify(message));

const READER = `
import os
os.makedirs("/home/reader", exist_ok=True)
os.chdir("/home/reader")
from demos.live._exercises import line_by_line
from demos.live._reader import Reader
`;

async function content(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return answer.arrayBuffer();
}

let viz = null;  // Graphviz

// Return DOT text as SVG and as Graphviz's JSON, in a string of JSON.
function drawn(source) {
  const { status, output, errors } = viz.renderFormats(source, ["svg", "json"]);
  if (status !== "success") throw new Error(errors.map((each) => each.message).join("; "));
  return JSON.stringify([output.svg, output.json]);
}

async function start({ runtime, code, numpy, viz: graphviz }) {
  say({ said: "Python is coming …" });
  const { loadPyodide } = await import(`${runtime}pyodide.mjs`);
  // (Graphviz too: Python waits for its drawings, and cannot wait for a file.)
  const [python, wheel, ours] = await Promise.all([
    loadPyodide({ indexURL: runtime, packages: [], fullStdLib: false }),
    content(numpy),
    content(code),
    import(graphviz).then(async ({ instance }) => { viz = await instance(); }),
  ]);
  say({ said: "Python begins …" });
  const extractDir = python.runPython("import site; site.getsitepackages()[0]");
  python.unpackArchive(wheel, "wheel", { extractDir });
  python.unpackArchive(ours, "zip", { extractDir });
  python.runPython(READER);
  const [Reader, clock] = ["Reader", "line_by_line"].map((name) => python.globals.get(name));
  const reader = Reader(postMessage.bind(self), clock, drawn);
  say({ ready: true });
  return reader;
}

let python = null;  // a promise: the questions wait for one another

onmessage = ({ data }) => {
  if (!python) python = start(data);
  else python = python.then((reader) => { reader.answer(data); return reader; });
  python.catch((error) => say({ broken: String(error.message ?? error) }));
};
