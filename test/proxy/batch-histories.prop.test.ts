import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Dialect } from '../../src/core/conversation/view.ts';
import { DIALECTS } from '../../src/core/dialects/apis.ts';
import { judgeBody } from '../support/conversation-fuzz/judge.ts';
import { expectPricedPrefix, type Sent } from '../support/conversation-fuzz/prefix.ts';
import { requestWith, said, toolRound, type WireItem } from '../support/dialect-wire.ts';
import { openProxyStage, type ProxyStage } from '../support/proxy-stage.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { longOutput } from '../support/tool-session.ts';

/**
 * A conversation that leaves texts out, and then all that can come behind its batch: it goes on, is sent
 * again, edited and rewound, is continued and forked with and without a name, pauses until the cache is
 * cold, and svc restarts. Nothing that the provider was sent changes, unless a batch pays for it.
 */

type Step =
  | { readonly kind: 'go-on' | 'again' | 'pause' | 'restart' }
  | { readonly kind: 'back' | 'rewind' | 'edit'; readonly at: number }
  | { readonly kind: 'resume' | 'fork'; readonly isNamed: boolean }
  | { readonly kind: 'switch' };

const at = fc.nat(9);
const isNamed = fc.boolean();
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('go-on' as const, 'pause') }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('again' as const, 'restart') }) },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constantFrom('back' as const, 'rewind', 'edit'), at }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom('resume' as const, 'fork'), isNamed }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('switch' as const) }) },
);

const history = fc.record({
  dialect: fc.constantFrom(...DIALECTS),
  isNamed,
  /** Exchanges of plain text, of tools, or by turns. */
  talk: fc.constantFrom('chat' as const, 'tools', 'both'),
  steps: fc.array(step, { minLength: 4, maxLength: 10 }),
});

const FIRST = 12;
const PAUSE_MS = 301_000;

interface Branch {
  readonly name: string | undefined;
  readonly items: readonly WireItem[];
  readonly sent: readonly Sent[];
}

class World {
  readonly #dialect: Dialect;
  readonly #folder = tempFolder();
  readonly #hasTools: (number: number) => boolean;
  #stage: ProxyStage | undefined;
  #branches: Branch[] = [];
  #number = 0;
  #aheadMs = 0;
  batches = 0;

  constructor(dialect: Dialect, talk: 'chat' | 'tools' | 'both') {
    this.#dialect = dialect;
    this.#hasTools = (number) => (talk === 'both' ? number % 2 === 0 : talk === 'tools');
  }

  async begin(isFirstNamed: boolean): Promise<void> {
    await this.#start();
    const items = Array.from({ length: FIRST }, () => this.#exchange()).flat();
    const branch = { name: this.#name(isFirstNamed), items: [...items, this.#prompt()], sent: [] };
    this.#branches = [branch];
    await this.#send(branch);
  }

  async take(one: Step): Promise<void> {
    const branch = this.#branches[0];
    if (branch === undefined) return;
    const { items } = branch;
    switch (one.kind) {
      case 'go-on':
        return this.#send(this.#goneOn(branch));
      case 'again':
        return this.#send(branch);
      case 'pause':
        this.#aheadMs += PAUSE_MS;
        this.#stage?.setClockAhead(this.#aheadMs);
        return;
      case 'restart':
        await this.#stage?.stop();
        return this.#start();
      case 'back':
        return this.#send({ ...branch, items: items.slice(0, promptAt(items, one.at) + 1) }, 1);
      case 'rewind': {
        const kept = items.slice(0, promptAt(items, one.at));
        return this.#send({ ...branch, items: [...kept, this.#prompt()] });
      }
      case 'edit':
        return this.#send({
          ...branch,
          items: items.with(promptAt(items, one.at), this.#prompt()),
        });
      case 'resume':
        return this.#send(this.#goneOn({ ...branch, name: this.#name(one.isNamed) }));
      case 'fork':
        this.#branches.unshift(branch);
        return this.#send(this.#goneOn({ ...branch, name: this.#name(one.isNamed) }));
      case 'switch':
        this.#branches.push(...this.#branches.splice(0, 1));
    }
  }

  async close(): Promise<void> {
    await this.#stage?.stop();
  }

  async #start(): Promise<void> {
    const settings = { inputBudget: 1_500, elisionCaptureLimit: 200, recalledTokensMax: 8_192 };
    this.#stage = await openProxyStage({ folder: this.#folder, settings });
    this.#stage.setClockAhead(this.#aheadMs);
  }

  /** `open`: items at the end that may get a block, though they had none as a part of a history. */
  async #send(branch: Branch, open = 0): Promise<void> {
    const stage = this.#stage;
    if (stage === undefined) return;
    const body = requestWith(this.#dialect, branch.items);
    const id = branch.name === undefined ? [] : ['session-id', branch.name];
    const { status, headers } = await stage.send(this.#dialect, body, id);
    expect(status).toBe(200);
    const client = Buffer.from(JSON.stringify(body));
    const judged = judgeBody(this.#dialect, client, Buffer.from(stage.forwarded()));
    const state = String(headers['x-svc-continuity-state']);
    const now: Sent = {
      judged,
      isUndecided: String(headers['x-svc-memory-state']).startsWith('degraded'),
      isBatchTold: /^(?:elided_tool_output|committed)$/.test(state),
    };
    const settled = { ...judged, client: judged.client.slice(0, judged.client.length - open) };
    if (expectPricedPrefix(branch.sent, { ...now, judged: settled }).isBatch) this.batches += 1;
    this.#branches[0] = { ...branch, sent: [...branch.sent, now] };
    await stage.settled();
  }

  #goneOn(branch: Branch): Branch {
    return { ...branch, items: [...branch.items, ...this.#answer(), this.#prompt()] };
  }

  #exchange(): readonly WireItem[] {
    return [this.#prompt(), ...this.#answer()];
  }

  #prompt(): WireItem {
    this.#number += 1;
    return said('user', `Where does part ${this.#number} of the walrus shop live?`);
  }

  #answer(): readonly WireItem[] {
    this.#number += 1;
    const number = this.#number;
    const text = `Part ${number} of the walrus shop lives in the folder p${number}.`;
    if (!this.#hasTools(Math.floor(number / 2))) {
      return [said('assistant', `${text}\n${longOutput(`a${number}`, 400)}`)];
    }
    const rounds = [1, 2].map((round) =>
      toolRound(this.#dialect, `call_${number}_${round}`, longOutput(`o${number}.${round}`, 900)),
    );
    return [...rounds.flat(), said('assistant', text)];
  }

  #name(isGiven: boolean): string | undefined {
    this.#number += 2;
    return isGiven ? `session-${this.#number}` : undefined;
  }
}

/** The place of one of the prompts, the newest first. */
function promptAt(items: readonly WireItem[], choice: number): number {
  const prompts = items.flatMap(({ role, content }, index) =>
    role === 'user' && typeof content === 'string' ? [index] : [],
  );
  return prompts[Math.max(0, prompts.length - 1 - choice)] ?? 0;
}

const RUNS = Number(process.env['BATCH_HISTORIES'] ?? 12);

test(
  `${RUNS} histories behind a batch keep the cached prefix`,
  async () => {
    let batches = 0;
    await fc.assert(
      fc.asyncProperty(history, async ({ dialect, talk, isNamed: isFirstNamed, steps }) => {
        const world = new World(dialect, talk);
        try {
          await world.begin(isFirstNamed);
          await world.take({ kind: 'pause' });
          await world.take({ kind: 'go-on' });
          for (const one of steps) {
            // oxlint-disable-next-line no-await-in-loop -- One step comes behind the other.
            await world.take(one);
          }
        } finally {
          batches += world.batches;
          await world.close();
        }
      }),
      { numRuns: RUNS, endOnFailure: true },
    );
    expect(batches).toBeGreaterThan(RUNS / 4);
  },
  30_000 + RUNS * 20_000,
);
