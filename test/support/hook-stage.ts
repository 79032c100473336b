import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { openHookStore } from '../../src/cli/compose-hook.ts';
import { runHook } from '../../src/cli/hook/hook.ts';
import { asRecord, asText } from '../../src/core/bytes/json-fields.ts';
import { openEmbeddedStore } from '../../src/adapters/store/embedded-store.ts';
import type { SpokenRecord } from '../../src/ports/memory.ts';
import { tempFolder } from './temp-folder.ts';

const BIN = join(import.meta.dirname, '..', '..', 'bin', 'svc.js');

/** A person's home, a project and a data folder, in which `svc hook` answers as a client would run it. */
export class HookStage {
  readonly home = tempFolder();
  readonly data = join(this.home, 'data');
  readonly project = join(this.home, 'shop');
  readonly environment: Readonly<Record<string, string>>;
  openStore: typeof openHookStore = openHookStore;
  /** A busy machine must not make svc silent. Undefined: as a client runs it. */
  wholeMs: number | undefined = 30_000;
  #uuid = 0;

  constructor(environment: Readonly<Record<string, string>> = {}) {
    mkdirSync(this.project);
    this.environment = {
      HOME: this.home,
      SVC_DATA_HOME: this.data,
      SVC_CONFIG_HOME: join(this.home, 'config'),
      ...environment,
    };
  }

  transcript(session: string): string {
    return join(this.home, `${session}.jsonl`);
  }

  /** What the hook prints; '' for nothing. */
  async run(client: string, event: string, input: object | string): Promise<string> {
    const text = typeof input === 'string' ? input : JSON.stringify(input);
    let printed = '';
    process.argv[1] = BIN;
    await runHook(
      {
        client,
        event,
        stdin: Readable.from([Buffer.from(text)]),
        environment: this.environment,
      },
      {
        openStore: (options) => this.openStore(options),
        print: async (answer) => {
          printed += answer;
        },
        ...(this.wholeMs !== undefined && { wholeMs: this.wholeMs }),
      },
    );
    return printed;
  }

  /** The text that Claude Code gets at this event. */
  async claude(event: string, session: string, more: object = {}): Promise<string> {
    const printed = await this.run('claude', event, {
      session_id: session,
      transcript_path: this.transcript(session),
      cwd: this.project,
      hook_event_name: event,
      ...more,
    });
    if (printed === '') return '';
    const said = asRecord(asRecord(JSON.parse(printed))['hookSpecificOutput']);
    return asText(said['additionalContext']);
  }

  /** Writes an exchange into a session's transcript, as Claude Code does. */
  write(session: string, prompt: string, ...answer: readonly object[]): void {
    const line = (type: string, message: object): string => {
      this.#uuid += 1;
      return `${JSON.stringify({
        type,
        message,
        uuid: `u${this.#uuid}`,
        parentUuid: this.#uuid === 1 ? null : `u${this.#uuid - 1}`,
        timestamp: new Date(Date.UTC(2026, 10, 20, 10, 0, this.#uuid)).toISOString(),
        sessionId: session,
        cwd: this.project,
      })}\n`;
    };
    const lines = [
      ...(prompt === '' ? [] : [line('user', { role: 'user', content: prompt })]),
      ...answer.map((content) =>
        'tool_use_id' in content
          ? line('user', { role: 'user', content: [content] })
          : line('assistant', { role: 'assistant', model: 'claude', content: [content] }),
      ),
    ];
    appendFileSync(this.transcript(session), lines.join(''));
  }

  /** A whole exchange: written down by the client, and kept at its end. */
  async tell(session: string, prompt: string, answer: string): Promise<void> {
    this.write(session, prompt, { type: 'text', text: answer });
    await this.claude('Stop', session, { last_assistant_message: answer });
  }

  /** Makes the project a clone of this repository. */
  clone(origin: string): void {
    const git = join(this.project, '.git');
    for (const name of ['objects', 'refs/heads']) mkdirSync(join(git, name), { recursive: true });
    // Without a commit svc does not believe the address.
    writeFileSync(join(git, 'refs/heads/main'), `${'a1'.repeat(20)}\n`);
    writeFileSync(join(git, 'HEAD'), 'ref: refs/heads/main\n');
    const config = `[remote "origin"]\n\turl = ${origin}\n`;
    writeFileSync(join(git, 'config'), config);
  }

  configure(config: object): void {
    mkdirSync(join(this.home, 'config'), { recursive: true, mode: 0o700 });
    const text = JSON.stringify({ version: 1, upstreams: [], ...config });
    writeFileSync(join(this.home, 'config', 'config.json'), text, { mode: 0o600 });
  }

  async records(): Promise<readonly SpokenRecord[]> {
    const store = openEmbeddedStore({ folder: this.data, report: () => undefined });
    try {
      await store.outbox.flush(5_000);
      return await store.memory.list({ limit: 1000 }, AbortSignal.timeout(5_000));
    } finally {
      await store.close();
    }
  }
}
