/**
 * Exchanges of the data set as a client would have written them: lines of a Claude Code transcript
 * (for what becomes a memory) and the body of a request (for what the proxy is asked). Where the data
 * have no tool output, a short remark answers the call.
 */

/** Where the sessions were, as the transcripts and requests of the bench say it. */
export const FOLDER = '/home/dev/project';
const LEFT_OUT = '(output left out)';

/** `input` of a call: what the data have of it. */
function inputOf({ c: tool, p: paths = [], y: symbols = [], input }) {
  if (input !== undefined) return input;
  const file = paths[0] === undefined ? {} : { file_path: absolute(paths[0]) };
  const others = paths.slice(1).map(absolute);
  const words = [...others, ...symbols].join(' ');
  if (/bash|exec|shell/i.test(tool)) return { command: [...paths, ...symbols].join(' ') };
  if (/^(?:grep|glob)$/i.test(tool)) {
    return { pattern: symbols.join(' '), ...(paths[0] && { path: absolute(paths[0]) }) };
  }
  if (/^(?:edit|multiedit|apply_patch)$/i.test(tool))
    return { ...file, old_string: '', new_string: words };
  if (/^write$/i.test(tool)) return { ...file, content: words };
  return { ...file, ...(words === '' ? {} : { query: words }) };
}

function absolute(path) {
  return path.startsWith('/') || path.startsWith('~') ? path : `${FOLDER}/${path}`;
}

/** The messages of one exchange, the person's first. */
export function messagesOf(exchange) {
  const messages = [{ role: 'user', content: [{ type: 'text', text: exchange.human }] }];
  let said = [];
  let calls = [];
  const flush = () => {
    if (said.length > 0) messages.push({ role: 'assistant', content: said });
    if (calls.length > 0) {
      const content = calls.map(([id, output]) => ({
        type: 'tool_result',
        tool_use_id: id,
        content: output,
      }));
      messages.push({ role: 'user', content });
    }
    said = [];
    calls = [];
  };
  exchange.items.forEach((item, at) => {
    if (item.t !== undefined) {
      if (calls.length > 0) flush();
      said.push({ type: 'text', text: item.t });
      return;
    }
    const id = `toolu_${exchange.id.replaceAll(/\W/g, '_')}_${at}`;
    said.push({ type: 'tool_use', id, name: item.c, input: inputOf(item) });
    calls.push([id, item.o ?? LEFT_OUT]);
  });
  flush();
  if (exchange.interrupted) {
    messages.push({
      role: 'user',
      content: [{ type: 'text', text: '[Request interrupted by user]' }],
    });
  }
  return messages;
}

/** Lines of a Claude Code transcript for one exchange. */
export function linesOf(exchange) {
  const messages = messagesOf(exchange);
  return messages.map((message, at) => {
    const isLast = at === messages.length - 1;
    const stop = isLast && exchange.cut ? 'max_tokens' : undefined;
    return JSON.stringify({
      type: message.role,
      sessionId: exchange.session,
      cwd: FOLDER,
      ...(exchange.branch && { gitBranch: exchange.branch }),
      timestamp: new Date(at === 0 ? exchange.at : exchange.end).toISOString(),
      message:
        message.role === 'user'
          ? message
          : { ...message, model: 'claude-sonnet-4-5', stop_reason: stop ?? null },
    });
  });
}

/** How Claude Code begins the summary that stands for what a compaction took out of the request. */
const SUMMARY =
  'This session is being continued from a previous conversation that ran out of context. The conversation is summarized below: (left out)';

/** The messages that are left of `earlier`: the client compacted while the exchange before a `compacted` one ran. */
function messagesLeft(earlier, prompt) {
  const next = [...earlier, prompt].findLastIndex(({ compacted }) => compacted === true);
  if (next < 1) return earlier.flatMap(messagesOf);
  const said = earlier[next - 1].items.findLast(({ t }) => t !== undefined)?.t ?? LEFT_OUT;
  return [
    { role: 'user', content: [{ type: 'text', text: SUMMARY }] },
    { role: 'assistant', content: [{ type: 'text', text: said }] },
    ...earlier.slice(next).flatMap(messagesOf),
  ];
}

/** The request that carries `prompt` and what was `done` after it, behind `earlier` exchanges of its session. */
export function requestOf(earlier, prompt, done = []) {
  const asked = { id: prompt.id, human: prompt.human, items: done };
  const messages = [...messagesLeft(earlier, prompt), ...messagesOf(asked)];
  const environment = `<env>\nWorking directory: ${FOLDER}\nIs directory a git repo: Yes\n</env>\ngitStatus: Current branch: ${prompt.branch || 'main'}\n`;
  return {
    model: 'claude-sonnet-4-5',
    max_tokens: 32000,
    metadata: { user_id: `user_00_account__session_${prompt.session}` },
    system: [
      { type: 'text', text: "You are Claude Code, Anthropic's official CLI for Claude." },
      { type: 'text', text: environment },
    ],
    tools: ['Bash', 'Edit', 'Read', 'Write', 'Grep', 'Glob'].map((name) => ({
      name,
      description: name,
      input_schema: { type: 'object' },
    })),
    messages: joined(messages),
    stream: true,
  };
}

/** Neighbours of one role are one message, as clients send them. */
function joined(messages) {
  const out = [];
  for (const { role, content } of messages) {
    if (out.at(-1)?.role === role) out.at(-1).content.push(...content);
    else out.push({ role, content: [...content] });
  }
  return out;
}
