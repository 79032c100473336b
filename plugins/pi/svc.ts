// svc for pi: memory of earlier sessions beside the prompts, with no proxy in the path.
// Put this file into ~/.pi/agent/extensions/, or run: svc connect pi --hooks
// pi stores the message that `before_agent_start` returns, so what is added here stays in the session.
import { spawn } from 'node:child_process';

const COMMAND = ['svc'];
/** svc answers within a second. A busy machine needs more to start it, and to end it earlier would lose what was said. */
const ANSWER_MS = 5_000;
/** Shorter ones are never cut (`hookCut` in the settings of svc). */
const LONG_CHARS = 8_000;

let isSaid = false;

/** The answer of `svc hook pi EVENT`; undefined where it has none. Never rejects. */
function ask(event: string, input: object, ctx: any): Promise<{ text?: string; output?: string } | undefined> {
  return new Promise((resolve) => {
    const [program = 'svc', ...args] = COMMAND;
    const child = spawn(program, [...args, 'hook', 'pi', event], { stdio: ['pipe', 'pipe', 'ignore'], shell: process.platform === 'win32' });
    let text = '';
    const timer = setTimeout(() => child.kill('SIGKILL'), ANSWER_MS);
    child.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      if (!isSaid && error.code === 'ENOENT') {
        isSaid = true;
        const line = 'The svc extension has no memory: svc is not installed. Run: npm install -g svc-local-proxy';
        if (ctx?.hasUI) ctx.ui.notify(line, 'warning');
        else console.error(line);
      }
      resolve(undefined);
    });
    child.stdout.on('data', (piece: Buffer) => (text += piece));
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
  });
}

export default function (pi: any) {
  let prompt = { id: '', text: '', calls: [] as object[], hasLooked: false };
  const place = (ctx: any) => ({
    session_id: ctx.sessionManager?.getSessionId?.() ?? ctx.sessionManager?.getSessionFile?.() ?? '',
    cwd: ctx.cwd ?? process.cwd(),
  });

  pi.on('before_agent_start', async (event: any, ctx: any) => {
    const id = String(Date.now());
    prompt = { id, text: event.prompt, calls: [], hasLooked: false };
    const said = await ask('prompt', { ...place(ctx), message_id: id, prompt: event.prompt }, ctx);
    if (!said?.text) return undefined;
    return { message: { customType: 'svc-memory', content: said.text, display: false } };
  });
  pi.on('tool_result', async (event: any, ctx: any) => {
    const output = (event.content ?? []).map(({ text = '' }: { text?: string }) => text).join('\n');
    prompt.calls.push({
      tool_name: event.toolName,
      tool_input: event.input ?? {},
      tool_response: output.slice(0, 4_000),
    });
    const { id, text, calls } = prompt;
    let content: object[] | undefined;
    if (event.toolName === 'bash' && output.length >= LONG_CHARS) {
      const ran = { tool_name: 'bash', tool_input: event.input ?? {}, tool_response: output };
      const cut = await ask('tool', { ...place(ctx), message_id: id, ...ran }, ctx);
      if (cut?.output) content = [{ type: 'text', text: cut.output }];
    }
    if (!prompt.hasLooked && calls.length >= 4) {
      prompt.hasLooked = true;
      const said = await ask('tool', { ...place(ctx), message_id: id, prompt: text, calls }, ctx);
      if (said?.text) content = [...(content ?? event.content), { type: 'text', text: said.text }];
    }
    return content && { content };
  });
  pi.on('session_compact', async (_event: any, ctx: any) => {
    await ask('compacted', place(ctx), ctx);
  });
  pi.on('agent_end', async (event: any, ctx: any) => {
    const { id, text } = prompt;
    if (text === '') return;
    const answers = (event.messages ?? [])
      .filter(({ role }: { role?: string }) => role === 'assistant')
      .flatMap(({ content }: { content?: any[] }) => content ?? [])
      .filter(({ type }: { type?: string }) => type === 'text')
      .map((part: { text: string }) => part.text);
    const said = { message_id: id, prompt: text, last_assistant_message: answers.join('\n\n') };
    await ask('stop', { ...place(ctx), ...said }, ctx);
  });
}
