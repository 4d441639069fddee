// What the page says, in English and Chinese.

export const WORDS = {
  en: {
    skip: "Skip to the message", chats: "Chats", newChat: "New chat", close: "Close", settings: "Settings",
    conversation: "Conversation", message: "Message", hint: "Write a message", send: "Send", stop: "Stop",
    system: "System prompt", temperature: "Temperature", penalty: "Repetition penalty",
    length: "Longest answer, tokens", seed: "Seed", language: "Language", look: "Colours", auto: "As the system",
    light: "Light", dark: "Dark", key: "API key", tools: "Tools (JSON)", save: "Save", tokens: "Tokens", copy: "Copy",
    edit: "Edit", retry: "Retry", remove: "Delete", you: "You", model: "Model", thought: "Thoughts",
    thinking: "Thinking …", empty: "Ask something. Enter sends, Shift+Enter starts a new line.",
    stopped: "stopped", cut: "cut off at the longest length", failed: "No answer: ", plain: "plain text: the model continues what you write",
    full: "This browser has no room for more chats; the oldest were deleted.", badTools: "Tools: expected a JSON list of tools",
    untitled: "Empty chat", called: "calls",
  },
  zh: {
    skip: "跳到输入框", chats: "对话列表", newChat: "新对话", close: "关闭", settings: "设置",
    conversation: "对话", message: "消息", hint: "输入消息", send: "发送", stop: "停止",
    system: "系统提示", temperature: "温度", penalty: "重复惩罚",
    length: "回答最长词元数", seed: "随机种子", language: "语言", look: "颜色", auto: "跟随系统",
    light: "浅色", dark: "深色", key: "API 密钥", tools: "工具（JSON）", save: "保存", tokens: "词元", copy: "复制",
    edit: "编辑", retry: "重试", remove: "删除", you: "你", model: "模型", thought: "思考过程",
    thinking: "思考中……", empty: "请输入问题。回车发送，Shift+回车换行。",
    stopped: "已停止", cut: "已达最大长度", failed: "没有回答：", plain: "纯文本模型：它会续写你的文字",
    full: "浏览器存储已满，最早的对话已删除。", badTools: "工具：应为 JSON 工具列表",
    untitled: "空对话", called: "调用",
  },
};

/** Put the words of a language into the page. */
export function translate(language) {
  const words = WORDS[language];
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = words[node.dataset.text];
  for (const node of document.querySelectorAll("[data-label]")) node.setAttribute("aria-label", words[node.dataset.label]);
  for (const node of document.querySelectorAll("[data-hint]")) node.placeholder = words[node.dataset.hint];
  return words;
}
