import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hookKey } from '../../src/adapters/files/hook-key.ts';
import { GitProjects } from '../../src/adapters/projects/git-projects.ts';
import { loadDriver } from '../../src/adapters/store/driver.ts';
import { type HookStore, openHookStore } from '../../src/cli/compose-hook.ts';
import { captureAssistant, captureHuman } from '../../src/core/memory/captures.ts';
import type { SpokenRecord } from '../../src/ports/memory.ts';
import { type AnswerChoices, answerTo } from './dialect-wire.ts';
import { HookStage } from './hook-stage.ts';
import { startRecordingProvider, startStory, type RecordingProvider, type Story } from './story.ts';

/**
 * Claude Code as memory sees it: it runs svc's hooks, or asks through the proxy, or does both. The person and the model
 * say the same in all three, so svc must keep the same. The forms of the transcript and of the requests are those of
 * Claude Code 2.1.329, recorded on 2026-11-24.
 */

export type Delivery = 'hooks' | 'proxy' | 'both';
export const DELIVERIES: readonly Delivery[] = ['hooks', 'proxy', 'both'];

interface Message {
  readonly role: 'user' | 'assistant' | 'system';
  readonly content: string | readonly object[];
}

const BETA = 'claude-code-20250219,interleaved-thinking-2025-05-14';
const TOOLS = [{ name: 'Bash', description: 'd', input_schema: { type: 'object' } }];
/** Hooks that run beside each other are processes of their own, with stores of their own. */
const HOOK_PROCESSES = 2;

/** One data folder, with what delivers its memory. */
export class HookedWorld {
  readonly delivery: Delivery;
  readonly stage = new HookStage();
  /** The next hook answers too late, so the client goes on without its text. */
  isHookLate = false;
  #provider: RecordingProvider | undefined;
  #story: Promise<Story> | undefined;
  #stores: Promise<HookStore>[] = [];
  #runs = 0;

  constructor(delivery: Delivery) {
    this.delivery = delivery;
    // The program makes it with the first hook.
    hookKey(this.stage.data);
    this.stage.openStore = (options) => {
      const at = this.#runs % HOOK_PROCESSES;
      this.#runs += 1;
      const opened = (this.#stores[at] ??= openHookStore(options));
      return opened.then((store) => ({ ...store, close: async () => {} }));
    };
  }

  async hook(event: string, session: string, more: object): Promise<string> {
    if (this.delivery === 'proxy') return '';
    const text = await this.stage.claude(event, session, more);
    const isLate = this.isHookLate;
    this.isHookLate = false;
    return isLate ? '' : text;
  }

  /** Asks the model, which gives this answer. Returns svc's blocks in what it reads. */
  async ask(
    session: string,
    messages: readonly Message[],
    answer: AnswerChoices,
  ): Promise<readonly string[]> {
    if (this.delivery === 'hooks') return blocksIn(messages);
    const story = await this.#proxy();
    if (this.#provider !== undefined) this.#provider.reply = (seen) => answerTo(seen, answer);
    const body = {
      model: 'claude-sonnet-4-5',
      max_tokens: 999,
      tools: TOOLS,
      messages: this.#withPlace(messages),
      metadata: { user_id: JSON.stringify({ session_id: session }) },
    };
    const { status, headers } = await story.send('anthropic_messages', body, {
      'user-agent': 'claude-cli/2.1.329 (external, cli)',
      'x-claude-code-session-id': session,
      'anthropic-beta': BETA,
    });
    if (status !== 200) throw new Error(`The proxy answered ${status} ${JSON.stringify(headers)}`);
    return blocksIn(JSON.parse(this.#provider?.seen.at(-1)?.body.toString() ?? ''));
  }

  /** The client states its folder behind the first message. */
  #withPlace(messages: readonly Message[]): readonly Message[] {
    const first = messages.findIndex(({ role }) => role === 'user');
    const content = `# Environment\n - Primary working directory: ${this.stage.project}\n`;
    const place = { role: 'system', content } as const;
    const others = messages.filter((_, at) => at !== first);
    return [...messages.slice(first, first + 1), place, ...others];
  }

  #proxy(): Promise<Story> {
    return (this.#story ??= this.#start());
  }

  async #start(): Promise<Story> {
    this.#provider ??= await startRecordingProvider();
    return startStory({
      provider: this.#provider,
      folder: this.stage.data,
      hookKey: hookKey(this.stage.data) ?? '',
      projects: new GitProjects(this.stage.data),
    });
  }

  /** The processes of svc end; the next event begins new ones. */
  async restart(): Promise<void> {
    await this.settle();
    const stores = await Promise.all(Object.values(this.#stores));
    this.#stores = [];
    await Promise.all(stores.map((store) => store.close()));
    await (await this.#story)?.stop();
    this.#story = undefined;
  }

  async settle(): Promise<void> {
    const story = await this.#story;
    await story?.drained();
    await story?.settled();
    for (const store of await Promise.all(Object.values(this.#stores)))
      await store.outbox.flush(30_000);
  }

  /** Another program holds the lock of the database. Returns what ends that. */
  lock(): () => void {
    const database = loadDriver().open(join(this.stage.data, 'state.db'));
    database.exec('PRAGMA busy_timeout = 10000');
    database.exec('BEGIN IMMEDIATE');
    return () => {
      database.exec('ROLLBACK');
      database.close();
    };
  }

  async records(): Promise<readonly SpokenRecord[]> {
    await this.settle();
    return this.stage.records();
  }
}

function blocksIn(value: unknown): readonly string[] {
  if (typeof value === 'string') return value.match(/<svc-memory [^]*?<\/svc-memory>/g) ?? [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(blocksIn);
}

/** What svc must keep of an exchange, and nothing else. */
export interface Kept {
  readonly human: string;
  /** '' where the answer says nothing that the model has not read from svc. */
  readonly answer: string;
  readonly session: string;
  /** Undefined after a compaction: a request then holds fewer exchanges than the transcript. */
  readonly exchange: number | undefined;
  /** The blocks that the model has read. */
  readonly blocks: number;
}

export interface Said {
  readonly prompt: string;
  readonly answer: string;
  /** What the assistant says with each call of a tool; '' says nothing. */
  readonly between?: readonly string[];
  /** The client writes its transcript so many milliseconds late. */
  readonly lagMs?: number;
  /** The client has the hooks twice: in its settings, and in a plugin. */
  readonly isTwice?: boolean;
}

/** One session of the client. */
export class HookedSession {
  readonly world: HookedWorld;
  readonly id: string;
  /** svc's blocks as the model read them last. */
  read = '';
  #messages: Message[] = [];
  /** The number of messages and the last line before each prompt. */
  #prompts: { readonly messages: number; readonly parent: string | null }[] = [];
  #parent: string | null = null;
  #pending: string[] = [];
  #written: string[] = [];
  #count = 0;
  #isCompacted = false;

  constructor(world: HookedWorld, id: string) {
    this.world = world;
    this.id = id;
  }

  get prompts(): number {
    return this.#prompts.length;
  }

  async begin(source = 'startup'): Promise<void> {
    const text = await this.world.hook('SessionStart', this.id, { source });
    this.#hookText('SessionStart', text);
    this.flush();
  }

  async say({ prompt, answer, between = [], lagMs = 0, isTwice = false }: Said): Promise<Kept> {
    this.flush();
    const occasion = { prompt_id: `${this.id}-${this.#count}` };
    this.#prompts.push({ messages: this.#messages.length, parent: this.#parent });
    const run = async (event: string, more: object): Promise<string> => {
      const all = { ...occasion, ...more };
      const texts = await Promise.all(
        Array.from({ length: isTwice ? 2 : 1 }, () => this.world.hook(event, this.id, all)),
      );
      return texts.find((text) => text !== '') ?? '';
    };
    const heard = await run('UserPromptSubmit', { prompt });
    this.#line('user', { role: 'user', content: prompt });
    this.#messages.push({ role: 'user', content: prompt });
    this.#hookText('UserPromptSubmit', heard);
    for (const [at, text] of between.entries()) {
      if (lagMs === 0) this.flush();
      // oxlint-disable-next-line no-await-in-loop -- One step after the other.
      await this.#callTool(`call_${this.#count}_${at}`, text, run);
    }
    const blocks = await this.world.ask(this.id, this.#messages, { text: answer });
    this.read = blocks.join('\n');
    const said = [{ type: 'text', text: answer }];
    this.#line('assistant', { role: 'assistant', model: 'claude', content: said });
    this.#messages.push({ role: 'assistant', content: said });
    if (lagMs === 0) this.flush();
    const written = lagMs === 0 ? undefined : sleep(lagMs).then(() => this.flush());
    await run('Stop', { last_assistant_message: answer });
    await written;
    const whole = [...between, answer].filter((text) => text !== '').join('\n\n');
    return {
      human: captureHuman(prompt)?.text ?? '',
      answer: captureAssistant(whole, { blocks, key: '', question: prompt })?.text ?? '',
      session: this.id,
      exchange: this.#isCompacted ? undefined : this.#prompts.length - 1,
      blocks: blocks.length,
    };
  }

  async #callTool(
    id: string,
    text: string,
    run: (event: string, more: object) => Promise<string>,
  ): Promise<void> {
    const input = { command: 'ls' };
    // The stand-in for the provider calls its tool with this id.
    await this.world.ask(this.id, this.#messages, { text, callsTool: true });
    const call = { type: 'tool_use', id, name: 'Bash', input };
    const content = [...(text === '' ? [] : [{ type: 'text', text }]), call];
    for (const part of content) {
      this.#line('assistant', { role: 'assistant', model: 'claude', content: [part] });
    }
    this.#messages.push({ role: 'assistant', content });
    const result = { type: 'tool_result', tool_use_id: id, content: 'a file' };
    const ran = { tool_name: 'Bash', tool_input: input, tool_use_id: id, tool_response: 'a file' };
    const heard = await run('PostToolUse', ran);
    this.#line('user', { role: 'user', content: [result] });
    this.#messages.push({ role: 'user', content: [result] });
    this.#hookText('PostToolUse', heard);
  }

  /** The person stops the answer: no hook says so. */
  async interrupt(prompt: string): Promise<Kept> {
    this.flush();
    this.#prompts.push({ messages: this.#messages.length, parent: this.#parent });
    const occasion = { prompt_id: `${this.id}-${this.#count}` };
    const text = await this.world.hook('UserPromptSubmit', this.id, { ...occasion, prompt });
    this.#line('user', { role: 'user', content: prompt });
    this.#messages.push({ role: 'user', content: prompt });
    this.#hookText('UserPromptSubmit', text);
    const cut = { text: 'I begin to', isCutShort: true };
    await this.world.ask(this.id, this.#messages, cut);
    const said = [{ type: 'text', text: cut.text }];
    this.#line('assistant', { role: 'assistant', model: 'claude', content: said });
    this.#messages.push({ role: 'assistant', content: said });
    const stopped = [{ type: 'text', text: '[Request interrupted by user]' }];
    this.#line('user', { role: 'user', content: stopped });
    this.#messages.push({ role: 'user', content: stopped });
    this.flush();
    return {
      human: captureHuman(prompt)?.text ?? '',
      answer: '',
      session: this.id,
      exchange: this.#isCompacted ? undefined : this.#prompts.length - 1,
      blocks: 0,
    };
  }

  async compact(summary: string): Promise<void> {
    this.flush();
    await this.world.hook('PreCompact', this.id, { trigger: 'manual' });
    this.#lineOf({ type: 'system', subtype: 'compact_boundary' });
    const message = { role: 'user', content: summary } as const;
    this.#lineOf({ type: 'user', message, isCompactSummary: true });
    this.#messages = [message];
    this.#prompts = [];
    this.#isCompacted = true;
    await this.begin('compact');
  }

  /** Goes back to before the prompt of this number. */
  rewind(to: number): void {
    const prompt = this.#prompts[to];
    if (prompt === undefined) return;
    this.#messages = this.#messages.slice(0, prompt.messages);
    this.#parent = prompt.parent;
    this.#prompts = this.#prompts.slice(0, to);
  }

  /** Another session that begins with all that was said in this one. */
  async fork(id: string): Promise<HookedSession> {
    this.flush();
    const other = new HookedSession(this.world, id);
    other.#messages = [...this.#messages];
    other.#prompts = this.#prompts.map(({ messages, parent }) => ({
      messages,
      parent: parent?.replace(this.id, id) ?? null,
    }));
    other.#parent = this.#parent?.replace(this.id, id) ?? null;
    other.#written = this.#written.map((line) => line.replaceAll(this.id, id));
    other.#count = this.#count + 1_000;
    other.#isCompacted = this.#isCompacted;
    appendFileSync(this.world.stage.transcript(id), other.#written.join(''));
    await other.begin('fork');
    return other;
  }

  async end(): Promise<void> {
    this.flush();
    await this.world.hook('SessionEnd', this.id, { reason: 'other' });
    await this.world.settle();
  }

  /** The client writes what it has not written yet. */
  flush(): void {
    appendFileSync(this.world.stage.transcript(this.id), this.#pending.splice(0).join(''));
  }

  #hookText(event: string, text: string): void {
    if (text === '') return;
    const attachment = { type: 'hook_additional_context', content: [text], hookEvent: event };
    this.#lineOf({ type: 'attachment', attachment, renderedRole: 'system' });
    const content = `<system-reminder>\n${event} hook additional context: ${text}\n</system-reminder>`;
    this.#messages.push({ role: 'system', content });
  }

  #line(type: 'user' | 'assistant', message: object): void {
    this.#lineOf({ type, message });
  }

  #lineOf(fields: object): void {
    this.#count += 1;
    const uuid = `${this.id}-u${this.#count}`;
    const line = {
      parentUuid: this.#parent,
      isSidechain: false,
      ...fields,
      uuid,
      timestamp: new Date().toISOString(),
      sessionId: this.id,
      cwd: this.world.stage.project,
    };
    this.#parent = uuid;
    const text = `${JSON.stringify(line)}\n`;
    this.#written.push(text);
    this.#pending.push(text);
  }
}

/** What a memory says, without when it was said and how its place is named. */
export function saysOf({ space, role, text, client, source }: SpokenRecord): string {
  return `${space} ${client} ${role}${source === undefined ? '' : ` (${source})`}: ${text}`;
}
