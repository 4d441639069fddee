// The page: conversations kept in this browser, answers streamed from this server's own API.

import { element, markdown } from "./markdown.js";
import { translate, WORDS } from "./words.js";

const $ = (id) => document.getElementById(id);
const CHATS = "datakit.chats", SETTINGS = "datakit.settings";
const DEFAULTS = {
  system: "", temperature: "", top_p: "", top_k: "", min_p: "", repetition_penalty: "", max_tokens: "", seed: "",
  language: navigator.language.startsWith("zh") ? "zh" : "en", look: "auto", key: "", tools: "", showTokens: false,
};
const NUMBERS = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty", "max_tokens", "seed"];

let settings = { ...DEFAULTS, ...stored(SETTINGS, {}) };
let chats = stored(CHATS, []);
let chat = null;
let words = WORDS[settings.language];
let model = { id: "", plain_text: false, sampling: {} };
let running = null; // the AbortController of the answer under way

// ---- what is kept

function stored(name, otherwise) {
  try {
    return JSON.parse(localStorage.getItem(name)) ?? otherwise;
  } catch {
    return otherwise;
  }
}

/** Keep the chats; where the browser has no room, the oldest go. Probabilities of tokens are not kept. */
function keep() {
  const kept = () => JSON.stringify(chats.filter((c) => c.turns.length), (name, value) => (name === "shown" ? undefined : value));
  for (;;) {
    try {
      localStorage.setItem(CHATS, kept());
      return;
    } catch {
      if (chats.length < 2) return;
      chats.pop();
      say(words.full);
    }
  }
}

function titleOf(one) {
  return one.turns.find((turn) => turn.role === "user")?.content.trim().slice(0, 60) || words.untitled;
}

// ---- what is shown

function say(text) {
  $("status").textContent = text;
}

function showChats() {
  $("chats").replaceChildren(...chats.map((one) => {
    const open = button(titleOf(one), () => openChat(one));
    open.className = "open";
    const remove = button("✕", () => removeChat(one), `${words.remove}: ${titleOf(one)}`);
    const item = element("li", open, remove);
    if (one === chat) item.setAttribute("aria-current", "true");
    return item;
  }));
}

function redraw() {
  if (!running && !document.querySelector(".turn textarea")) showTurns();
}

function showTurns() {
  const turns = chat.turns.map((turn, index) => turnNode(turn, index));
  $("log").replaceChildren(...(turns.length ? turns : [emptyNote()]));
  $("log").scrollTop = $("log").scrollHeight;
}

function emptyNote() {
  const note = element("p", model.plain_text ? words.plain : words.empty);
  note.className = "empty";
  return note;
}

function button(text, action, label) {
  const found = element("button", text);
  found.type = "button";
  if (label) found.setAttribute("aria-label", label);
  found.addEventListener("click", action);
  return found;
}

function turnNode(turn, index) {
  const who = element("span", turn.role === "user" ? words.you : words.model);
  who.className = "who";
  const said = element("div");
  said.className = "said";
  const tools = element("div");
  tools.className = "tools";
  const node = element("article", who, said, tools);
  node.className = `turn ${turn.role}`;
  fill(node, turn);
  tools.append(button(words.copy, () => navigator.clipboard.writeText(turn.content)));
  if (turn.role === "user") tools.append(button(words.edit, () => edit(node, index)));
  else tools.append(button(words.retry, () => retry(index)), element("span", turn.note ?? ""));
  return node;
}

/** Put the text of a turn into its node; an answer as Markdown, or as tokens with their probabilities. */
function fill(node, turn) {
  const said = node.querySelector(".said");
  if (turn.role === "user") {
    said.textContent = turn.content;
    return;
  }
  const parts = [];
  if (turn.reasoning) {
    const thought = element("div", turn.reasoning);
    thought.className = "thought";
    const box = element("details", element("summary", turn.content || turn.done ? words.thought : words.thinking), thought);
    box.open = said.querySelector("details")?.open ?? false;
    parts.push(box);
  }
  if (settings.showTokens && turn.shown?.length) parts.push(tokens(turn.shown));
  else parts.push(markdown(turn.content, words.copy));
  for (const call of turn.calls ?? []) {
    const box = element("div", element("b", `${words.called} ${call.function.name}`), element("pre", element("code", pretty(call.function.arguments))));
    box.className = "call";
    parts.push(box);
  }
  said.replaceChildren(...parts);
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** One span a token, the less probable the redder; hovering or focusing shows what else was likely. */
function tokens(shown) {
  const box = element("p");
  for (const { token, logprob, top } of shown) {
    const span = element("span", token);
    span.className = "token";
    span.tabIndex = 0;
    span.style.setProperty("--p", Math.exp(logprob));
    const others = () => alternatives(span, token, top);
    span.addEventListener("mouseenter", others);
    span.addEventListener("focus", others);
    for (const end of ["mouseleave", "blur"]) span.addEventListener(end, () => ($("alternatives").hidden = true));
    box.append(span);
  }
  box.style.whiteSpace = "pre-wrap";
  return box;
}

function alternatives(span, token, top) {
  const rows = top.map((one) => {
    const name = element("td", one.token.replaceAll("\n", "⏎") || "∅");
    if (one.token === token) name.style.fontWeight = "bold";
    return element("tr", name, element("td", `${(100 * Math.exp(one.logprob)).toFixed(1)} %`));
  });
  const box = $("alternatives"), at = span.getBoundingClientRect();
  box.replaceChildren(element("table", element("tbody", ...rows)));
  box.hidden = false;
  box.style.left = `${Math.max(8, Math.min(at.left, innerWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${at.bottom + box.offsetHeight + 8 > innerHeight ? at.top - box.offsetHeight - 6 : at.bottom + 6}px`;
  span.setAttribute("aria-describedby", "alternatives");
}

// ---- chats

function openChat(one) {
  running?.abort();
  chat = one;
  showChats();
  showTurns();
  if (innerWidth <= 700) showSidebar(false);
}

function newChat() {
  const empty = chats.find((one) => !one.turns.length);
  if (!empty) chats.unshift({ id: `${Date.now()}`, turns: [] });
  openChat(empty ?? chats[0]);
  $("entry").focus();
}

function removeChat(one) {
  chats = chats.filter((other) => other !== one);
  keep();
  if (one === chat) newChat();
  else showChats();
}

function edit(node, index) {
  const box = element("textarea");
  box.value = chat.turns[index].content;
  box.rows = Math.min(12, box.value.split("\n").length + 1);
  box.setAttribute("aria-label", words.edit);
  const done = button(words.send, () => {
    if (!box.value.trim()) return;
    running?.abort();
    chat.turns.length = index;
    ask(box.value);
  });
  node.querySelector(".said").replaceChildren(box);
  node.querySelector(".tools").replaceChildren(button(words.close, showTurns), done);
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") showTurns();
    if (entered(event)) done.click();
  });
  box.focus();
}

function retry(index) {
  running?.abort();
  chat.turns.length = index;
  showTurns();
  answer();
}

// ---- asking

function ask(text) {
  chat.turns.push({ role: "user", content: text });
  chats = [chat, ...chats.filter((one) => one !== chat)];
  keep();
  showChats();
  showTurns();
  answer();
}

function bodyOf(turns) {
  const body = { model: model.id, stream: true, stream_options: { include_usage: true } };
  for (const name of NUMBERS) if (settings[name] !== "") body[name] = Number(settings[name]);
  if (model.plain_text) {
    if (settings.showTokens) body.logprobs = 5;
    return { ...body, prompt: turns.map((turn) => turn.content).join("") };
  }
  if (settings.showTokens) Object.assign(body, { logprobs: true, top_logprobs: 5 });
  if (settings.tools.trim()) body.tools = JSON.parse(settings.tools);
  const said = turns.map((turn) => ({ role: turn.role, content: turn.content, ...(turn.calls?.length && { tool_calls: turn.calls }) }));
  return { ...body, messages: [...(settings.system ? [{ role: "system", content: settings.system }] : []), ...said] };
}

/** Stream the model's next turn into the chat. */
async function answer() {
  const here = chat, turn = { role: "assistant", content: "", reasoning: "", calls: [], shown: [] };
  let body;
  try {
    body = bodyOf(here.turns);
  } catch {
    say(words.badTools);
    return;
  }
  here.turns.push(turn);
  const node = turnNode(turn, here.turns.length - 1), mine = (running = new AbortController());
  $("log").querySelector(".empty")?.remove();
  $("log").append(node);
  node.classList.add("waiting");
  node.setAttribute("aria-busy", "true");
  busy(true);
  say("");
  let first = 0, usage = null, cut = "", drawn = 0;
  const draw = () => {
    drawn = 0;
    const log = $("log"), near = log.scrollHeight - log.scrollTop - log.clientHeight < 120;
    fill(node, turn);
    if (near) log.scrollTop = log.scrollHeight;
  };
  try {
    for await (const event of events(model.plain_text ? "/v1/completions" : "/v1/chat/completions", body, mine.signal)) {
      if (event.error) throw new Error(event.error.message);
      usage = event.usage ?? usage;
      for (const choice of event.choices) {
        first ||= performance.now();
        take(turn, choice);
        if (choice.finish_reason === "length") cut = words.cut;
      }
      drawn ||= requestAnimationFrame(draw);
    }
  } catch (error) {
    if (error.name === "AbortError") cut = words.stopped;
    else say(words.failed + error.message);
  }
  cancelAnimationFrame(drawn);
  turn.done = true;
  turn.note = noteOf(usage, performance.now() - first, cut);
  if (!turn.content && !turn.reasoning && !turn.calls.length) here.turns.splice(here.turns.indexOf(turn), 1);
  if (running === mine) running = null;
  keep();
  if (here !== chat) return;
  busy(running !== null);
  const log = $("log"), at = log.scrollTop;
  if (node.isConnected) showTurns();
  if (at + log.clientHeight + 160 < log.scrollHeight) log.scrollTop = at;
}

/** What a chunk adds to a turn. */
function take(turn, choice) {
  const delta = choice.delta ?? { content: choice.text };
  turn.content += delta.content ?? "";
  turn.reasoning += delta.reasoning_content ?? "";
  for (const { index, ...call } of delta.tool_calls ?? []) turn.calls.push(call);
  for (const one of choice.logprobs?.content ?? []) turn.shown.push({ token: one.token, logprob: one.logprob, top: one.top_logprobs });
  choice.logprobs?.tokens?.forEach((token, at) => {
    const top = Object.entries(choice.logprobs.top_logprobs[at]).map(([name, logprob]) => ({ token: name, logprob }));
    top.sort((a, b) => b.logprob - a.logprob);
    turn.shown.push({ token, logprob: choice.logprobs.token_logprobs[at], top });
  });
}

function noteOf(usage, ms, cut) {
  const found = [cut];
  if (usage) {
    const { prompt_tokens: prompt, completion_tokens: made } = usage;
    found.push(`${prompt} → ${made} ${words.tokens.toLowerCase()}`);
    if (made > 1) found.push(`${((made - 1) / (ms / 1000)).toFixed(1)} ${words.tokens.toLowerCase()}/s`);
  }
  return found.filter(Boolean).join(" · ");
}

/** The events of a streamed answer. */
async function* events(path, body, signal) {
  const response = await fetch(path, { method: "POST", headers: headers(), body: JSON.stringify(body), signal });
  if (!response.ok) {
    const problem = await response.json().catch(() => null);
    throw new Error(problem?.error?.message ?? `${response.status} ${response.statusText}`);
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n\n");
    rest = lines.pop();
    for (const line of lines) if (line.startsWith("data: {")) yield JSON.parse(line.slice(6));
  }
}

function headers() {
  return { "content-type": "application/json", ...(settings.key && { authorization: `Bearer ${settings.key}` }) };
}

function busy(is) {
  $("send").hidden = is;
  $("stop").hidden = !is;
}

// ---- the page itself

function showSidebar(open) {
  $("sidebar").dataset.open = open ? "yes" : "no";
  $("open-sidebar").setAttribute("aria-expanded", open);
}

function applySettings() {
  words = translate(settings.language);
  document.documentElement.dataset.look = settings.look;
  $("show-tokens").checked = settings.showTokens;
  localStorage.setItem(SETTINGS, JSON.stringify(settings));
}

function entered(event) {
  return event.key === "Enter" && !event.shiftKey && !event.isComposing; // composing: an input method is open
}

function fit() {
  $("entry").style.height = "auto";
  $("entry").style.height = `${$("entry").scrollHeight + 2}px`;
}

async function findModel() {
  say(""); // now and not after the answer: by then the line may tell of something newer
  try {
    const response = await fetch("/v1/models", { headers: headers() });
    const found = await response.json();
    if (found.error) throw new Error(found.error.message);
    model = found.data[0];
    $("model").textContent = document.title = model.id;
  } catch (error) {
    say(words.failed + error.message);
  }
}

$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("entry").value;
  if (!text.trim() || running) return;
  $("entry").value = "";
  fit();
  ask(text);
});
$("entry").addEventListener("input", fit);
$("entry").addEventListener("keydown", (event) => {
  if (!entered(event)) return;
  event.preventDefault();
  $("form").requestSubmit();
});
$("stop").addEventListener("click", () => running?.abort());
$("new").addEventListener("click", newChat);
$("open-sidebar").addEventListener("click", () => showSidebar($("sidebar").dataset.open === "no"));
$("close-sidebar").addEventListener("click", () => showSidebar(false));
$("show-tokens").addEventListener("change", () => {
  settings.showTokens = $("show-tokens").checked;
  applySettings();
  redraw();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !$("settings").open) running?.abort();
});

const fields = $("settings").querySelector("form").elements;
$("open-settings").addEventListener("click", () => {
  for (const name of Object.keys(DEFAULTS)) if (fields[name]) fields[name].value = settings[name];
  for (const [name, value] of Object.entries(model.sampling)) if (fields[name]) fields[name].placeholder = value;
  $("settings").showModal();
});
$("settings").addEventListener("close", () => {
  if ($("settings").returnValue !== "save") return;
  $("settings").returnValue = "";
  for (const name of Object.keys(DEFAULTS)) if (fields[name]) settings[name] = fields[name].value;
  applySettings();
  showChats();
  redraw();
  findModel();
});

applySettings();
showSidebar(innerWidth > 700);
newChat();
await findModel();
if (!running && !chat.turns.length) showTurns();
