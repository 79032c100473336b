// svc for opencode: memory of earlier sessions beside the prompts, with no proxy in the path.
// Put this file into ~/.config/opencode/plugins/, or run: svc connect opencode --hooks
// opencode runs `chat.message` before it stores the message, so what is added here stays in the session. The plugin uses
// no transform of requests: those change what a provider has bound to the model's thinking.
import { spawn } from 'node:child_process';

const COMMAND = ['svc'];
/** svc answers within a second. A busy machine needs more to start it, and to end it earlier would lose what was said. */
const ANSWER_MS = 5_000;
/** Shorter ones are never cut (`hookCut` in the settings of svc). */
const LONG_CHARS = 8_000;

/** The answer of `svc hook opencode EVENT`; undefined where it has none. Never rejects. */
function ask(event, input) {
  return new Promise((resolve) => {
    let text = '';
    try {
      const [program, ...args] = COMMAND;
      const child = spawn(program, [...args, 'hook', 'opencode', event], {
        stdio: ['pipe', 'pipe', 'ignore'],
        // There svc is a script of the shell.
        shell: process.platform === 'win32',
      });
      const timer = setTimeout(() => child.kill('SIGKILL'), ANSWER_MS);
      child.on('error', (error) => {
        clearTimeout(timer);
        sayOnce(error);
        resolve(undefined);
      });
      child.stdout.on('data', (piece) => (text += piece));
      child.on('close', () => {
        clearTimeout(timer);
        try {
          resolve(text === '' ? undefined : JSON.parse(text));
        } catch {
          resolve(undefined);
        }
      });
      child.stdin.on('error', () => undefined);
      child.stdin.end(JSON.stringify(input));
    } catch (error) {
      sayOnce(error);
      resolve(undefined);
    }
  });
}

let isSaid = false;
function sayOnce(error) {
  if (isSaid || error?.code !== 'ENOENT') return;
  isSaid = true;
  console.error('The svc plugin has no memory: svc is not installed. Run: npm install -g svc-local-proxy');
}

export const SvcMemory = async ({ client, directory }) => {
  /** By session: the newest prompt with its id, and the calls behind it. */
  const prompts = new Map();
  const children = new Set();

  const finish = async (sessionID) => {
    const prompt = prompts.get(sessionID);
    if (prompt === undefined || prompt.isKept) return;
    prompt.isKept = true;
    let answer = '';
    try {
      const { data = [] } = await client.session.messages({ path: { id: sessionID } });
      const from = data.findLastIndex(({ info }) => info.role === 'user');
      answer = data
        .slice(from + 1)
        .filter(({ info }) => info.role === 'assistant' && info.error === undefined)
        .flatMap(({ parts }) => parts.filter(({ type, synthetic }) => type === 'text' && !synthetic))
        .map(({ text }) => text)
        .join('\n\n');
    } catch {
      // The prompt is kept without its answer.
    }
    await ask('stop', {
      session_id: sessionID,
      cwd: directory,
      message_id: prompt.id,
      prompt: prompt.text,
      last_assistant_message: answer,
    });
  };

  return {
    'chat.message': async ({ sessionID }, { message, parts }) => {
      if (children.has(sessionID)) return;
      const text = parts
        .filter(({ type, synthetic }) => type === 'text' && !synthetic)
        .map((part) => part.text)
        .join('\n');
      prompts.set(sessionID, { id: message.id, text, calls: [], isKept: false, hasLooked: false });
      const said = await ask('prompt', {
        session_id: sessionID,
        cwd: directory,
        message_id: message.id,
        prompt: text,
      });
      if (!said?.text) return;
      const last = parts.at(-1);
      parts.push({
        id: `${last?.id ?? 'prt_svc'}m`,
        sessionID,
        messageID: message.id,
        type: 'text',
        text: said.text,
        synthetic: true,
      });
    },
    'tool.execute.after': async ({ tool, sessionID, args }, output) => {
      const prompt = prompts.get(sessionID);
      if (prompt === undefined || typeof output?.output !== 'string') return;
      const place = { session_id: sessionID, cwd: directory, message_id: prompt.id };
      if (tool === 'bash' && output.output.length >= LONG_CHARS) {
        const ran = { tool_name: tool, tool_input: args ?? {}, tool_response: output.output };
        const cut = await ask('tool', { ...place, ...ran });
        if (typeof cut?.output === 'string') output.output = cut.output;
      }
      prompt.calls.push({ tool_name: tool, tool_input: args ?? {}, tool_response: output.output.slice(0, 4_000) });
      if (prompt.hasLooked || prompt.calls.length < 4) return;
      prompt.hasLooked = true;
      const said = await ask('tool', { ...place, prompt: prompt.text, calls: prompt.calls });
      if (said?.text) output.output += `\n\n${said.text}`;
    },
    event: async ({ event }) => {
      if (event.type === 'session.created' && event.properties.info.parentID) {
        children.add(event.properties.info.id);
      }
      if (event.type === 'session.idle') await finish(event.properties.sessionID);
      if (event.type === 'session.compacted') {
        await ask('compacted', { session_id: event.properties.sessionID, cwd: directory });
      }
    },
  };
};
