"use strict";
(function () {
  const report = JSON.parse(document.getElementById("report-contents").textContent);
  const byId = (id) => document.getElementById(id);
  const views = {};
  const state = { model: report.chosen, baseline: 0, query: null };

  // ---- small helpers; names reach the page as text only

  function make(tag, attributes, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (value === true) element.setAttribute(name, "");
      else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
    }
    for (const child of children.flat(Infinity)) {
      if (child !== null && child !== undefined) element.append(child);
    }
    return element;
  }
  function fill(element, ...children) {
    element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  }
  const missing = (value) => value === null || value === undefined;
  const fixed = (value, digits) => (missing(value) ? "–" : value.toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−"));
  const signed = (value, digits) => (missing(value) ? "–" : (value > 0 ? "+" : "") + fixed(value, digits));
  const percent = (value) => (missing(value) ? "–" : Math.abs(value) < 0.0005 ? "0%" : fixed(100 * value, Math.abs(value) < 0.0995 ? 1 : 0) + "%");
  const count = (n, one, many) => n.toLocaleString("en") + " " + (n === 1 ? one : many || one + "s");
  const weight = (value) => {
    if (missing(value)) return "–";
    const size = Math.abs(value);
    const text = size !== 0 && (size >= 1e5 || size < 1e-3) ? value.toExponential(2) : value.toPrecision(3);
    return (value > 0 ? "+" : "") + text.replace("-", "−");
  };
  const middle = (name) => (name.length > 16 ? name.slice(0, 7) + "…" + name.slice(-8) : name);
  const measureName = (name) => report.titles[name] || name;
  const model = () => report.models[state.model];
  const better = report.higher[report.measure] ? 1 : -1;
  // the hardest comparison first; one with the same model is none
  const strength = (each) => better * (each.headline[report.measure] || [0])[0];
  const differs = (each) => each.values.some((value, at) => value !== model().values[at]);
  report.baselines.forEach((each, at) => {
    const now = report.baselines[state.baseline];
    if (differs(each) && (!differs(now) || strength(each) > strength(now))) state.baseline = at;
  });

  // ---- theme

  const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
  let picked = null;
  const dark = () => (picked === null ? prefersDark.matches : picked);
  function showTheme() {
    document.documentElement.setAttribute("data-theme", dark() ? "dark" : "light");
    const button = byId("theme");
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", "Switch to " + (dark() ? "light" : "dark") + " colours");
    button.setAttribute("aria-pressed", String(dark()));
  }
  byId("theme").addEventListener("click", () => { picked = !dark(); showTheme(); drawAll(); });
  prefersDark.addEventListener("change", () => { if (picked === null) { showTheme(); drawAll(); } });

  // ---- charts

  const tip = byId("tip");
  function showTip(handler, event, item, value) {
    if (missing(value) || value === "") { tip.hidden = true; return; }
    const rows = typeof value === "object" ? Object.entries(value) : [["", value]];
    fill(tip, rows.filter(([, text]) => !missing(text) && text !== "" && text !== "null").map(([name, text]) =>
      make("div", {}, name ? make("b", {}, name) : null, String(text))));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const x = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    const y = event.clientY + box.height + 24 > window.innerHeight ? event.clientY - box.height - 12 : event.clientY + 16;
    tip.style.left = Math.max(4, x) + "px";
    tip.style.top = Math.max(4, y) + "px";
  }

  const settings = () => ({
    mode: "vega-lite", renderer: "svg", actions: false, defaultStyle: false, hover: true, logLevel: 1,
    config: report.themes[dark() ? "dark" : "light"], tooltip: showTip,
  });

  // Views are made again for another theme or width; for another model they only get new data.
  const turns = {};
  async function draw(key, spec, place, update, prepare) {
    const turn = (turns[key] = (turns[key] || 0) + 1);
    if (views[key]) { views[key].finalize(); delete views[key]; }
    const element = byId(place);
    if (!spec) { fill(element); return; }
    const result = await window.vegaEmbed(element, spec, settings());
    if (turn !== turns[key]) { result.finalize(); return; }
    views[key] = result.view;
    if (prepare) prepare(result.view);
    await refresh(key, update);
  }
  async function refresh(key, update) {
    const view = views[key];
    if (!view) return;
    if (update) update(view);
    await view.runAsync();
    if (key === "front") markPoints();
  }

  const onFront = (view) => view.signal("chosen", state.model);
  const drawFront = () => draw("front", report.charts.front, "chart-front", onFront, (view) => {
    view.addEventListener("click", (event, item) => {
      if (item && item.datum && item.datum.model >= 0) choose(item.datum.model);
    });
  });
  function markPoints() {
    const points = [...byId("chart-front").querySelectorAll(".models_marks path")];
    for (const point of points) {
      const datum = point.__data__ && point.__data__.datum;
      if (!datum) continue;
      const on = datum.model === state.model;
      point.setAttribute("tabindex", "0");
      point.setAttribute("role", "button");
      point.setAttribute("aria-pressed", String(on));
      point.setAttribute("data-model", datum.model);
      point.setAttribute("aria-label", datum.name + ", " + count(datum.features, "feature") + ", " + fixed(datum.value, 4));
    }
  }
  byId("chart-front").addEventListener("keydown", (event) => {
    const at = event.target.getAttribute && event.target.getAttribute("data-model");
    if (at === null || at === undefined) return;
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    let next = event.key === "Enter" || event.key === " " ? Number(at) : null;
    if (step) next = Math.max(0, Math.min(report.models.length - 1, Number(at) + step));
    if (next === null) return;
    event.preventDefault();
    choose(next);
    const point = byId("chart-front").querySelector('[data-model="' + next + '"]');
    if (point) point.focus();
  });

  const onFeatures = (view) => {
    const rows = model().rows.slice(0, 15);
    view.data("features", rows).height(20 * Math.max(1, rows.length));
  };
  const drawFeatures = () => draw("features", report.charts.features, "chart-features", onFeatures);
  const onPath = (view) => view.signal("chosen_alpha", model().alpha || 0);
  const drawPath = () => draw("path", report.charts.path, "chart-path", onPath);
  const onQueries = (view) => view.data("queries", differences()).signal("chosen_query", missing(state.query) ? -1 : state.query);
  const drawQueries = () => draw("queries", report.charts.queries, "chart-queries", onQueries, (view) => {
    view.addEventListener("click", (event, item) => {
      if (item && item.datum && !missing(item.datum.position)) lookInto(item.datum.position);
    });
  });
  const drawCurve = () => draw("curve", report.charts.curve, "chart-curve");
  function drawAll() { return Promise.all([drawFront(), drawFeatures(), drawPath(), drawQueries(), drawCurve(), drawCurves()]); }

  // ---- headline

  function cell(figures, name, extra) {
    const value = figures && figures[name];
    if (!value || missing(value[0])) return make("td", { class: extra }, "–");
    return make("td", { class: extra }, fixed(value[0], 4), make("small", {}, span(value, fixed)));
  }
  const span = (figures, show) => show(figures[1], 3) + " to " + show(figures[2], 3);
  const sure = ([mean, low, high]) => (low > 0 || high < 0 ? (better * mean > 0 ? "up" : "down") : null);
  function queriesOf(key) {
    const own = report.part === "validation" ? "validation " : "held-out ";
    const pooled = report.n_queries.judged[0] > report.n_queries.headline[0];
    const part = { test: "test ", headline: own, judged: pooled ? "validation and training " : own }[key];
    return count(report.n_queries[key][0], part + "query", part + "queries");
  }
  function showHeadline() {
    const tested = !missing(model().test);
    const parts = (tested ? ["test", "headline"] : ["headline"]).map((key) => [queriesOf(key), key]);
    const names = report.measures;
    const head = make("thead", {},
      parts.length > 1 ? make("tr", {}, make("th", {}), parts.map(([part]) => make("th", { colspan: names.length, scope: "colgroup", class: "group" }, part))) : null,
      make("tr", {}, make("th", { scope: "col" }, parts.length > 1 ? "" : parts[0][0]),
        parts.map(() => names.map((name, at) => make("th", { scope: "col", class: at ? null : "first" }, measureName(name))))));
    const row = (title, entry, extra) => make("tr", { class: extra },
      make("th", { scope: "row", class: "name" }, title),
      parts.map(([, key]) => names.map((name, at) => cell(entry[key], name, at ? null : "first"))));
    fill(byId("measures"), head, make("tbody", {},
      row("this model, " + count(model().features, "feature"), model(), "ours"),
      report.baselines.map((each) => row(each.name, each))));
    const key = tested ? "test" : "headline";
    const ours = model()[key][report.measure];
    const gaps = Object.entries(model().against).filter(([, gap]) => !missing(gap[0]));
    fill(byId("verdict"),
      make("strong", {}, model().features.toLocaleString("en") + " of " + count(model().of, "feature")), " reach ",
      make("strong", {}, measureName(report.measure) + " " + fixed(ours[0], 4)),
      " on " + queriesOf(key) + " (" + span(ours, fixed) + "). ",
      gaps.map(([name, gap], at) => [
        make("span", { class: sure(gap) }, sure(gap) === "up" ? "Better than " : sure(gap) === "down" ? "Worse than " : (better * gap[0] > 0 ? "Not clearly better than " : "Not better than ")),
        make("strong", {}, name), ": " + signed(gap[0], 4) + " (" + span(gap, signed) + "). "]).flat());
    const notes = ["95% bootstrap intervals over queries; convention " + report.convention + "."];
    if (gaps.length) notes.push("Differences are paired over the same queries; better or worse if their interval excludes zero.");
    const idle = parts.map(([, each]) => [each, report.n_queries[each][1]]).filter(([, n]) => n);
    if (idle.length) notes.push("Left out, since all their documents have the same label: " + idle.map(([each, n]) => count(n, (each === "test" ? "test" : report.part === "validation" ? "validation" : "held-out") + " query", (each === "test" ? "test" : report.part === "validation" ? "validation" : "held-out") + " queries")).join(", ") + ".");
    if (!tested && report.n_candidates > 1) notes.push("The model was chosen on these queries among " + count(report.n_candidates, "candidate") + ", which flatters it; held-out test data would not.");
    if (tested && state.model !== report.chosen) notes.push("You picked this model after seeing test figures: they flatter it.");
    byId("measures-note").textContent = notes.join(" ");
  }

  // ---- models

  function showModels() {
    const priced = report.models.some((each) => !missing(each.cost));
    const head = make("thead", {}, make("tr", {},
      make("th", { scope: "col", class: "text" }, "features"), make("th", { scope: "col" }, measureName(report.measure)),
      make("th", { scope: "col" }, "interval"), priced ? make("th", { scope: "col" }, "cost") : null, make("th", { scope: "col", class: "text" }, "found as")));
    const rows = report.models.map((each, at) => {
      const radio = make("input", { type: "radio", name: "model", value: at, id: "model-" + at });
      radio.checked = at === state.model;
      radio.addEventListener("change", () => choose(at));
      const row = make("tr", { class: at === state.model ? "on" : null },
        make("td", { class: "text" }, radio, " ", make("label", { for: "model-" + at }, make("strong", {}, count(each.features, "feature")), at === report.chosen && report.models.length > 1 ? " (chosen)" : "")),
        make("td", {}, fixed(each.score, 4)), make("td", {}, fixed(each.interval[0], 3) + " to " + fixed(each.interval[1], 3)),
        priced ? make("td", {}, each.cost) : null, make("td", { class: "text name found" }, each.name));
      return row;
    });
    fill(byId("models"), make("caption", {}, measureName(report.measure) + " on " + queriesOf("judged")), head, make("tbody", {}, rows));
  }
  function markModel() {
    byId("models").querySelectorAll("tbody tr").forEach((row, at) => {
      row.className = at === state.model ? "on" : "";
      row.querySelector("input").checked = at === state.model;
    });
  }
  function showCurrent() {
    const each = model();
    const back = make("button", { type: "button" }, "back to the chosen one");
    back.addEventListener("click", () => choose(report.chosen));
    fill(byId("current"), make("strong", {}, count(each.features, "feature")),
      make("span", {}, measureName(report.measure) + " " + fixed(each.score, 4) + " on " + queriesOf("judged")),
      make("span", { class: "wide found" }, each.name),
      state.model === report.chosen ? make("span", { class: "wide" }, report.models.length > 1 ? "the chosen model" : "") : back);
  }

  // ---- features

  function showFeatures() {
    const rows = model().rows;
    const stable = rows.some((row) => !missing(row.frequency));
    const priced = rows.some((row) => !missing(row.cost));
    const linear = model().kind === "linear";
    const head = make("thead", {}, make("tr", {}, make("th", { scope: "col", class: "text" }, "feature"),
      make("th", { scope: "col" }, linear ? "weight" : "importance"), make("th", { scope: "col" }, "share"),
      stable ? make("th", { scope: "col" }, "stability") : null, priced ? make("th", { scope: "col" }, "cost") : null));
    fill(byId("feature-table"), head, make("tbody", {}, rows.map((row) => make("tr", {},
      make("th", { scope: "row", class: "name" }, row.feature),
      make("td", { class: row.weight < 0 ? "down" : null }, weight(row.weight)), make("td", {}, percent(row.share)),
      stable ? make("td", {}, percent(row.frequency)) : null, priced ? make("td", {}, row.cost) : null))));
    const top = rows[0];
    fill(byId("features-text"), "The share of a feature is what it accounts for in the variance of scores within queries. ",
      top ? make("strong", {}, top.feature) : null, top ? " has the largest, " + percent(top.share) + "." : "");
    const notes = [];
    if (model().features > rows.length) notes.push(count(model().features - rows.length, "more feature") + " with smaller shares are not listed.");
    if (rows.some((row) => row.weight < 0)) notes.push(linear ? "A negative weight, in the second colour, lowers the score." : "");
    if (stable) notes.push("Stability: how often subsamples of the queries chose the feature." + (report.stability && !missing(report.stability.index) ? " Beyond chance, the subsamples agree to " + percent(report.stability.index) + " (Nogueira's index)." : ""));
    if (!report.named) notes.push("Features are named by their column: f1 is the first.");
    byId("features-note").textContent = notes.join(" ");
  }

  function showGroups() {
    const groups = (report.stability && report.stability.groups) || [];
    if (!groups.length) return;
    fill(byId("groups"), make("h3", {}, "Features that can stand in for each other"),
      make("p", { class: "note" }, "They say nearly the same about the documents of a query. Where a subsample chooses about one of a group, the others are as good."),
      make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Groups of features" }, make("table", {},
        make("thead", {}, make("tr", {}, make("th", { scope: "col", class: "text" }, "group"), make("th", { scope: "col" }, "any chosen"), make("th", { scope: "col" }, "at once"))),
        make("tbody", {}, groups.map((each) => make("tr", {}, make("td", { class: "text name" }, each.features.join(", ")),
          make("td", {}, percent(each.frequency)), make("td", {}, fixed(each.at_once, 1) + " of " + each.features.length)))))));
  }

  // ---- curves: one chart per feature, all on the same vertical axis

  let curveViews = [];
  let otherViews = [];
  let curveTurn = 0;
  // What the curves of a pair add stands beside what the pair adds, in one figure.
  function besideEachOther(boxes, titles) {
    const figures = [];
    boxes.forEach((box, at) => {
      const second = at > 0 && titles[at] === titles[at - 1] + ": their curves";
      if (second) { figures.at(-1).append(box); figures.at(-1).className = "beside"; }
      else figures.push(make("figure", {}, box));
    });
    return figures;
  }

  async function drawCurves() {
    const turn = ++curveTurn;
    curveViews.forEach(([view]) => view.finalize());
    curveViews = [];
    const curves = model().curves;
    byId("curves").hidden = !curves;
    if (!curves) return;
    const boxes = curves.parts.map(() => make("div", { class: "chart" }));
    const others = curves.others.map(() => make("div", { class: "chart" }));
    fill(byId("curve-charts"), boxes.map((box, at) => make("figure", {}, make("figcaption", { class: "name" }, curves.parts[at].feature), box)),
      besideEachOther(others, curves.others.map((one) => one.title)));
    const drawn = await Promise.all(boxes.map((box) => window.vegaEmbed(box, report.charts.one_curve, settings())));
    const more = await Promise.all(others.map((box, at) => window.vegaEmbed(box, curves.others[at].spec, settings())));
    if (turn !== curveTurn) { [...drawn, ...more].forEach((each) => each.finalize()); return; }
    otherViews.forEach((view) => view.finalize());
    otherViews = more.map((each) => each.view);
    curveViews = drawn.map((each, at) => [each.view, curves.parts[at]]);
    for (const [view, part] of curveViews) {
      view.signal("low_x", part.range[0]).signal("high_x", part.range[1]);
      view.signal("low_y", curves.heights[0]).signal("high_y", curves.heights[1]);
      view.signal("room", part.rows.missing.length ? curves.room : 0);
      view.data("density", report.densities[part.index]);
      for (const layer of ["band", "straight", "curve", "missing"]) view.data(layer, part.rows[layer]);
    }
    await markDocuments();
  }
  // Where the two documents of the question "why" stand on each curve.
  let marked = [];
  function markDocuments() {
    const curves = model().curves;
    if (!curves) return null;
    const detail = detailOf[state.query];
    const has = (layer) => curves.parts.some((part) => part.rows[layer].length);
    const notes = ["What a feature adds to a score − its mean, over the density of its values. Dashed: the straight line nearest to the curve on the documents."];
    if (has("band")) notes.push("The band holds 90% of the curves that queries drawn again give.");
    if (has("missing")) notes.push("A diamond is what a missing value adds.");
    if (curves.others.length) notes.push("A category has a bar per level, a pair of features a map of what it adds beside their curves; dots are documents.");
    const scaled = curves.parts.find((part) => part.scaled);  // by query; global scaling is undone
    if (scaled) notes.push("Values are those after scaling (" + scaled.scaled + ").");
    if (curves.hidden > 0) notes.push(count(curves.hidden, "more term") + " with smaller effects are not drawn.");
    byId("curves-note").textContent = notes.join(" ");
    const names = marked.map((row) => row.name);
    fill(byId("curves-text"), names.map((name, at) => [at ? " and " : "Marked: ", make("strong", {}, (at ? "○ " : "● ") + name)]),
      names.length ? ", of the query below. " : "", make("a", { href: "#documents" }, "Choose other documents"), ".");
    return Promise.all(curveViews.map(([view, part]) => {
      const scoring = report.scoring[state.model];
      const own = scoring.parts.find((each) => each.at.length === 1 && report.columns[each.at[0]] === part.feature);
      const rows = marked.map((row, second) => {
        const x = detail.values[scoring.matrix][row.at][own.at[0]];
        const adds = termAt(own, [x]);
        return { x: missing(x) ? null : Math.max(part.range[0], Math.min(part.range[1], x)), y: adds - part.mean, name: row.name, second: second };
      });
      return view.data("documents", rows).runAsync();
    }));
  }

  // ---- path

  function showPath() {
    byId("path").hidden = !report.charts.path;
    byId("path-text").textContent = missing(model().alpha) ? "The model you look at is not a point of this path." : "The dotted line is the model you look at.";
  }

  // ---- queries

  function differences() {
    const other = report.baselines[state.baseline];
    if (!other) return [];
    const rows = [];
    model().values.forEach((value, at) => {
      if (missing(value) || missing(other.values[at])) return;
      const difference = value - other.values[at];
      rows.push({ position: report.queries[at].position, query: report.queries[at].id, value: value, other: other.values[at], difference: difference, gain: better * difference });
    });
    rows.sort((a, b) => b.gain - a.gain);
    rows.forEach((row, at) => { row.place = at; });
    return rows;
  }
  const detailOf = {};
  report.details.forEach((detail) => { detailOf[detail.position] = detail; });

  function showQueries() {
    const rows = differences();
    const wins = rows.filter((row) => row.gain > 0).length;
    const losses = rows.filter((row) => row.gain < 0).length;
    const other = report.baselines[state.baseline];
    if (other) {
      const all = rows.length < report.n_queries.headline[0] ? rows.length.toLocaleString("en") + " of the " : "the ";
      const idle = report.n_queries.headline[1];
      fill(byId("queries-text"), "By " + measureName(report.measure) + " on " + all + queriesOf("headline") + ", the model is better than " + other.name + " on ",
        make("strong", { class: "up" }, wins.toLocaleString("en")), ", worse on ", make("strong", { class: "down" }, losses.toLocaleString("en")),
        " and equal on " + (rows.length - wins - losses).toLocaleString("en") + "." +
        (idle ? " " + count(idle, "more query has", "more queries have") + " one label only and cannot tell rankings apart." : "") + " Choose a bar to inspect a query.");
    }
    const select = byId("query");
    const shown = rows.filter((row) => detailOf[row.position]);
    fill(select, shown.map((row) => make("option", { value: row.position }, row.query + "  (" + signed(row.difference, 3) + ")")));
    if (state.query === null && shown.length) state.query = shown[0].position;
    select.value = state.query;
  }
  function lookInto(position) {
    state.query = position;
    byId("query").value = position;
    refresh("queries", onQueries);
    showQuery();
  }

  // What each feature adds to a document's score.
  function contributions(detail, document_) {
    const scoring = report.scoring[state.model];
    const values = detail.values[scoring.matrix][document_];
    return scoring.parts.map((part) => termAt(part, part.at.map((at) => values[at])));
  }
  function termAt(part, at) {
    if (part.knots) return surfaceAt(part, at);
    if (missing(at[0])) return part.missing || 0;
    if (part.levels) {
      const found = part.levels.indexOf(at[0]);
      return found < 0 ? part.missing : part.values[found];
    }
    return valueAt(part, at[0]);
  }
  // Bilinear between the knots of a grid, constant outside.
  function surfaceAt(part, [x, y]) {
    if (missing(x) || missing(y)) return part.missing[missing(x) && missing(y) ? 2 : missing(x) ? 0 : 1];
    const [[i, s], [j, t]] = [x, y].map((value, side) => {
      const knots = part.knots[side];
      const inside = Math.max(knots[0], Math.min(knots[knots.length - 1], value));
      const low = Math.max(0, Math.min(knots.length - 2, knots.filter((knot) => knot <= inside).length - 1));
      return [low, (inside - knots[low]) / (knots[low + 1] - knots[low])];
    });
    const v = part.values;
    return (1 - s) * ((1 - t) * v[i][j] + t * v[i][j + 1]) + s * ((1 - t) * v[i + 1][j] + t * v[i + 1][j + 1]);
  }
  // The value of a curve: the height that is reached above some of the cuts; ramps lead there.
  function valueAt(curve, x) {
    if (!missing(curve.weight)) return curve.weight * x;
    const below = curve.cuts.filter((cut) => cut < x).length;
    if (!curve.ramps) return curve.heights[below];
    if (below === 0 || below === curve.cuts.length) return curve.heights[Math.max(0, below - 1)];
    const share = (x - curve.cuts[below - 1]) / (curve.cuts[below] - curve.cuts[below - 1]);
    return curve.heights[below - 1] + share * (curve.heights[below] - curve.heights[below - 1]);
  }
  let listed = [];
  function showQuery() {
    const detail = detailOf[state.query];
    const table = byId("documents");
    const known = report.queries.find((query) => query.position === state.query);
    document.querySelector(".why").hidden = !detail;
    if (!detail) {
      listed = marked = [];
      fill(table); fill(byId("why"));
      byId("query-text").textContent = known ? "The documents of query " + known.id + " are not in this report; it has those of " + count(report.details.length, "query", "queries") + "." : "No query can be compared.";
      return;
    }
    const columns = report.scoring[state.model].names;
    listed = detail.orders[state.model].map((at) => {
      const parts = contributions(detail, at);
      return { at: at, name: detail.names[at], label: detail.labels[at], parts: parts, score: parts.reduce((sum, part) => sum + part, 0) };
    });
    // the columns that move documents apart come first
    const spread = columns.map((_, j) => {
      const each = listed.map((row) => row.parts[j]);
      return Math.max(...each) - Math.min(...each);
    });
    const order = columns.map((_, j) => j).sort((a, b) => spread[b] - spread[a]);
    const shown = order.slice(0, 6);
    const rest = order.slice(6);
    const largest = Math.max(1e-300, ...listed.flatMap((row) => shown.map((j) => Math.abs(row.parts[j]))));
    const digits = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(Math.max(largest, ...listed.map((row) => Math.abs(row.score)))))));
    byId("query-text").textContent = "Query " + known.id + ": the first " + listed.length + " of " + count(detail.documents, "document") + ", with what each feature adds to the score" + (rest.length ? "; " + count(rest.length, "feature") + " that move little are taken together." : ".");
    const tint = (value) => {
      const tone = value >= 0 ? "--accent" : "--against";
      return "background: color-mix(in srgb, var(" + tone + ") " + (32 * Math.min(1, Math.abs(value) / largest)).toFixed(1) + "%, transparent)";
    };
    const head = make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "rank"), make("th", { scope: "col" }, "label"), make("th", { scope: "col", class: "text" }, "document"), make("th", { scope: "col" }, "score"),
      shown.map((j) => make("th", { scope: "col", class: "cell", title: columns[j] }, middle(columns[j]))), rest.length ? make("th", { scope: "col" }, "others") : null));
    const body = listed.map((row, at) => {
      const button = make("button", { type: "button", "aria-label": "Explain rank " + (at + 1) }, at + 1);
      button.addEventListener("click", () => (at + 1 < listed.length ? explain(at, at + 1) : explain(at - 1, at)));
      const others = rest.reduce((sum, j) => sum + row.parts[j], 0);
      return make("tr", {}, make("td", {}, button), make("td", {}, make("span", { class: "label" }, missing(row.label) ? "?" : row.label)),
        make("th", { scope: "row", class: "text name" }, row.name), make("td", {}, fixed(row.score, digits)),
        shown.map((j) => { const box = make("td", { class: "cell" }, fixed(row.parts[j], digits)); box.style.cssText = tint(row.parts[j]); return box; }),
        rest.length ? make("td", {}, fixed(others, digits)) : null);
    });
    fill(table, head, make("tbody", {}, body));
    fill(byId("above"), options().slice(0, -1));
    document.querySelector(".why").hidden = listed.length < 2;
    if (listed.length > 1) explain(0, 1);
    else { marked = listed.slice(); markDocuments(); fill(byId("why")); }
  }
  const options = () => listed.map((row, at) => make("option", { value: at }, at + 1 + ". " + row.name));
  function explain(above, below) {
    if (above < 0 || listed.length < 2) return;
    below = Math.max(above + 1, below);  // only a document that stands below can be asked about
    byId("above").value = above;
    fill(byId("below"), options().slice(above + 1));
    byId("below").value = below;
    byId("documents").querySelectorAll("tbody tr").forEach((row, at) => { row.className = at === above ? "on" : ""; });
    const a = listed[above];
    const b = listed[below];
    const columns = report.scoring[state.model].names;
    const changes = columns.map((name, j) => [name, a.parts[j] - b.parts[j]]).filter(([, change]) => change !== 0);
    changes.sort((x, y) => Math.abs(y[1]) - Math.abs(x[1]));
    const gap = a.score - b.score;
    marked = [a, b];
    markDocuments();
    const most = changes.slice(0, 8);
    const left = changes.slice(8).reduce((sum, [, change]) => sum + change, 0);
    if (changes.length > 8) most.push([count(changes.length - 8, "other feature"), left]);
    const top = Math.max(1e-300, ...most.map(([, change]) => Math.abs(change)));
    const verdict = gap === 0 ? "Both have the same score: they stay in the order of the file." :
      a.name + " has " + weight(Math.abs(gap)).replace("+", "") + (gap > 0 ? " more" : " less") + " than " + b.name + ":";
    fill(byId("why"), make("p", { class: "note" }, verdict), make("div", { class: "differences" }, most.map(([name, change]) => {
      const bar = make("span", { class: change < 0 ? "bar minus" : "bar" });
      const length = Math.max(0.5, 50 * Math.abs(change) / top);
      bar.style.width = length.toFixed(1) + "%";
      bar.style.marginLeft = (change < 0 ? 50 - length : 50).toFixed(1) + "%";
      return [make("span", {}, name), make("span", {}, weight(change)), make("span", { class: "track" }, bar)];
    }).flat()));
  }

  // ---- data

  function showData() {
    fill(byId("findings"), report.findings.length ? report.findings.map((each) =>
      make("div", { class: each.grave ? "notice grave" : "notice", "data-kind": each.kind }, make("strong", {}, each.title), make("p", {}, each.text)))
      : make("p", {}, "Nothing odd was found: no feature that gives the labels away or cannot rank, and few queries with a single label."));
    const head = make("thead", {}, make("tr", {}, ["part", "queries", "with two labels or more", "documents", "per query", "features", "labels"].map((name) => make("th", { scope: "col" }, name))));
    fill(byId("parts"), head, make("tbody", {}, report.data.map((part) => make("tr", {}, make("th", { scope: "row" }, part.part, part.file ? make("small", { class: "file" }, part.file) : null),
      make("td", {}, part.queries.toLocaleString("en")), make("td", {}, part.informative.toLocaleString("en")), make("td", {}, part.documents.toLocaleString("en")),
      make("td", {}, part.sizes[0] + "–" + part.sizes[2] + ", median " + part.sizes[1]), make("td", {}, part.features.toLocaleString("en")),
      make("td", { class: "levels" }, part.levels.length ? part.levels.map(([level, share]) => make("span", {}, level + ": " + percent(share))) : count(part.n_levels, "level"))))));
  }
  function showFrame() {
    const train = report.data[0];
    byId("lead").textContent = count(report.n_candidates, "model") + " on " + count(train.queries, "training query", "training queries") + " with " + count(train.documents, "document") + " and " + count(train.features, "feature");
    byId("front-note").textContent = report.judged + " Bars are 95% bootstrap intervals over queries. Grey: models off the front.";
    fill(byId("made"), "Made by leanrank " + report.made.version + " on " + report.made.date + ". This page is one file; it loads nothing and sends nothing.",
      report.made.command ? make("code", {}, report.made.command) : null);
    byId("curve").hidden = !report.charts.curve;
    const links = [["headline", "Measures"], ["front", "Models"], ["features", "Features"], ["path", "Path"], ["queries", "Queries"], ["curve", "Search"], ["data", "Data"]];
    fill(byId("contents"), links.filter(([id]) => !byId(id).hidden).map(([id, name]) => make("a", { href: "#" + id }, name)));
    const findings = report.findings.filter((each) => each.grave).length;
    if (findings) byId("contents").append(make("a", { href: "#data", class: "down" }, count(findings, "warning")));
    byId("model-list").open = report.models.length <= 6;
    const baseline = byId("baseline");
    fill(baseline, report.baselines.map((each, at) => make("option", { value: at }, each.name)));
    baseline.value = state.baseline;
    baseline.addEventListener("change", () => { state.baseline = Number(baseline.value); showQueries(); showQuery(); refresh("queries", onQueries); });
    byId("query").addEventListener("change", () => lookInto(Number(byId("query").value)));
    for (const id of ["above", "below"]) {
      byId(id).addEventListener("change", () => explain(Number(byId("above").value), Number(byId("below").value)));
    }
  }

  // ---- choosing

  function choose(at) {
    state.model = at;
    showHeadline(); showCurrent(); markModel(); showFeatures(); showPath(); showQueries(); showQuery();
    refresh("front", onFront); refresh("features", onFeatures); refresh("queries", onQueries); refresh("path", onPath); drawCurves();
  }

  let width = window.innerWidth;
  let waiting = null;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    window.clearTimeout(waiting);
    waiting = window.setTimeout(drawAll, 150);
  });

  showTheme();
  showPath(); showFrame(); showHeadline(); showModels(); showCurrent(); showFeatures(); showGroups(); showQueries(); showQuery(); showData();
  drawAll().then(() => document.documentElement.setAttribute("data-ready", "true"));
})();
