// Draws the charts that the page carries as data. Text from the data is only ever set as text.
(() => {
  "use strict";
  const page = JSON.parse(document.getElementById("page-data").textContent);
  const tip = document.getElementById("tip");
  const drawn = new Map(); // element id -> promise of a Vega view
  const views = new Map(); // element -> its view, once drawn
  const PAPER = 690; // pixels between the margins of A4 and of Letter
  const MOST_LINES = 12; // in a tooltip
  const FONT = getComputedStyle(document.body).fontFamily;

  const axis = {
    domainColor: "var(--line)", tickColor: "var(--line)", gridColor: "var(--line)", gridOpacity: 0.7,
    labelColor: "var(--ink-soft)", titleColor: "var(--ink-soft)", labelFont: FONT, titleFont: FONT,
    labelFontSize: 11, titleFontSize: 11, titleFontWeight: 400, tickSize: 4, labelFlush: false, labelOverlap: "greedy",
  };
  const config = {
    background: null, font: FONT, aria: false, view: { stroke: null }, axis,
    axisY: { ticks: false, domain: false, labelPadding: 6, minExtent: 32 },
    axisX: { domainColor: "var(--ink-soft)" },
  };

  // Columns are lists, or for words {of: distinct words, at: their places}.
  const values = (column) => (Array.isArray(column) ? column : column.at.map((place) => column.of[place]));

  function rowsOf(columns) {
    const names = Object.keys(columns);
    const lists = names.map((name) => values(columns[name]));
    return lists[0].map((_, place) => Object.fromEntries(names.map((name, k) => [name, lists[k][place]])));
  }

  function formatted(value, unit) {
    if (value === null || value === undefined) return "–";
    if (unit === "share") return `${(100 * value).toFixed(1)} %`;
    const size = Math.abs(value);
    const text = size !== 0 && (size >= 1e5 || size < 1e-3) ? value.toExponential(2) : value.toFixed(size < 10 ? 3 : size < 100 ? 2 : 1);
    return text.replace("-", "\u2212");
  }

  function cell(row, kind, text, colour) {
    const element = document.createElement(kind);
    if (colour) {
      const dot = document.createElement("i");
      dot.style.background = colour;
      element.append(dot);
    }
    element.append(text);
    row.append(element);
  }

  // Each series at a step: its value there, or its latest before if it goes on beyond.
  function seriesAt(rows, step) {
    const found = new Map();
    const ended = new Map();
    for (const row of rows) {
      if (row.step <= step) found.set(row.series, row);
      ended.set(row.series, Math.max(row.step, ended.get(row.series) ?? 0));
    }
    return [...found.values()].filter((row) => ended.get(row.series) >= step);
  }

  function stepTable(chart, step) {
    const table = document.createElement("table");
    let rows = seriesAt(chart.rows, step);
    const total = rows.length;
    if (chart.unit === "share") rows.reverse(); // as the areas lie
    else if (total > MOST_LINES) rows.sort((a, b) => b.mean - a.mean);
    rows = rows.slice(0, MOST_LINES);
    for (const row of rows) {
      const line = table.insertRow();
      cell(line, "th", row.series, chart.colours.get(row.series));
      cell(line, "td", formatted(row.mean, chart.unit));
      if (row.low !== undefined && row.low !== row.high) {
        cell(line, "td", `${formatted(row.low)} to ${formatted(row.high)}`);
        line.lastChild.className = "soft";
      }
    }
    if (total > MOST_LINES) cell(table.insertRow(), "th", `the highest ${MOST_LINES} of ${total}`);
    return table;
  }

  function fieldTable(fields) {
    const table = document.createElement("table");
    for (const [name, value] of Object.entries(fields)) {
      const line = table.insertRow();
      cell(line, "th", name);
      line.lastChild.className = "soft";
      cell(line, "td", String(value));
    }
    return table;
  }

  function place(event) {
    const box = tip.getBoundingClientRect();
    const beyond = event.clientX + 14 + box.width > innerWidth;
    const x = beyond ? event.clientX - 14 - box.width : event.clientX + 14;
    const y = Math.min(event.clientY + 14, innerHeight - box.height - 4);
    tip.style.left = `${Math.max(4, Math.min(x, innerWidth - box.width - 4))}px`;
    tip.style.top = `${Math.max(4, y)}px`;
  }

  const tooltip = (chart) => (_handler, event, item, value) => {
    if (value === null || value === undefined || value === "") {
      tip.hidden = true;
      return;
    }
    if (typeof value === "object") {
      tip.replaceChildren(fieldTable(value));
    } else {
      const datum = item.datum.datum ?? item.datum; // the nearest point hands on its own item
      const heading = document.createElement("strong");
      heading.textContent = `step ${datum.step.toLocaleString("en").replaceAll(",", "\u2009")}`;
      tip.replaceChildren(heading, stepTable(chart, datum.step));
    }
    tip.hidden = false;
    place(event);
  };

  async function embed(element) {
    const source = page.charts[element.id];
    const spec = page.specs[source.spec];
    const { domain, range } = spec.encoding.color.scale;
    const chart = { rows: rowsOf(source.columns), unit: source.unit, colours: new Map(domain.map((name, k) => [name, range[k]])) };
    const whole = { $schema: "https://vega.github.io/schema/vega-lite/v6.json", ...spec, data: { values: chart.rows } };
    const inside = document.createElement("div"); // Vega sets roles of its own on what it is given
    element.replaceChildren(inside);
    try {
      const result = await vegaEmbed(inside, whole, {
        mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false, ast: true, config, tooltip: tooltip(chart),
      });
      element.dataset.drawn = "yes";
      element.style.minHeight = "";
      views.set(element, result.view);
      return result.view;
    } catch (error) {
      element.textContent = `This chart could not be drawn: ${error.message}`;
      console.error(error);
      return null;
    }
  }

  // A finger does not hover: after a tap the chart is told of a pointer that stays.
  document.addEventListener("click", (event) => {
    if (!event.target.closest(".chart")) return;
    for (const kind of ["pointerover", "pointermove"]) {
      event.target.dispatchEvent(new PointerEvent(kind, { bubbles: true, clientX: event.clientX, clientY: event.clientY }));
    }
  });
  document.addEventListener("pointerdown", () => { tip.hidden = true; });
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  // A folded part may be laid out and yet not show; older browsers give it no width at all.
  const shows = (element) => (element.checkVisibility ? element.checkVisibility() : element.offsetWidth > 0);

  function draw(element) {
    if (!drawn.has(element.id)) drawn.set(element.id, embed(element));
    return drawn.get(element.id);
  }

  const elements = [...document.querySelectorAll(".chart")];
  for (const element of elements) element.style.minHeight = `${page.specs[page.charts[element.id].spec].height + 40}px`;
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        near.unobserve(entry.target);
        draw(entry.target);
      }
    }
  }, { rootMargin: "400px" });
  for (const element of elements) near.observe(element);

  // The rest follows while nothing else is to be done, so that a printed page is complete.
  const idle = (call) => (window.requestIdleCallback ? requestIdleCallback(call, { timeout: 300 }) : setTimeout(call, 50));
  function drawNext() {
    const next = elements.find((element) => !drawn.has(element.id) && shows(element));
    if (next) draw(next).then(() => idle(drawNext));
  }
  idle(drawNext);

  async function focus(section, series) {
    for (const element of section.querySelectorAll(".chart")) {
      if (!drawn.has(element.id)) continue;
      const view = await drawn.get(element.id);
      if (view) view.signal("focus", series).runAsync();
    }
  }

  for (const legend of document.querySelectorAll("[data-legend]")) {
    const section = legend.closest("section");
    const chips = [...legend.querySelectorAll("button")];
    legend.addEventListener("click", async (event) => {
      const chosen = event.target.closest("button");
      if (!chosen) return;
      const single = chosen.getAttribute("aria-pressed") !== "true";
      for (const chip of chips) chip.setAttribute("aria-pressed", String(single && chip === chosen));
      if (single) await Promise.all([...section.querySelectorAll(".panel:not([hidden]) .chart")].filter(shows).map(draw));
      focus(section, single ? chosen.dataset.series : null);
    });
  }

  // Paper is narrower than a screen: charts are laid out anew for it, or their words would shrink.
  const fit = (width) => {
    for (const [element, view] of views) {
      const room = width(element);
      if (room > 0) view.signal("width", room).run();
    }
  };
  addEventListener("beforeprint", () => fit((element) => (element.closest(".grid").classList.contains("wide") ? PAPER : PAPER / 2 - 12)));
  addEventListener("afterprint", () => fit((element) => element.offsetWidth));

  // Folded sections: their charts are drawn once they show, and a link to one opens it.
  document.addEventListener("toggle", () => idle(drawNext), true);
  function unfold() {
    const wanted = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const details = wanted && wanted.querySelector(":scope > details");
    if (details && !details.open) {
      details.open = true;
      wanted.scrollIntoView();
    }
  }
  addEventListener("hashchange", unfold);
  unfold();
  for (const button of document.querySelectorAll("[data-unfold]")) {
    const words = button.textContent;
    button.addEventListener("click", () => {
      const open = button.getAttribute("aria-expanded") !== "true";
      for (const details of document.querySelectorAll(".folded > details")) details.open = open;
      button.setAttribute("aria-expanded", String(open));
      button.textContent = open ? "Fold everything" : words;
    });
  }

  // Copying: where a browser keeps the clipboard from files, the line is selected instead.
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      const line = document.getElementById(button.dataset.copy);
      let said = "Copied.";
      try {
        await navigator.clipboard.writeText(line.textContent);
      } catch {
        getSelection().selectAllChildren(line);
        said = document.execCommand("copy") ? "Copied." : "Selected: copy it with your keyboard.";
      }
      document.getElementById("copied").textContent = said;
    });
  }

  // Served while the study grows: the page is loaded again once the server has another.
  if (page.live) {
    const told = document.getElementById("live");
    setInterval(async () => {
      try {
        const answer = await fetch("/", { method: "HEAD", cache: "no-store" });
        if (answer.headers.get("ETag") !== `"${page.live}"`) location.reload();
        told.textContent = "Live: this page renews itself.";
      } catch {
        told.textContent = "The server has ended; this is what it knew last.";
      }
    }, 2000);
  }

  for (const button of document.querySelectorAll("[data-more]")) {
    const grid = document.getElementById(`grid-${button.dataset.more}`);
    const find = document.querySelector(`[data-find="${button.dataset.more}"]`);
    const words = button.textContent;
    button.addEventListener("click", () => {
      const all = grid.classList.toggle("all");
      button.setAttribute("aria-expanded", String(all));
      button.textContent = all ? "Show fewer" : words;
    });
    find.addEventListener("input", () => {
      const wanted = find.value.trim().toLowerCase();
      grid.classList.toggle("all", wanted !== "" || button.getAttribute("aria-expanded") === "true");
      for (const panel of grid.children) panel.hidden = !panel.dataset.name.toLowerCase().includes(wanted);
    });
  }
})();
