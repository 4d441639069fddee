// Markdown to DOM nodes. Every text becomes a text node: nothing that a model writes is ever read as HTML.

const BLOCKS = [
  [/^(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$/, (m) => ({ kind: "heading", level: m[1].length, text: m[2] })],
  [/^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/, () => ({ kind: "rule" })],
  [/^ {0,3}>[ \t]?(.*)$/, (m) => ({ kind: "quote", text: m[1] })],
  [/^(\s*)[-*+][ \t]+(.*)$/, (m) => ({ kind: "item", ordered: false, depth: m[1].length, text: m[2] })],
  [/^(\s*)(\d{1,9})[.)][ \t]+(.*)$/, (m) => ({ kind: "item", ordered: true, start: +m[2], depth: m[1].length, text: m[3] })],
];

/** The nodes of a text. */
export function markdown(text, copyLabel) {
  const root = document.createDocumentFragment();
  const lines = text.split("\n");
  let at = 0;
  while (at < lines.length) {
    const fence = /^ {0,3}(`{3,}|~{3,})\s*(\S*)/.exec(lines[at]);
    if (fence) {
      const code = [];
      for (at++; at < lines.length && !lines[at].trimStart().startsWith(fence[1]); at++) code.push(lines[at]);
      at++;
      root.append(codeBlock(code.join("\n"), copyLabel));
    } else if (lines[at].includes("|") && /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(lines[at + 1] ?? "") && lines[at + 1].includes("-")) {
      const rows = [lines[at]];
      for (at += 2; at < lines.length && lines[at].includes("|"); at++) rows.push(lines[at]);
      root.append(table(rows));
    } else if (!lines[at].trim()) {
      at++;
    } else {
      at = block(lines, at, root, copyLabel);
    }
  }
  return root;
}

/** One block that begins at a line; returns the line after it. */
function block(lines, at, root, copyLabel) {
  const found = read(lines[at]);
  if (found?.kind === "heading") {
    root.append(element("h" + Math.min(found.level + 2, 5), inline(found.text)));
    return at + 1;
  }
  if (found?.kind === "rule") {
    root.append(element("hr"));
    return at + 1;
  }
  if (found?.kind === "quote") {
    const quoted = [];
    for (; at < lines.length && read(lines[at])?.kind === "quote"; at++) quoted.push(read(lines[at]).text);
    root.append(element("blockquote", markdown(quoted.join("\n"), copyLabel)));
    return at;
  }
  if (found?.kind === "item") return list(lines, at, root, found.depth);
  const words = [];
  for (; at < lines.length && lines[at].trim() && !(words.length && (read(lines[at]) || /^ {0,3}(```|~~~)/.test(lines[at]))); at++) words.push(lines[at]);
  root.append(element("p", inline(words.join("\n"))));
  return at;
}

function read(line) {
  for (const [pattern, make] of BLOCKS) {
    const m = pattern.exec(line);
    if (m) return make(m);
  }
  return null;
}

function list(lines, at, root, depth) {
  const first = read(lines[at]);
  const box = element(first.ordered ? "ol" : "ul");
  if (first.ordered && first.start !== 1) box.start = first.start;
  while (at < lines.length) {
    const found = read(lines[at]);
    if (found?.kind === "item" && found.depth > depth + 1 && box.lastChild) {
      at = list(lines, at, box.lastChild, found.depth);
    } else if (found?.kind === "item" && found.depth >= depth && found.ordered === first.ordered) {
      box.append(element("li", inline(found.text)));
      at++;
    } else if (!found && /^\s+\S/.test(lines[at]) && box.lastChild) {
      box.lastChild.append(" ", inline(lines[at].trim()));
      at++;
    } else if (!lines[at].trim() && read(lines[at + 1] ?? "")?.kind === "item") {
      at++;
    } else {
      break;
    }
  }
  root.append(box);
  return at;
}

function table(rows) {
  const cells = (row) => row.trim().replace(/^\||\|$/g, "").split("|").map((cell) => inline(cell.trim()));
  const [head, ...body] = rows.map(cells);
  const line = (kind) => (found) => element("tr", ...found.map((cell) => element(kind, cell)));
  return element("table", element("thead", line("th")(head)), element("tbody", ...body.map(line("td"))));
}

function codeBlock(text, copyLabel) {
  const copy = element("button", copyLabel);
  copy.type = "button";
  copy.addEventListener("click", () => navigator.clipboard.writeText(text));
  const box = element("div", copy, element("pre", element("code", text)));
  box.className = "fence";
  return box;
}

/** Emphasis, code and links within a block; links go to the web only. */
function inline(text) {
  const root = document.createDocumentFragment();
  const pattern = /(`+)([\s\S]*?[^`])\1(?!`)|\*\*(?=\S)([\s\S]+?\S?)\*\*|__(?=\S)([\s\S]+?)__(?!\w)|\*(?=[^\s*])([^*\n]*?[^\s*])\*|~~(?=\S)([\s\S]+?)~~|\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)|(https?:\/\/[^\s<>()]+[^\s<>().,;:!?'"])/;
  while (text) {
    const m = pattern.exec(text);
    if (!m) break;
    root.append(text.slice(0, m.index));
    if (m[1]) root.append(element("code", m[2]));
    else if (m[3] || m[4]) root.append(element("strong", inline(m[3] ?? m[4])));
    else if (m[5]) root.append(element("em", inline(m[5])));
    else if (m[6]) root.append(element("del", inline(m[6])));
    else root.append(link(m[8] ?? m[9], m[7] ?? m[9]));
    text = text.slice(m.index + m[0].length);
  }
  root.append(text);
  return root;
}

function link(target, text) {
  const found = element("a", text);
  found.href = target;
  found.rel = "noopener noreferrer";
  found.target = "_blank";
  return found;
}

/** An element with children; strings become text nodes. */
export function element(name, ...children) {
  const found = document.createElement(name);
  found.append(...children);
  return found;
}
