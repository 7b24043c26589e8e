"use strict";
// The state is fetched again and again, and the page is made of it. Words come from files that anybody
// may have named, so they are only ever set as text.
const EVERY = 2000; // milliseconds
const MOST_CHARTS = 12;
const SVG = "http://www.w3.org/2000/svg";
const at = (id) => document.getElementById(id);
const WORDS = { finished: "finished", running: "running", failed: "failed", stopped: "stopped", silent: "silent" };
let last = "";

function make(name, text, kind) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

function draw(name, options, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(options)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function duration(seconds) {
  if (seconds < 100) return `${Math.round(seconds)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

function counted(number, word) {
  return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}

function showHead(state) {
  at("title").textContent = state.title;
  document.title = `${state.title} · taskmix watch`;
  const total = Object.values(state.counts).reduce((sum, each) => sum + each, 0);
  const parts = Object.keys(WORDS).filter((key) => state.counts[key]).map((key) => `${state.counts[key]} ${WORDS[key]}`);
  at("headline").textContent = total === 0 ? "No run has begun yet."
    : `${counted(total, "run")}: ${parts.join(", ")}; ${counted(state.steps, "step")}, ${duration(state.seconds)} of training.`;
  const pieces = Object.keys(WORDS).filter((key) => state.counts[key]).map((key) => {
    const piece = make("div", undefined, key);
    piece.style.flexGrow = state.counts[key];
    return piece;
  });
  at("bar").replaceChildren(...pieces);
}

function showAdvice(advice) {
  at("advice").hidden = !advice;
  if (!advice) return;
  const spent = advice.spent === null || advice.budget === null ? ""
    : advice.unit === "seconds" ? `${duration(advice.spent)} of ${duration(advice.budget)} are spent.`
      : `${Math.round(advice.spent).toLocaleString("en")} of ${Math.round(advice.budget).toLocaleString("en")} batches are spent.`;
  const stage = advice.stage === null ? "No stage has ended yet." : `The last stage that ended: ${advice.stage}.`;
  at("stage").textContent = `${stage} ${spent}`;
  at("lines").replaceChildren(...advice.lines.map((line) => make("li", line)));
}

function colourOf(labels, label) {
  return `var(--label-${(labels.indexOf(label) % 8) + 1})`;
}

function chart(task, curves, labels) {
  const [width, height, left, bottom] = [280, 150, 38, 20];
  const points = curves.flatMap((curve) => curve.points);
  const steps = Math.max(...points.map((point) => point[0]), 1);
  let [low, high] = [Math.min(...points.map((p) => p[1])), Math.max(...points.map((p) => p[1]))];
  if (high - low < 1e-9) [low, high] = [low - 0.05, high + 0.05];
  const x = (step) => left + ((width - left - 6) * step) / steps;
  const y = (value) => height - bottom - ((height - bottom - 8) * (value - low)) / (high - low);
  const words = `${task}, ${curves[0].metric}: from ${low.toFixed(3)} to ${high.toFixed(3)} in ${steps} steps`;
  const picture = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": words });
  picture.append(draw("path", { class: "axis", d: `M${left} 4V${height - bottom}H${width - 4}` }));
  picture.append(draw("text", { x: left - 4, y: 14, "text-anchor": "end" }, high.toFixed(2)));
  picture.append(draw("text", { x: left - 4, y: height - bottom, "text-anchor": "end" }, low.toFixed(2)));
  picture.append(draw("text", { x: width - 4, y: height - 5, "text-anchor": "end" }, `${steps} steps`));
  for (const curve of curves) {
    const places = curve.points.map(([step, value]) => `${x(step).toFixed(1)} ${y(value).toFixed(1)}`);
    const stroke = colourOf(labels, curve.label);
    if (places.length === 1) {
      const [cx, cy] = places[0].split(" ");
      picture.append(draw("circle", { cx, cy, r: 2.5, fill: stroke }));
    } else {
      // Colours come again after eight labels; then lines are dashed.
      const dashes = labels.indexOf(curve.label) >= 8 ? "5 3" : "none";
      picture.append(draw("path", { class: "curve", stroke, "stroke-dasharray": dashes, d: `M${places.join("L")}` }));
    }
  }
  const figure = make("figure");
  figure.style.margin = 0;
  figure.append(make("h3", `${task}: ${curves[0].metric}`), picture);
  return figure;
}

function square(fill) {
  const picture = draw("svg", { viewBox: "0 0 8 8", "aria-hidden": "true" });
  picture.append(draw("rect", { width: 8, height: 8, fill }));
  return picture;
}

function showCurves(curves) {
  at("curves").hidden = curves.length === 0;
  const labels = [...new Set(curves.map((curve) => curve.label))].sort();
  at("legend").replaceChildren(...labels.map((label) => {
    const item = make("li");
    item.append(square(colourOf(labels, label)), label);
    return item;
  }));
  const tasks = [...new Set(curves.map((curve) => curve.task))].slice(0, MOST_CHARTS);
  at("charts").replaceChildren(...tasks.map((task) => chart(task, curves.filter((each) => each.task === task), labels)));
}

function showShares(shares) {
  const labels = Object.keys(shares).sort();
  at("shares").hidden = labels.length === 0;
  at("drawn").replaceChildren(...labels.flatMap((label) => [
    make("h3", label),
    ...Object.entries(shares[label]).map(([task, share]) => {
      const row = make("div", undefined, "share");
      const bar = draw("svg", { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" });
      bar.append(draw("rect", { width: 100 * share, height: 8, fill: colourOf(labels, label) }));
      row.append(make("span", task), bar, make("span", `${(100 * share).toFixed(1)}%`));
      return row;
    }),
  ]));
}

function showRuns(state) {
  at("runs").hidden = state.runs.length === 0;
  at("rows").replaceChildren(...state.runs.map((run) => {
    const row = make("tr");
    const words = run.status === "silent" ? `running, no word for ${duration(run.quiet)}` : run.status;
    const status = make("td");
    status.append(make("span", undefined, `dot ${WORDS[run.status] || ""}`), run.error ? `${words}: ${run.error}` : words);
    row.append(make("td", run.label), make("td", String(run.seed)), status,
      make("td", `${run.step} of ${run.steps}`, "number"), make("td", duration(run.seconds), "number"));
    return row;
  }));
  const total = Object.values(state.counts).reduce((sum, each) => sum + each, 0);
  at("more").textContent = total > state.runs.length ? `The last ${state.runs.length} of ${total} are shown.` : "";
}

function show(state) {
  showHead(state);
  showAdvice(state.advice);
  showCurves(state.curves);
  showShares(state.shares);
  showRuns(state);
  at("notes").hidden = state.notes.length === 0;
  at("said").replaceChildren(...state.notes.map((each) => make("li", each)));
}

async function renew() {
  try {
    const answer = await fetch("state.json", { cache: "no-store" });
    const text = await answer.text();
    const state = JSON.parse(text);
    if (state.error) at("fresh").textContent = state.error;
    else {
      if (text !== last) show(state);
      last = text;
      at("fresh").textContent = `As of ${new Date().toLocaleTimeString("en-GB")}.`;
    }
  } catch {
    at("fresh").textContent = "taskmix watch has ended; this is what it knew last.";
  }
  setTimeout(renew, EVERY);
}

renew();
